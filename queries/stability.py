"""Stability of a skill (Definition 4 of the paper): the expected similarity of two random distinct subtasks.

One row a group, that is a model, a task and one way of scoring, so that no pair mixes two of them.

1. The pairs are those of circuits of distinct subtasks: two circuits of one subtask say how well it was measured.
2. Stability is the mean rho over the pairs that have one, the ceiling the mean of sqrt(reliability_a reliability_b)
   over those of them where both reliabilities are over 0.
3. The corrected stability is the mean rho of these latter pairs divided by their ceiling. A mean of the ratios would
   be ruled by the pairs whose reliability is near 0, and a mean over other pairs would not compare with the ceiling.
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
from circuitdb.queries.result import Result, count, enumeration
from circuitdb.queries.selection import Group, Selection
from circuitdb.queries.similarity import Similarity, similarity

_ALWAYS = ("model", "task", "method", "metric")
_SOMETIMES = (
    "revision", "steps", "grid", "positions", "ablation", "sign_convention", "prompt_style", "shots", "seed",
    "examples", "dtype",
)  # fmt: skip
_LEAST_SHARE = 0.5  # of the pairs, that must have a ceiling for a corrected value


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
    shown = [field for field in _SOMETIMES if len({getattr(group, field) for group in groups}) > 1]
    for group, (selection, matrix) in groups.items():
        name = ", ".join([group.model, group.task, *(f"{field} {getattr(group, field)}" for field in shown)])
        sentences, row = _row(selection, similarity(matrix), matrix.n_examples)
        rows.append(row)
        said += [*selection.duplicates(), *(f"{name}: {sentence}" for sentence in sentences)]
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
    title = f"Stability of {count(len(groups), 'group')} of circuits: mean rho over pairs of distinct subtasks, "
    title += f"{on} scores"
    return Result(pa.table(columns), title, tuple(dict.fromkeys(said)))


def _row(selection: Selection, found: Similarity, n_examples: tuple[int | None, ...]) -> tuple[list[str], _Row]:
    """(what must be said of a group, its row)."""
    subtasks = np.unique([member.subtask for member in selection.members], return_inverse=True)[1]
    first, second = np.triu_indices(len(subtasks), 1)
    distinct = subtasks[first] != subtasks[second]
    pairs, ceiling = found.matrix[first, second][distinct], found.ceiling[first, second][distinct]
    both = ~np.isnan(pairs) & ~np.isnan(ceiling)
    n_pairs, n_both = int(np.count_nonzero(~np.isnan(pairs))), int(np.count_nonzero(both))
    enough = n_both > 0 and n_both >= _LEAST_SHARE * n_pairs
    selves = np.diag(found.matrix)
    sentences = [
        *_repeated(selection, int(np.count_nonzero(~distinct))),
        *_lacking(pairs.size, n_pairs, n_both, enough=enough),
    ]
    low = reliability.low(found.reliability, n_examples)
    if low and pairs.size:
        sentences.append(low)
    return sentences, _Row(
        n_subtasks=len(np.unique(subtasks)),
        n_pairs=n_pairs,
        stability=_mean(pairs),
        # Each pair stands on both sides of the diagonal.
        stability_with_diagonal=_mean(np.concatenate((pairs, pairs, selves))) if pairs.size else math.nan,
        ceiling=_mean(ceiling[both]),
        corrected=_mean(pairs[both]) / _mean(ceiling[both]) if enough else math.nan,
        n_pairs_corrected=n_both,
        median_reliability=found.reliability.median,
        examples_needed=reliability.enough(found.reliability, n_examples),
        warning=" ".join(sentences) or None,
    )


def _repeated(selection: Selection, n_within: int) -> list[str]:
    often = [subtask for subtask, n in Counter(m.subtask for m in selection.members).items() if n > 1]
    if not often:
        return []
    return [
        f"Some subtasks have several circuits ({enumeration(often)}): {count(n_within, 'pair')} within a subtask left "
        "out, since stability is over distinct ones."
    ]


def _lacking(n_all: int, n_pairs: int, n_both: int, *, enough: bool) -> list[str]:
    if not n_all:
        return ["Stability needs circuits of two subtasks; this group has one."]
    sentences = []
    if n_pairs < n_all:
        sentences.append(f"{n_all - n_pairs:,} of {count(n_all, 'pair')} left out: constant or missing scores.")
    if n_both < n_pairs:
        refused = "" if enough else " Fewer than half of the pairs have a ceiling, so corrected is NULL."
        sentences.append(
            f"{n_pairs - n_both:,} of {count(n_pairs, 'pair')} left out of ceiling and corrected for want of a "
            f"positive reliability.{refused}"
        )
    return sentences


def _mean(values: Matrix) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else math.nan


def _doubles(rows: Sequence[_Row], field: str) -> pa.Array:
    return numbers(np.array([getattr(row, field) for row in rows], np.float64))


def _column(values: list[str | None] | list[int | None]) -> pa.Array:
    """A field of the groups: texts or whole numbers."""
    whole = [value for value in values if isinstance(value, int)]
    if whole:
        return integers(value if isinstance(value, int) else None for value in values)
    return texts(value if isinstance(value, str) else None for value in values)
