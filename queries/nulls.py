"""How much of a similarity any two circuits of the model share: what to expect where there is nothing to find.

- Permuted edges: the scores of one circuit are put in random order among edges of the same kind and layer of source and
  target. What is left is that some kinds of edges are stronger than others in every circuit. The mean and the standard
  deviation of the correlation over all such orders are exact (Hoeffding 1951), without drawing any: with a and b
  centred and scaled to length 1, and over strata s of n_s edges,

      mean = sum_s n_s mean_s(a) mean_s(b),    variance = sum_s SS_s(a) SS_s(b) / (n_s - 1),

  where SS_s is the sum of squares around the stratum's mean. A stratum of one edge stays as it is. Where scores are
  missing, all of this is over the edges that both circuits have: those of the similarity that it is set beside.
- Other tasks: the similarity to circuits of other tasks of the same model, scored in the same way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb.queries.coefficients import CORRECTABLE, coefficient, vectors
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.comparison import EVERY_EDGE, Comparison
from circuitdb.queries.matrix import ScoreMatrix
from circuitdb.queries.pairing import Matrix, Scores, blocks, part
from circuitdb.queries.result import Result, count
from circuitdb.queries.selection import Group, Member, Selection
from circuitdb.queries.similarity import Similarity

Strata = npt.NDArray[np.int64]
Places: TypeAlias = Sequence[Sequence[int]]
_MOST = 64  # circuits of other tasks


def permuted(scores: Scores, strata: Strata, kind: str = "spearman") -> tuple[Matrix, Matrix]:
    """([circuit, circuit] mean, standard deviation) of a coefficient of [circuit, edge], permuted within strata.

    Each pair is over the edges that both have, as its similarity is. NaN where one of them is constant over these.
    Raises UsageError for a kind whose null has no such formula.
    """
    mean, deviation = np.full((2, len(scores), len(scores)), np.nan)
    for block in blocks(scores):
        here, there = np.ix_(block.rows, block.others), np.ix_(block.others, block.rows)
        order, starts, sizes = _runs(strata if block.common is None else strata[block.common])
        if not len(sizes):
            continue
        first = _moments(part(scores, block.rows, block.common), kind, order, starts, sizes)
        second = first if block.same else _moments(part(scores, block.others, block.common), kind, order, starts, sizes)
        mean[here] = (first[0] / sizes) @ second[0].T
        deviation[here] = np.sqrt((first[1] / np.maximum(sizes - 1, 1)) @ second[1].T)
        if not block.same:
            mean[there], deviation[there] = mean[here].T, deviation[here].T
    return mean, deviation


def _runs(strata: Strata) -> tuple[Strata, Strata, Strata]:
    """(the edges ordered by stratum, where each stratum starts there, how many edges each has)."""
    sizes = np.unique(strata, return_counts=True)[1]
    return np.argsort(strata, kind="stable"), np.cumsum(sizes) - sizes, sizes


def _moments(scores: Scores, kind: str, order: Strata, starts: Strata, sizes: Strata) -> tuple[Matrix, Matrix]:
    """([circuit, stratum] sums, sums of squares around the stratum's mean) of the vectors of unit length."""
    values = vectors(kind, scores)
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    values = (values / np.where(lengths > 0, lengths, np.nan))[:, order]
    sums = np.add.reduceat(values, starts, axis=1)
    squares = np.clip(np.add.reduceat(values**2, starts, axis=1) - sums**2 / sizes, 0, None)
    squares[:, sizes == 1] = 0
    return sums, squares


@dataclass(frozen=True)
class Nulls:
    """What is expected of every pair of a selection: NaN where there is no such null.

    Attributes:
        mean, deviation: [circuit, circuit], under permutation within strata; None where edges are not compared one by
            one.
        elsewhere: [circuit], its mean similarity to circuits of other tasks.
        n_elsewhere: how many of these there are.
    """

    mean: Matrix | None
    deviation: Matrix | None
    elsewhere: Matrix
    n_elsewhere: int


def against(matrix: ScoreMatrix, strata: Strata | None, others: ScoreMatrix, places: Places, how: Comparison) -> Nulls:
    """The nulls of the circuits of a matrix; `places` are those of `others` that each may be compared with."""
    mean = deviation = None
    if strata is not None and how.kind in CORRECTABLE:
        mean, deviation = permuted(matrix.scores, strata, how.kind)
    joint = not how.nonzero
    found = coefficient(how.kind, matrix.scores, others.scores, top=how.top, joint_zeros=joint).values
    chosen = np.zeros(found.shape, bool)
    for row, columns in enumerate(places):
        chosen[row, columns] = True
    known = chosen & ~np.isnan(found)
    with np.errstate(invalid="ignore"):
        elsewhere = np.where(known, found, 0).sum(axis=1) / np.where(known.any(axis=1), known.sum(axis=1), np.nan)
    return Nulls(mean, deviation, elsewhere, len(others.labels))


def nulls(found: Similarity, expected: Nulls, how: Comparison = EVERY_EDGE) -> Result:
    """Every pair beside what is to be expected of it: see `Database.nulls`."""
    first, second = np.triu_indices(len(found.labels), 1)
    unknown = np.full(found.matrix.shape, np.nan)
    mean = unknown if expected.mean is None else expected.mean
    deviation = unknown if expected.deviation is None else expected.deviation
    with np.errstate(invalid="ignore", divide="ignore"):
        z = np.where(deviation > 0, (found.matrix - mean) / deviation, np.nan)
    values = {
        "similarity": found.matrix[first, second],
        "ceiling": found.ceiling[first, second],
        "permuted": mean[first, second],
        "permuted_sd": deviation[first, second],
        "z": z[first, second],
        "other_tasks": (expected.elsewhere[first] + expected.elsewhere[second]) / 2,
    }
    table = pa.table(
        {
            "a_id": integers((found.circuit_ids[i] for i in first), bits=32),
            "a": texts(found.labels[i] for i in first),
            "b_id": integers((found.circuit_ids[i] for i in second), bits=32),
            "b": texts(found.labels[i] for i in second),
            **{name: numbers(column) for name, column in values.items()},
        }
    )
    title = f"Similarity of {count(len(found.labels), 'circuit')} against chance: {how.words}, {found.on} scores"
    return Result(table, title, (*found.notes_elsewhere, *_explained(expected), *_means(values)))


def _explained(expected: Nulls) -> list[str]:
    notes = [
        "permuted is the mean similarity with the scores of one circuit in random order among edges of the same kind "
        "and layer; z says by how many standard deviations of that (permuted_sd) the similarity exceeds it."
        if expected.mean is not None
        else "There is a null of permuted edges for edge by edge, zeros too, and for "
        f"{', '.join(CORRECTABLE)}; permuted is NULL."
    ]
    if expected.n_elsewhere:
        notes.append(
            f"other_tasks is the mean similarity of the two to {count(expected.n_elsewhere, 'circuit')} of other tasks "
            "of the same model, scored in the same way."
        )
    else:
        notes.append(
            "There is no circuit of another task of the same model, scored in the same way; other_tasks is NULL."
        )
    return notes


def _means(values: dict[str, Matrix]) -> list[str]:
    known = {name: values[name][~np.isnan(values[name])] for name in ("similarity", "permuted", "other_tasks")}
    listed = [f"{name} {column.mean():.3f}" for name, column in known.items() if column.size]
    return [f"Means over the pairs: {', '.join(listed)}."] if len(listed) > 1 else []


def comparable(selection: Selection, everything: Selection) -> tuple[Selection, Places]:
    """(circuits of other tasks, at most 64 of them, evenly spread; of each selected one the places it compares with).

    They compare where all of the group but the task is the same.
    """

    def scoring(member: Member) -> Group:
        return dataclasses.replace(member.group, task="")

    ways = {(scoring(member), member.group.task) for member in selection.members}
    wanted = {way for way, _ in ways}
    found = [
        i
        for i, member in enumerate(everything.members)
        if scoring(member) in wanted and any(way == scoring(member) and task != member.group.task for way, task in ways)
    ]
    found = [found[i] for i in np.unique(np.linspace(0, len(found) - 1, min(len(found), _MOST)).round().astype(int))]
    others = everything.part(found)
    return others, [
        [
            i
            for i, other in enumerate(others.members)
            if scoring(other) == scoring(member) and other.group.task != member.group.task
        ]
        for member in selection.members
    ]
