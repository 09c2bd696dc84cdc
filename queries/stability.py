"""Stability of a skill (Definition 4 of the paper): the expected similarity of two random distinct subtasks.

One row a group, that is a model, a task and one way of scoring, so that no pair mixes two of them; on request one row
for each value of a parameter of the subtasks too.

1. The pairs are those of circuits of distinct subtasks: two circuits of one subtask say how well it was measured.
2. Stability is the mean similarity over the pairs that have one, the ceiling the mean of sqrt(reliability_a
   reliability_b) over those of them where both reliabilities are over 0.
3. The corrected stability is the mean similarity of these latter pairs divided by their ceiling. A mean of the ratios
   would be ruled by the pairs whose reliability is near 0, and one over other pairs would not compare with the ceiling.
4. Intervals come from resampled subtasks (`resampling`) or from folds left out (`jackknife`), never from a test over
   pairs: these share circuits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb.errors import UsageError
from circuitdb.queries import jackknife, reliability, resampling
from circuitdb.queries.columns import distinct, integers, numbers, texts
from circuitdb.queries.comparison import EVERY_EDGE, Comparison
from circuitdb.queries.jackknife import Deleted
from circuitdb.queries.pairing import Mask, Matrix
from circuitdb.queries.partition import Value, value_column
from circuitdb.queries.resampling import NO_INTERVAL, Interval
from circuitdb.queries.result import Result, count, enumeration
from circuitdb.queries.selection import Group, Selection
from circuitdb.queries.similarity import Similarity

Cell: TypeAlias = "tuple[Group, tuple[Value, ...]]"
Places = npt.NDArray[np.int64]
OVER = ("subtasks", "folds")
_ALWAYS = ("model", "task", "method", "metric")
_SOMETIMES = (
    "revision", "steps", "grid", "positions", "contrast", "ablation", "sign_convention", "prompt_style", "shots",
    "shots_drawn", "reasoning_tokens", "chat", "seed", "examples", "dtype",
)  # fmt: skip
_SOURCE = {"subtasks": "resampled subtasks", "folds": "folds left out"}
_LACKING = {
    "subtasks": f"An interval takes {resampling.LEAST} subtasks or more; low and high are NULL for fewer.",
    "folds": "An interval takes three folds of every circuit's examples; low and high are NULL for fewer.",
}
LEAST_SHARE = 0.5  # of the pairs, that must have a ceiling for a corrected value


@dataclass(frozen=True)
class Measured:
    """A selection with its similarity and, where intervals are to come from folds, these left out in turn."""

    selection: Selection
    similarity: Similarity
    n_examples: tuple[int | None, ...]
    deleted: Deleted | None = None


@dataclass(frozen=True)
class _Row:
    """What is said of one group; NaN and None become NULL."""

    n_subtasks: int
    n_pairs: int
    stability: float
    low: float
    high: float
    stability_with_diagonal: float
    ceiling: float
    corrected: float
    corrected_low: float
    corrected_high: float
    n_pairs_corrected: int
    median_reliability: float
    examples_needed: int | None
    warning: str | None


def require_over(over: str) -> str:
    """`over` itself. Raises UsageError unless intervals can come from it."""
    if over not in OVER:
        raise UsageError(f"Intervals come from resampled {' or '.join(OVER)}, not from {over!r}.")
    return over


def stability(
    cells: Mapping[Cell, Measured],
    *,
    on: str,
    by: Sequence[str] = (),
    over: str = "subtasks",
    how: Comparison = EVERY_EDGE,
    notes: Sequence[str] = (),
) -> Result:
    """One row a cell, that is a group and the values of the parameters `by`: see `Database.stability`.

    What must be said of one cell is its `warning`; the notes are what holds for several.
    """
    rows = []
    said = list(notes)
    shown = [field for field in _SOMETIMES if len({getattr(group, field) for group, _ in cells}) > 1]
    for measured in cells.values():
        rows.append(_row(measured))
        said += measured.selection.duplicates()
    if warning := reliability.uncorrectable(how.kind):
        said.append(warning)
    if any(math.isnan(row.low) and not math.isnan(row.stability) for row in rows):
        said.append(_LACKING[over])
    if over == "subtasks" and any(row.n_subtasks < resampling.MANY and not math.isnan(row.low) for row in rows):
        said.append(resampling.NOMINAL)
    groups = [group for group, _ in cells]
    columns = [
        *((field, value_column([getattr(group, field) for group in groups])) for field in (*_ALWAYS, *shown)),
        *((parameter, value_column([values[i] for _, values in cells])) for i, parameter in enumerate(by)),
        ("on", texts([on] * len(cells))),
        ("n_subtasks", integers((row.n_subtasks for row in rows), bits=32)),
        ("n_pairs", integers((row.n_pairs for row in rows), bits=32)),
        *((field, _doubles(rows, field)) for field in _DOUBLES),
        ("n_pairs_corrected", integers((row.n_pairs_corrected for row in rows), bits=32)),
        ("median_reliability", _doubles(rows, "median_reliability")),
        ("examples_needed", integers(row.examples_needed for row in rows)),
        ("warning", texts(row.warning for row in rows)),
    ]
    names = distinct([name for name, _ in columns])
    title = f"Stability of {count(len(cells), 'group')} of circuits: mean {how.short} over pairs of distinct subtasks, "
    title += f"{on} scores"
    if any(not math.isnan(row.low) for row in rows):
        title += f", with 95% intervals from {_SOURCE[over]}"
    return Result(pa.table(dict(zip(names, [array for _, array in columns], strict=True))), title, _once(said))


_DOUBLES = (
    "stability", "low", "high", "stability_with_diagonal", "ceiling", "corrected", "corrected_low", "corrected_high",
)  # fmt: skip


def distinct_subtasks(selection: Selection) -> tuple[Mask, Places]:
    """([circuit, circuit], whether two circuits are of distinct subtasks; [circuit], the number of its subtask)."""
    subtasks = np.unique([member.subtask for member in selection.members], return_inverse=True)[1]
    return subtasks[:, None] != subtasks[None, :], subtasks


def _row(measured: Measured) -> _Row:
    """The row of one group, with what must be said of it as its warning."""
    selection, found, n_examples = measured.selection, measured.similarity, measured.n_examples
    apart, subtasks = distinct_subtasks(selection)
    has_value = apart & ~np.isnan(found.matrix)
    both = has_value & ~np.isnan(found.ceiling)
    n_all, n_pairs, n_both = (int(np.count_nonzero(mask)) // 2 for mask in (apart, has_value, both))
    correctable = found.reliability.correctable
    enough = correctable and n_both > 0 and n_both >= LEAST_SHARE * n_pairs
    low, high, corrected_low, corrected_high = _intervals(measured, subtasks, has_value, both)
    n_within = (len(subtasks) ** 2 - len(subtasks)) // 2 - n_all
    warnings = [
        *_repeated(selection, n_within),
        *_lacking(n_all, n_pairs, n_both, enough=enough or not correctable),
    ]
    warning = reliability.low(found.reliability, n_examples)
    if warning and n_all:
        warnings.append(warning)
    return _Row(
        n_subtasks=len(np.unique(subtasks)),
        n_pairs=n_pairs,
        stability=_mean(found.matrix, has_value),
        low=low,
        high=high,
        stability_with_diagonal=_mean(found.matrix, (has_value | _selves(found.matrix))) if n_all else math.nan,
        ceiling=_mean(found.ceiling, both),
        corrected=_mean(found.matrix, both) / _mean(found.ceiling, both) if enough else math.nan,
        corrected_low=corrected_low if enough else math.nan,
        corrected_high=corrected_high if enough else math.nan,
        n_pairs_corrected=n_both if correctable else 0,
        median_reliability=found.reliability.median,
        examples_needed=reliability.enough(found.reliability, n_examples),
        warning=" ".join(warnings) or None,
    )


def _intervals(measured: Measured, subtasks: Places, has_value: Mask, both: Mask) -> tuple[float, float, float, float]:
    """(low, high) of the plain and of the corrected stability."""
    found = measured.similarity
    if not has_value.any():
        return (*NO_INTERVAL, *NO_INTERVAL)
    if measured.deleted is not None:
        plain, corrected = (
            jackknife.mean_interval(found.matrix, ceiling, mask, measured.deleted, found.reliability)
            for ceiling, mask in ((None, has_value), (found.ceiling, both))
        )
        return (*plain, *corrected)
    return (
        *over_subtasks(found.matrix, None, has_value, subtasks),
        *over_subtasks(found.matrix, found.ceiling, both, subtasks),
    )


def over_subtasks(values: Matrix, ceiling: Matrix | None, allowed: Mask, subtasks: Places) -> Interval:
    """The interval of the mean over allowed pairs, divided by that of the ceiling if there is one."""
    used = np.unique(subtasks[allowed.any(axis=1)])
    if not len(used):
        return NO_INTERVAL
    weights = resampling.draws(len(used))[:, np.searchsorted(used, subtasks) % len(used)]
    resampled = resampling.pair_means(values, allowed, weights)
    estimate = _mean(values, allowed)
    if ceiling is not None:
        resampled = resampled / resampling.pair_means(ceiling, allowed, weights)
        estimate /= _mean(ceiling, allowed)
    return resampling.interval(estimate, resampled, len(used))


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


def _selves(matrix: Matrix) -> Mask:
    """[circuit, circuit]: the diagonal, where it has values."""
    return np.eye(len(matrix), dtype=bool) & ~np.isnan(matrix)


def _mean(values: Matrix, mask: Mask) -> float:
    return float(values[mask].mean()) if mask.any() else math.nan


def _once(sentences: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sentences))


def _doubles(rows: Sequence[_Row], field: str) -> pa.Array:
    return numbers(np.array([getattr(row, field) for row in rows], np.float64))
