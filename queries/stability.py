"""Stability of a skill (Definition 4 of the paper): the expected similarity of two random distinct subtasks.

One row a group, that is a model, a task and one way of scoring, so that no pair mixes two of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from circuitdb.queries import reliability
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.matrix import ScoreMatrix
from circuitdb.queries.ranks import Matrix
from circuitdb.queries.reliability import ENOUGH
from circuitdb.queries.result import Result, count
from circuitdb.queries.selection import Group, Selection
from circuitdb.queries.similarity import Similarity, similarity

_ALWAYS = ("model", "task", "method", "metric")
_SOMETIMES = ("revision", "steps", "grid", "positions", "ablation", "sign_convention", "prompt_style", "shots")


@dataclass(frozen=True)
class _Row:
    """What is said of one group; NaN and None become NULL."""

    n_subtasks: int
    n_pairs: int
    stability: float
    stability_with_diagonal: float
    ceiling: float
    corrected: float
    n_pairs_corrected: int
    median_reliability: float
    examples_needed: int | None
    warning: str | None


def stability(groups: Mapping[Group, tuple[Selection, ScoreMatrix]], *, on: str, notes: Sequence[str] = ()) -> Result:
    """One row a group: see `Database.stability`."""
    rows = []
    said = list(notes)
    for group, (selection, matrix) in groups.items():
        name = f"{group.model}, {group.task}"
        said += selection.duplicates()
        many = [subtask for subtask, n in Counter(m.subtask for m in selection.members).items() if n > 1]
        if many:
            said.append(
                f"{name}: some subtasks have several circuits ({', '.join(many)}); each circuit counts, so n_pairs "
                "includes pairs within a subtask."
            )
        found = similarity(matrix)
        rows.append(_row(selection, found, matrix.n_examples))
        if found.reliability.median < ENOUGH:
            said.append(f"{name}: {reliability.low(found.reliability, matrix.n_examples)}")
    shown = [field for field in _SOMETIMES if len({getattr(group, field) for group in groups}) > 1]
    columns = {
        **{field: _column([getattr(group, field) for group in groups]) for field in (*_ALWAYS, *shown)},
        "on": texts([on] * len(groups)),
        "n_subtasks": integers((row.n_subtasks for row in rows), bits=32),
        "n_pairs": integers((row.n_pairs for row in rows), bits=32),
        **{field: _doubles(rows, field) for field in ("stability", "stability_with_diagonal", "ceiling", "corrected")},
        "n_pairs_corrected": integers((row.n_pairs_corrected for row in rows), bits=32),
        "median_reliability": _doubles(rows, "median_reliability"),
        "examples_needed": integers(row.examples_needed for row in rows),
        "warning": texts(row.warning for row in rows),
    }
    title = f"Stability of {count(len(groups), 'group')} of circuits: mean rho of distinct pairs, {on} scores"
    return Result(pa.table(columns), title, tuple(dict.fromkeys(said)))


def _row(selection: Selection, found: Similarity, n_examples: tuple[int | None, ...]) -> _Row:
    upper = np.triu_indices(len(found.labels), 1)
    pairs, corrected = found.matrix[upper], found.corrected[upper]
    return _Row(
        n_subtasks=len({member.subtask for member in selection.members}),
        n_pairs=int(np.count_nonzero(~np.isnan(pairs))),
        stability=_mean(pairs),
        stability_with_diagonal=_mean(found.matrix) if pairs.size else math.nan,
        ceiling=_mean(found.ceiling[upper]),
        corrected=_mean(corrected),
        n_pairs_corrected=int(np.count_nonzero(~np.isnan(corrected))),
        median_reliability=found.reliability.median,
        examples_needed=reliability.enough(found.reliability, n_examples),
        warning=_warning(found, pairs, corrected, n_examples),
    )


def _warning(found: Similarity, pairs: Matrix, corrected: Matrix, n_examples: tuple[int | None, ...]) -> str | None:
    if not pairs.size:
        return "Stability needs two circuits; this group has one."
    said = []
    undefined = int(np.count_nonzero(np.isnan(pairs)))
    if undefined:
        said.append(f"{count(undefined, 'pair')} of {pairs.size:,} left out: constant or missing scores.")
    low = reliability.low(found.reliability, n_examples)
    if low:
        said.append(low)
    else:
        lacking = int(np.count_nonzero(np.isnan(corrected) & ~np.isnan(pairs)))
        if lacking:
            said.append(f"{count(lacking, 'pair')} of {pairs.size:,} not corrected: a circuit without reliability.")
    return " ".join(said) or None


def _mean(values: Matrix) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else math.nan


def _doubles(rows: Sequence[_Row], field: str) -> pa.Array:
    return numbers(np.array([getattr(row, field) for row in rows], np.float64))


def _column(values: list[str | None] | list[int | None]) -> pa.Array:
    """A field of the groups: texts or whole numbers."""
    whole = [value for value in values if isinstance(value, int)]
    if whole:
        return integers((value if isinstance(value, int) else None for value in values), bits=32)
    return texts(value if isinstance(value, str) else None for value in values)
