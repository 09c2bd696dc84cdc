"""Does a skill that is applied alike go with being right? Rank correlation of circuits' similarity with a metric.

Over subtasks, the points of a group are its circuits: the mean similarity to those of other subtasks, against the
metric of the model on the subtask. Over models, the points of a task are its groups: their stability, against the
metric on the whole task or, where there is none, its mean over the group's subtasks.

1. Spearman's rho of the points that have both values.
2. Its 95% interval by Fisher's z with the variance (1 + rho^2 / 2) / (n - 3) of Bonett and Wright (2000), from 4
   points on.
3. p by permutation of the metric among the points, two-sided: all permutations of up to 7 points, else 9,999 random.

Corrected, a point is the mean similarity of its pairs that have a ceiling, divided by their mean ceiling, as the
corrected stability is: a circuit that is measured worse seems less alike, and where harder subtasks are measured worse,
that alone would make a correlation.

A model, or a subtask of a group, is one point: the same one scored in two ways would feign twice the evidence.

Mean similarities of one group have pairs in common, so its points are less independent than the interval takes them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb.errors import UsageError
from circuitdb.queries.coefficients import coefficient
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.comparison import EVERY_EDGE, Comparison
from circuitdb.queries.groupnames import TELLING, group_names
from circuitdb.queries.metrics import Values
from circuitdb.queries.pairing import Mask
from circuitdb.queries.ranks import centred_ranks
from circuitdb.queries.result import Answer, Result, count, enumeration
from circuitdb.queries.selection import Group, Selection, can_filter, field_name
from circuitdb.queries.similarity import Similarity
from circuitdb.queries.stability import LEAST_SHARE, distinct_subtasks

Vector = npt.NDArray[np.float64]
_Z = 1.959963984540054  # 97.5% of the normal distribution
_N_EXACT, _N_RANDOM, _SEED = 7, 9_999, 0


@dataclass(frozen=True)
class Points:
    """What is correlated: one group of points, with NaN where a value is lacking.

    `similarity` is a circuit's mean similarity to the others, or a group's stability, plain or corrected; `ceiling` the
    mean of the ceilings.
    """

    of: str
    labels: tuple[str, ...]
    similarity: Vector
    ceiling: Vector
    value: Vector


@dataclass(frozen=True)
class Correlation(Answer):
    """The correlation of each group of points.

    Attributes:
        points: the points of each.
        over, metric, on: subtasks or models, source.metric, signed or magnitude.
        title, notes: what it is; warnings and explanations.
        short: the coefficient of the similarities in a few words.
        corrected: whether the similarities are divided by their ceilings.
    """

    points: tuple[Points, ...]
    over: str
    metric: str
    on: str
    title: str
    notes: tuple[str, ...] = ()
    short: str = "rho"
    corrected: bool = False

    def arrow(self) -> pa.Table:
        """One row a group: of, n (points with both values), n_lacking, rho, low, high (95%), p_value, mean_ceiling."""
        rows = [_row(points) for points in self.points]
        columns = zip(*rows, strict=True) if rows else [()] * 7
        n, lacking, *measured = (np.array(column, np.float64) for column in columns)
        names = ("rho", "low", "high", "p_value", "mean_ceiling")
        return pa.table(
            {
                "of": texts(points.of for points in self.points),
                "n": integers([int(i) for i in n]),
                "n_lacking": integers([int(i) for i in lacking]),
                **{name: numbers(values) for name, values in zip(names, measured, strict=True)},
            }
        )

    def result(self) -> Result:
        """The correlations, one row a group."""
        return Result(self.arrow(), self.title, self.notes)

    def long(self) -> Result:
        """The points, one row each: of, label, similarity (mean, or stability), ceiling, value."""
        of = [points.of for points in self.points for _ in points.labels]
        parts = {
            name: np.concatenate([np.empty(0), *(getattr(points, name) for points in self.points)])
            for name in ("similarity", "ceiling", "value")
        }
        labels = [label for points in self.points for label in points.labels]
        columns = {name: numbers(values) for name, values in parts.items()}
        return Result(
            pa.table({"of": texts(of), "label": texts(labels), **columns}), f"{self.title}: points", self.notes
        )


def require_one_each(selection: Selection, over: str) -> None:
    """Raise UsageError, with the filter to give, unless every model of a task, or subtask of a group, is one point."""
    groups = selection.groups()
    if over == "subtasks":
        for group, part in groups.items():
            ids: dict[str, list[int]] = {}
            for member in part.members:
                ids.setdefault(member.subtask, []).append(member.circuit_id)
            twice = [subtask for subtask, own in ids.items() if len(own) > 1]
            if twice:
                raise UsageError(
                    f"{group_names(groups)[group]} has several circuits of {enumeration(twice)}, but a subtask is one "
                    f"point; give one of each with circuits, for {twice[0]} one of {enumeration(ids[twice[0]])}."
                )
        return
    models: dict[tuple[int, str], list[Group]] = {}
    for group in groups:
        models.setdefault((group.model_id, group.task), []).append(group)
    for ways in models.values():
        if len(ways) > 1:
            raise _several_ways(ways, groups)


def _several_ways(ways: Sequence[Group], groups: Mapping[Group, Selection]) -> UsageError:
    """What differs between the groups of a model and a task, and which filter leaves one of them."""
    values = {field: dict.fromkeys(getattr(group, field) for group in ways) for field in TELLING}
    differing = [field for field in TELLING if len(values[field]) > 1]
    listed = [f"{field_name(field)} ({enumeration(_words(values[field]))})" for field in differing]
    # A filter can't ask for what a circuit has no value of.
    chosen = max(ways, key=lambda group: sum(can_filter(group, field) for field in differing))
    given = [f"{field}={getattr(chosen, field)!r}" for field in differing if can_filter(chosen, field)]
    return UsageError(
        f"{chosen.model} was scored in {len(ways)} ways on {chosen.task}, which differ in {' and '.join(listed)}, but "
        f"a model is one point; choose one, for example {', '.join(given) or f'circuits={list(groups[chosen].ids)}'}."
    )


def _words(values: Iterable[object]) -> list[str]:
    return ["none" if value is None else str(value) for value in values]


Compared: TypeAlias = "tuple[Group, Selection, Similarity]"


def of_subtasks(found: Sequence[Compared], values: Values, *, corrected: bool = False) -> list[Points]:
    """One group of points a group of circuits: each circuit's mean similarity to those of other subtasks."""
    names = group_names(group for group, _, _ in found)
    points = []
    for group, selection, similarity in found:
        apart, _ = distinct_subtasks(selection)
        value = np.array([values.subtask.get(key, math.nan) for key in selection.ids], np.float64)
        points.append(Points(names[group], selection.labels, *_means(similarity, apart, corrected=corrected), value))
    return points


def of_models(found: Sequence[Compared], values: Values, *, corrected: bool = False) -> list[Points]:
    """One group of points a task: the stability of each of its groups of circuits."""
    names = group_names((group for group, _, _ in found), task=False)
    points = []
    for task in dict.fromkeys(group.task for group, _, _ in found):
        rows = []
        for group, selection, similarity in found:
            if group.task == task:
                apart, _ = distinct_subtasks(selection)
                whole = [values.task[key] for key in selection.ids if key in values.task]
                each = [values.subtask[key] for key in selection.ids if key in values.subtask]
                value, ceiling = _means(similarity, apart, corrected=corrected, whole=True)
                rows.append((names[group], float(value), float(ceiling), _mean(np.array(whole or each))))
        columns = np.array([row[1:] for row in rows], np.float64).T
        points.append(Points(task, tuple(row[0] for row in rows), *columns))
    return points


def correlation(
    points: Sequence[Points],
    found: Sequence[Compared] = (),
    *,
    over: str,
    metric: str,
    on: str,
    how: Comparison = EVERY_EDGE,
    corrected: bool = False,
    notes: Sequence[str] = (),
) -> Correlation:
    """Put the answer together, with what the similarities `found` must say: see `Database.correlate`."""
    said = list(notes)
    names = group_names(group for group, _, _ in found)
    for group, selection, similarity in found:
        whose = f"{names[group]}: " if len(found) > 1 else ""
        said += [*(f"{whose}{note}" for note in similarity.notes_elsewhere), *selection.duplicates()]
    for part in points:
        lacking = [label for label, value in zip(part.labels, part.value, strict=True) if math.isnan(value)]
        if lacking:
            said.append(f"{part.of}: no value of {metric} for {', '.join(lacking)}; left out.")
        uncorrected = [label for label, found in zip(part.labels, part.similarity, strict=True) if math.isnan(found)]
        if corrected and uncorrected:
            said.append(
                f"{part.of}: no corrected value for {', '.join(uncorrected)}, of whose pairs fewer than half have a "
                "ceiling; left out."
            )
    if any(len(part.labels) - np.count_nonzero(np.isnan(part.value)) < 4 for part in points):
        said.append("Under four points there is no interval, and a correlation says next to nothing.")
    what = "mean similarity to the others" if over == "subtasks" else "stability"
    what = f"corrected {what}" if corrected else what
    title = f"Spearman's rho of {what} ({how.prefix}{on} scores) with {metric}, over {over}: "
    title += count(len(points), "correlation")
    return Correlation(tuple(points), over, metric, on, title, tuple(dict.fromkeys(said)), how.short, corrected)


def interval(rho: float, n: int) -> tuple[float, float]:
    """The 95% interval of a rank correlation of n points; NaN for under 4, and for -1 and 1, where z has no value."""
    if n < 4 or not abs(rho) < 1:
        return math.nan, math.nan
    half = _Z * math.sqrt((1 + rho**2 / 2) / (n - 3))
    return math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half)


def p_value(a: Vector, b: Vector) -> float:
    """How often a permutation of b gives a |rho| as large; NaN where rho is undefined."""
    ranks = centred_ranks(np.stack((a, b)))
    if len(a) < 2 or not ranks.any(axis=1).all():
        return math.nan
    if len(a) <= _N_EXACT:
        orders = np.array(list(itertools.permutations(range(len(a)))))
        return float(np.mean(np.abs(ranks[1][orders] @ ranks[0]) >= abs(ranks[0] @ ranks[1]) - 1e-9))
    rng = np.random.default_rng(_SEED)
    orders = rng.permuted(np.tile(np.arange(len(a)), (_N_RANDOM, 1)), axis=1)
    as_large = np.abs(ranks[1][orders] @ ranks[0]) >= abs(ranks[0] @ ranks[1]) - 1e-9
    return float((1 + np.count_nonzero(as_large)) / (1 + _N_RANDOM))


def _row(points: Points) -> tuple[float, ...]:
    known = ~np.isnan(points.similarity) & ~np.isnan(points.value)
    a, b = points.similarity[known], points.value[known]
    rho = float(coefficient("spearman", a[None], b[None]).values[0, 0]) if len(a) > 1 else math.nan
    ceiling = points.ceiling[known]
    return (len(a), len(known) - len(a), rho, *interval(rho, len(a)), p_value(a, b), _mean(ceiling))


def _means(similarity: Similarity, apart: Mask, *, corrected: bool, whole: bool = False) -> tuple[Vector, Vector]:
    """(mean similarity, mean ceiling) of the pairs that are apart, [circuit] each, or with `whole` of all.

    Corrected only where as many pairs have a ceiling as for a stability.
    """
    axis = None if whole else 1
    known = apart & ~np.isnan(similarity.matrix)
    both = known & ~np.isnan(similarity.ceiling)
    n_both = both.sum(axis=axis)
    ceiling = _masked_mean(similarity.ceiling, both, axis)
    if not corrected:
        return _masked_mean(similarity.matrix, known, axis), ceiling
    enough = n_both >= LEAST_SHARE * known.sum(axis=axis)
    return np.where(enough, _masked_mean(similarity.matrix, both, axis) / ceiling, np.nan), ceiling


def _masked_mean(values: Vector, mask: Mask, axis: int | None) -> Vector:
    n = mask.sum(axis=axis)
    return np.where(n > 0, np.where(mask, values, 0.0).sum(axis=axis) / np.maximum(n, 1), np.nan)


def _mean(values: Vector) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else math.nan
