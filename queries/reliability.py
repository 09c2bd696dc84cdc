"""How well a circuit agrees with itself: the ceiling of every comparison with it.

1. The folds of a circuit are independent samples of one subtask. They are parted into two halves in every possible way;
   the mean similarity of the halves says how far scores of so many examples repeat.
2. Spearman-Brown (1910) steps that up to the whole: with k times the examples of a half, k r / (1 + (k - 1) r). It
   holds for correlations of scores; for kendall, overlap and kappa the agreement of the halves is given as it is.
3. The same formula solved for the number of examples says how many a wanted reliability needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb.errors import UsageError
from circuitdb.queries import arguments
from circuitdb.queries.coefficients import CORRECTABLE, NAMES, coefficient
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.comparison import EVERY_EDGE, Comparison
from circuitdb.queries.matrix import ScoreMatrix
from circuitdb.queries.result import Result, count
from circuitdb.queries.selection import Selection

ENOUGH, SEED = 0.5, 0
_ROUNDING = 1e-9  # a divisor of so little is 0 but for that
_SPLITS = 100


@dataclass(frozen=True)
class Reliabilities:
    """Of each circuit: `folds`, the agreement of its halves; `whole`, stepped up; `reasons` where NaN."""

    folds: npt.NDArray[np.float64]
    whole: npt.NDArray[np.float64]
    reasons: tuple[str | None, ...]
    kind: str = "spearman"

    @property
    def correctable(self) -> bool:
        """Whether `whole` is a reliability that noise can be corrected by, and not only the halves' agreement."""
        return self.kind in CORRECTABLE

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
    return factor * r / divisor if divisor > _ROUNDING else math.nan


def examples_needed(reliability: float, n: int | float | None, wanted: float = ENOUGH) -> int | None:
    """How many examples bring a circuit whose `n` examples have `reliability` to `wanted` (Spearman-Brown).

    n wanted (1 - r) / (r (1 - wanted)), rounded up; None where r is not over 0 or n is not known.

    Raises UsageError unless 0 < wanted < 1.
    """
    if not 0 < arguments.real("A wanted reliability is a number, such as 0.8", wanted) < 1:
        raise UsageError(f"A wanted reliability lies between 0 and 1, not at {wanted:g}.")
    if n is None or not reliability > 0:
        return None
    needed = n * wanted * (1 - reliability) / (reliability * (1 - wanted))
    return max(1, math.ceil(round(needed, 9)))


def reliabilities(matrix: ScoreMatrix, how: Comparison = EVERY_EDGE) -> Reliabilities:
    """The reliability of each circuit of a matrix that was read with its folds."""
    halves = np.full(len(matrix.labels), np.nan)
    n_folds = [len(parts) for parts in matrix.folds or ()] or [0] * len(matrix.labels)
    for i, parts in enumerate(matrix.folds or ()):
        halves[i] = agreement(parts, how)
    return stepped_up(halves, n_folds, how.kind)


def stepped_up(halves: npt.NDArray[np.float64], n_folds: Sequence[int], kind: str) -> Reliabilities:
    """From the agreement of the halves of each circuit to the reliability of the whole."""
    whole = halves.copy()
    if kind in CORRECTABLE:
        # Halves of an odd number of folds leave one out, so that both are of one size.
        factors = [n / (n // 2) if n > 1 else 1.0 for n in n_folds]
        whole = np.array([spearman_brown(float(r), k) for r, k in zip(halves, factors, strict=True)], np.float64)
    reasons = [_reason(n, float(r), float(w)) for n, r, w in zip(n_folds, halves, whole, strict=True)]
    return Reliabilities(halves, whole, tuple(reasons), kind)


def agreement(folds: npt.NDArray[np.float32], how: Comparison = EVERY_EDGE) -> float:
    """The mean similarity of the two halves of [fold, edge] over all splits of the folds; NaN for fewer than two."""
    found = []
    for first, second in splits(len(folds)):
        one, two = (folds[half].mean(axis=0, keepdims=True) for half in (first, second))
        found.append(coefficient(how.kind, one, two, top=how.top, joint_zeros=not how.nonzero).values[0, 0])
    return float(np.mean(found)) if found else math.nan


def splits(n_folds: int) -> list[tuple[list[int], list[int]]]:
    """All ways to part folds into two sets of floor(n_folds / 2); where there are very many, a fixed sample of them."""
    size = n_folds // 2
    if size < 1:
        return []
    ways = math.comb(n_folds, size) * math.comb(n_folds - size, size) // 2
    if ways <= _SPLITS:
        chosen = combinations(range(n_folds), 2 * size)
        return [
            (sorted({among[0], *half}), sorted(set(among) - {among[0], *half}))
            for among in chosen
            for half in combinations(among[1:], size - 1)
        ]
    orders = np.random.default_rng(SEED).permuted(np.tile(np.arange(n_folds), (_SPLITS, 1)), axis=1)
    return [(row[:size], row[size : 2 * size]) for row in orders.tolist()]


def _reason(n_folds: int, folds: float, whole: float) -> str | None:
    if n_folds < 2:
        return "scored in one piece, without folds" if n_folds == 0 else "only one fold"
    if math.isnan(folds):
        return "the scores of a fold are all equal or missing"
    if math.isnan(whole):
        return f"the folds contradict each other (correlation {folds:.3f}): Spearman-Brown has no value"
    return None


def reliability(
    parts: Sequence[tuple[Selection, Reliabilities]],
    *,
    on: str,
    how: Comparison = EVERY_EDGE,
    wanted: float = ENOUGH,
    notes: Sequence[str] = (),
) -> Result:
    """The reliability of each circuit of several selections, in one table: see `Database.reliability`."""
    found = Reliabilities(
        np.concatenate([np.empty(0), *(r.folds for _, r in parts)]),
        np.concatenate([np.empty(0), *(r.whole for _, r in parts)]),
        tuple(reason for _, r in parts for reason in r.reasons),
        how.kind,
    )
    members = [member for selection, _ in parts for member in selection.members]
    n_examples = tuple(member.n_examples for member in members)
    needed = [_needed(found, float(r), n, wanted) for r, n in zip(found.whole, n_examples, strict=True)]
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
    title = f"Reliability of {count(len(members), 'circuit')}, {how.prefix}{on} scores"
    title += "" if wanted == ENOUGH else f"; examples_needed for a reliability of {wanted:g}"
    warnings = (low(found, n_examples), uncorrectable(how.kind))
    return Result(table, title, (*notes, *(warning for warning in warnings if warning)))


def _needed(found: Reliabilities, reliability: float, n: int | None, wanted: float) -> int | None:
    return examples_needed(reliability, n, wanted) if found.correctable else None


def uncorrectable(kind: str) -> str | None:
    """What must be said where a kind has no correction for noise; None where it has."""
    if kind in CORRECTABLE:
        return None
    return (
        f"For {NAMES[kind]} there is no correction for noise: the reliability is the plain agreement of two halves "
        "of the examples, which is less than that of the whole, and corrected is NULL."
    )


def low(found: Reliabilities, n_examples: tuple[int | None, ...]) -> str | None:
    """A warning where the median circuit is less reliable than 0.5 or nothing is known; None where all is well."""
    if not found.whole.size:
        return None
    if math.isnan(found.median):
        return f"No circuit has a reliability ({found.reasons[0]}): a low similarity may be noise alone."
    if found.median >= ENOUGH or not found.correctable:
        return None
    needed = enough(found, n_examples)
    cure = "" if needed is None else f"; about {count(needed, 'example')} a circuit would bring the median to {ENOUGH}"
    return f"The median reliability is {found.median:.2f}, so most of what differs between circuits is noise{cure}."


def enough(found: Reliabilities, n_examples: tuple[int | None, ...]) -> int | None:
    """How many examples bring the median circuit to 0.5; None where its reliability is not over 0 or n is not known."""
    known = [n for n in n_examples if n is not None]
    if not known or not found.correctable:
        return None
    return examples_needed(found.median, float(np.median(known)))
