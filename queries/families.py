"""Circuit families (Definition 5 of the paper): circuits are alpha-equivalent if their similarity is at least alpha.

The relation is not transitive, so that there are two readings of a family, and both are given:

- a connected component of it (single linkage): two members may be joined by a chain of others and be less similar than
  alpha themselves;
- a class in which every pair reaches alpha (complete linkage). Such classes are not unique: these are those that come
  of joining, again and again, the two classes whose lowest similarity is the highest.

The lowest and the mean similarity within are reported for both, each beside its ceiling.

Of corrected similarities some may be over 1. They join where they are, at alpha over 1; where one counts as 1 (in the
choice of an alpha, as a distance of silhouettes) a note says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from circuitdb.queries import arguments
from circuitdb.queries.columns import flags, integers, numbers, texts
from circuitdb.queries.linkage import ceilings, tree
from circuitdb.queries.pairing import Matrix
from circuitdb.queries.result import Result, count, enumeration
from circuitdb.queries.silhouette import silhouettes
from circuitdb.queries.similarity import Similarity, capped


@dataclass(frozen=True)
class Family:
    """Rows of the similarity matrix, the most typical one (medoid), the lowest and the mean similarity of two members.

    `ends` are the two rows that have the lowest; None where no two have a similarity.
    """

    name: str
    rows: tuple[int, ...]
    medoid: int
    lowest: float
    mean: float
    ends: tuple[int, int] | None


def families(
    similarity: Similarity, alpha: float | None = None, *, corrected: bool = False, every_pair: bool = False
) -> Result:
    """The families at `alpha`, one row a circuit: see `Database.families`."""
    values = similarity.values(corrected=corrected)
    if alpha is not None:
        alpha = arguments.real("alpha is a similarity, such as 0.6", alpha)
    level, reason = (alpha, None) if alpha is not None else useful_alpha(values, every_pair=every_pair)
    found = classes(values, level) if every_pair else components(values, level)
    title = f"{count(len(found), *_noun(every_pair))} of {count(len(values), 'circuit')} at alpha = {level:.4g} "
    title += f"({similarity.kind(corrected)}{', every pair in a class' if every_pair else ''})"
    title += f": {reason}" if reason else ""
    members = [(family, row) for family in found for row in family.rows]
    rows = [row for _, row in members]
    label = np.zeros(len(values), np.int64)
    for i, family in enumerate(found):
        label[list(family.rows)] = i
    table = pa.table(
        {
            "family": texts(family.name for family, _ in members),
            "size": integers((len(family.rows) for family, _ in members), bits=32),
            "circuit_id": integers((similarity.circuit_ids[row] for row in rows), bits=32),
            "subtask": texts(similarity.labels[row] for row in rows),
            "medoid": flags(row == family.medoid for family, row in members),
            **_within(found, values, similarity.ceiling),
            "silhouette": numbers(silhouettes(values, label)[rows]),
            "reliability": numbers(similarity.reliabilities[rows]),
        }
    )
    notes = (*similarity.notes_elsewhere, *_chains(found, level), *_left_out(similarity, values))
    notes += capped(values, "For silhouettes" if reason is None else "For silhouettes and the choice of alpha")
    if not corrected and abs(level) > 1:
        notes += (f"Every similarity is between -1 and 1, so alpha = {level:.4g} says nothing; give one in between.",)
    return Result(table, title, notes)


def family_sweep(similarity: Similarity, *, corrected: bool = False, every_pair: bool = False) -> Result:
    """The number of families at every alpha where it changes: see `Database.family_sweep`."""
    values = similarity.values(corrected=corrected)
    alphas, at, above = sweep(values, every_pair=every_pair)
    families, more = integers(at, bits=32), integers(above, bits=32)
    table = pa.table({"alpha": numbers(alphas), "n_families": families, "n_above": more})
    what = "Classes in which every pair reaches alpha, of" if every_pair else "Families of"
    title = f"{what} {count(len(values), 'circuit')} against alpha ({similarity.kind(corrected)})"
    explanation = "n_families holds at this alpha and below it down to the row before, n_above just above it."
    return Result(table, title, (*similarity.notes_on_alpha(corrected), explanation, *_left_out(similarity, values)))


def dendrogram(similarity: Similarity, *, corrected: bool = False, every_pair: bool = False) -> Result:
    """The joins of families as alpha falls, one row each: see `Database.dendrogram`."""
    values = similarity.values(corrected=corrected)
    found = tree(values, _method(every_pair))
    members, labels = found.members(), similarity.labels
    made = [i for i, height in enumerate(found.heights) if not math.isnan(height)]
    joins = found.joins[made]

    def listed(clusters: Iterable[int]) -> pa.Array:
        return texts(enumeration(labels[i] for i in members[cluster]) for cluster in clusters)

    table = pa.table(
        {
            "step": integers(range(1, len(made) + 1), bits=32),
            "alpha": numbers(found.heights[made]),
            "n_families": integers((len(values) - 1 - i for i in range(len(made))), bits=32),
            "size": integers((len(members[found.n + i]) for i in made), bits=32),
            "first": listed(joins[:, 0].tolist()),
            "second": listed(joins[:, 1].tolist()),
            "ceiling": numbers(ceilings(found, values, similarity.ceiling)[made]),
        }
    )
    order = f"From left to right: {enumeration((labels[i] for i in found.order()), most=100)}."
    what = "complete" if every_pair else "single"
    title = f"Dendrogram of {count(len(values), 'circuit')} ({similarity.kind(corrected)}), {what} linkage"
    return Result(table, title, (*similarity.notes_on_alpha(corrected), *([order] if labels else [])))


def components(values: Matrix, alpha: float) -> list[Family]:
    """Connected components of similarity >= alpha; largest first, then by their first row. NaN joins nothing."""
    if not len(values):
        return []
    from scipy.sparse.csgraph import connected_components  # a third of a second to import

    with np.errstate(invalid="ignore"):
        _, labels = connected_components(values >= alpha, directed=False)
    return _families(values, labels.tolist())


def classes(values: Matrix, alpha: float) -> list[Family]:
    """Classes by complete linkage in which every pair reaches alpha; largest first, then by their first row."""
    return _families(values, tree(values, "complete").cut(alpha).tolist())


def merges(values: Matrix, *, every_pair: bool = False) -> Matrix:
    """The similarities at which two families join, ascending, exactly."""
    heights = tree(values, _method(every_pair)).heights
    return np.sort(heights[~np.isnan(heights)])


def sweep(values: Matrix, *, every_pair: bool = False) -> tuple[Matrix, list[int], list[int]]:
    """(alphas ascending, number of families at each, number just above each)."""
    heights = merges(values, every_pair=every_pair)
    alphas, first = np.unique(heights, return_index=True)
    least = len(values) - len(heights)
    at = [least + int(i) for i in first]
    return alphas, at, [*at[1:], len(values)][: len(at)]


def useful_alpha(values: Matrix, *, every_pair: bool = False) -> tuple[float, str]:
    """An alpha for when none is given, and why: the middle of the widest range with neither one family nor all apart.

    The number of families that stays the same over the widest range of alpha is the one that depends least on the
    choice. Where no alpha gives anything between, the highest at which all are joined is taken. Corrected similarities
    count as at most 1 here: what they exceed it by is noise, and no range to choose from.
    """
    alphas, _, _ = sweep(np.clip(values, -1, 1), every_pair=every_pair)
    if len(alphas) < 2:
        level = float(alphas[0]) if len(alphas) else 0.0
        return level, "no alpha parts these circuits into more than one family and fewer than all"
    widest = int(np.argmax(np.diff(alphas)))
    low, high = float(alphas[widest]), float(alphas[widest + 1])
    why = f"the middle of the widest range of alpha, {low:.3f} to {high:.3f}, with neither one family nor all apart"
    return (low + high) / 2, why


def _families(values: Matrix, labels: Sequence[int]) -> list[Family]:
    groups: dict[int, list[int]] = {}
    for row, label in enumerate(labels):
        groups.setdefault(label, []).append(row)
    ordered = sorted(groups.values(), key=lambda rows: (-len(rows), rows[0]))
    return [_family(_letters(i), rows, values[np.ix_(rows, rows)]) for i, rows in enumerate(ordered)]


def _method(every_pair: bool) -> str:
    return "complete" if every_pair else "single"


def _noun(every_pair: bool) -> tuple[str, str]:
    return ("class", "classes") if every_pair else ("family", "families")


def _family(name: str, rows: list[int], within: Matrix) -> Family:
    others = np.where(np.eye(len(rows), dtype=bool), np.nan, within)
    if len(rows) == 1:
        return Family(name, tuple(rows), rows[0], math.nan, math.nan, None)
    known = ~np.isnan(others)
    means = np.where(known, others, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    first, second = divmod(int(np.nanargmin(others)), len(rows))
    ends = (rows[first], rows[second])
    medoid = rows[int(np.argmax(means))]
    return Family(name, tuple(rows), medoid, float(others[first, second]), float(others[known].mean()), ends)


def _within(found: Sequence[Family], values: Matrix, ceiling: Matrix) -> dict[str, pa.Array]:
    """The columns on the pairs of each family: the lowest and the mean similarity, and what these could reach."""
    rows: list[tuple[float, ...]] = []
    for family in found:
        block = np.ix_(family.rows, family.rows)
        limits = np.where(np.isnan(values[block]), np.nan, ceiling[block])[np.triu_indices(len(family.rows), 1)]
        known = limits[~np.isnan(limits)]
        lowest = math.nan if family.ends is None else float(ceiling[family.ends])
        within = (family.lowest, lowest, family.mean, float(known.mean()) if known.size else math.nan)
        rows += [within] * len(family.rows)
    names = ("lowest_within", "lowest_ceiling", "mean_within", "mean_ceiling")
    return dict(zip(names, map(numbers, np.array(rows, np.float64).reshape(-1, len(names)).T), strict=True))


def _letters(i: int) -> str:
    """A, B, ..., Z, AA, AB, ..."""
    text = ""
    i += 1
    while i:
        i, rest = divmod(i - 1, 26)
        text = chr(ord("A") + rest) + text
    return text


def _chains(found: list[Family], alpha: float) -> list[str]:
    chained = [family.name for family in found if family.lowest < alpha]
    if not chained:
        return []
    word = "Family" if len(chained) == 1 else "Families"
    return [
        f"{word} {enumeration(chained)}: held together by a chain, since two members are less similar than alpha "
        "(lowest_within); alpha-equivalence is not transitive."
    ]


def _left_out(similarity: Similarity, values: Matrix) -> list[str]:
    missing = np.isnan(values) | np.eye(len(values), dtype=bool)
    alone = [similarity.labels[i] for i in np.flatnonzero(missing.all(axis=1))]
    if not alone or len(values) < 2:
        return []
    return [f"{enumeration(alone)}: no similarity to any other circuit, so a family of its own at every alpha."]
