"""How well a circuit agrees with itself: the ceiling of every comparison with it.

1. The folds of a circuit are independent samples of one subtask; the mean Spearman of their pairs says how far scores
   of so many examples repeat.
2. Spearman-Brown (1910) steps that up from a fold to the whole: with k folds, k r / (1 + (k - 1) r).
3. The same formula solved for the number of examples says how many a wanted reliability needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb.errors import UsageError
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.matrix import ScoreMatrix
from circuitdb.queries.ranks import spearman
from circuitdb.queries.result import Result, count
from circuitdb.queries.selection import Selection

ENOUGH = 0.5


@dataclass(frozen=True)
class Reliabilities:
    """Of each circuit: `folds`, the mean Spearman between its folds; `whole`, stepped up; `reasons` where NaN."""

    folds: npt.NDArray[np.float64]
    whole: npt.NDArray[np.float64]
    reasons: tuple[str | None, ...]

    @property
    def median(self) -> float:
        """Median reliability of those that have one; NaN if none has."""
        known = self.whole[~np.isnan(self.whole)]
        return float(np.median(known)) if known.size else math.nan


def spearman_brown(r: float, factor: int | float) -> float:
    """The reliability of `factor` times as many examples: factor r / (1 + (factor - 1) r); NaN where that has no value.

    A negative `r` says that the parts do not agree at all; the formula's value is still given, since cutting it to 0
    would hide that. It has none from -1 / (factor - 1) down.
    """
    divisor = 1 + (factor - 1) * r
    return factor * r / divisor if divisor > 0 else math.nan


def examples_needed(reliability: float, n: int | float | None, wanted: float = ENOUGH) -> int | None:
    """How many examples bring a circuit whose `n` examples have `reliability` to `wanted` (Spearman-Brown).

    n wanted (1 - r) / (r (1 - wanted)), rounded up; None where r is not over 0 or n is not known.

    Raises UsageError unless 0 < wanted < 1.
    """
    if not 0 < wanted < 1:
        raise UsageError(f"A wanted reliability lies between 0 and 1, not at {wanted:g}.")
    if n is None or not reliability > 0:
        return None
    needed = n * wanted * (1 - reliability) / (reliability * (1 - wanted))
    return max(1, math.ceil(round(needed, 9)))


def reliabilities(matrix: ScoreMatrix) -> Reliabilities:
    """The reliability of each circuit of a matrix that was read with its folds."""
    folds = np.full(len(matrix.labels), np.nan)
    whole = folds.copy()
    reasons: list[str | None] = []
    for i, parts in enumerate(matrix.folds or [np.empty((0, 0), np.float32)] * len(matrix.labels)):
        pairs = spearman(parts).rho[np.triu_indices(len(parts), 1)]
        folds[i] = pairs.mean() if pairs.size else math.nan
        whole[i] = spearman_brown(float(folds[i]), len(parts))
        reasons.append(_reason(len(parts), float(folds[i]), float(whole[i])))
    return Reliabilities(folds, whole, tuple(reasons))


def _reason(n_folds: int, folds: float, whole: float) -> str | None:
    if n_folds < 2:
        return "scored in one piece, without folds" if n_folds == 0 else "only one fold"
    if math.isnan(folds):
        return "the scores of a fold are all equal or missing"
    if math.isnan(whole):
        return f"the folds contradict each other (correlation {folds:.3f}): Spearman-Brown has no value"
    return None


def reliability(parts: Sequence[tuple[Selection, ScoreMatrix]], *, on: str, notes: Sequence[str] = ()) -> Result:
    """The reliability of each circuit of matrices read with their folds: see `Database.reliability`."""
    each = [reliabilities(matrix) for _, matrix in parts]
    found = Reliabilities(
        np.concatenate([np.empty(0), *(r.folds for r in each)]),
        np.concatenate([np.empty(0), *(r.whole for r in each)]),
        tuple(reason for r in each for reason in r.reasons),
    )
    members = [member for selection, _ in parts for member in selection.members]
    n_examples = tuple(member.n_examples for member in members)
    needed = [examples_needed(float(r), n) for r, n in zip(found.whole, n_examples, strict=True)]
    table = pa.table(
        {
            "circuit_id": integers((m.circuit_id for m in members), bits=32),
            "model": texts(m.group.model for m in members),
            "task": texts(m.group.task for m in members),
            "subtask": texts(m.subtask for m in members),
            "method": texts(m.group.method for m in members),
            "metric": texts(m.group.metric for m in members),
            "on": texts([on] * len(members)),
            "n_examples": integers(n_examples, bits=32),
            "n_folds": integers((m.n_folds for m in members), bits=32),
            "fold_correlation": numbers(found.folds),
            "reliability": numbers(found.whole),
            "examples_needed": integers(needed),
            "reason": texts(found.reasons),
        }
    )
    warning = low(found, n_examples)
    title = f"Reliability of {count(len(members), 'circuit')}, {on} scores"
    return Result(table, title, (*notes, *([warning] if warning else [])))


def low(found: Reliabilities, n_examples: tuple[int | None, ...]) -> str | None:
    """A warning where the median circuit is less reliable than 0.5 or nothing is known; None where all is well."""
    if not found.whole.size:
        return None
    if math.isnan(found.median):
        return f"No circuit has a reliability ({found.reasons[0]}): a low similarity may be noise alone."
    if found.median >= ENOUGH:
        return None
    needed = enough(found, n_examples)
    cure = "" if needed is None else f"; about {count(needed, 'example')} a circuit would bring the median to {ENOUGH}"
    return f"The median reliability is {found.median:.2f}, so most of what differs between circuits is noise{cure}."


def enough(found: Reliabilities, n_examples: tuple[int | None, ...]) -> int | None:
    """How many examples bring the median circuit to 0.5; None where its reliability is not over 0 or n is not known."""
    known = [n for n in n_examples if n is not None]
    return examples_needed(found.median, float(np.median(known)) if known else None)
