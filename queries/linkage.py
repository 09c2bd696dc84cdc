"""Hierarchical clustering of circuits, exact in the similarities at which clusters join.

1. Single and complete linkage depend on the order of the similarities alone. So SciPy is given their places from the
   highest, 1, 2, ..., as distances, and each height is turned back into the similarity that it stands for.
2. Single linkage joins two clusters at the highest similarity between them, complete linkage at the lowest: every pair
   within a cluster then reaches the height of its join.
3. Circuits without a similarity are the farthest apart, and what joins there is no join.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from circuitdb.queries.pairing import Matrix


@dataclass(frozen=True)
class Tree:
    """Joins of clusters by falling similarity. Clusters 0..n-1 are the circuits, n + i is what join i makes.

    Attributes:
        joins: int64 [join, 2], the clusters that are joined, the one with the earlier circuit first.
        heights: [join], the similarity at which they are; NaN where there is none.
        n: circuits.
    """

    joins: npt.NDArray[np.int64]
    heights: Matrix
    n: int

    def members(self) -> list[list[int]]:
        """The circuits of every cluster, ascending."""
        found = [[i] for i in range(self.n)]
        for a, b in self.joins.tolist():
            found.append(sorted(found[a] + found[b]))
        return found

    def order(self) -> list[int]:
        """The circuits from the left of the dendrogram to the right."""
        found = [[i] for i in range(self.n)]
        for a, b in self.joins.tolist():
            found.append(found[a] + found[b])
        return found[-1] if found else []

    def cut(self, alpha: float) -> npt.NDArray[np.int64]:
        """[circuit]: a number of its cluster once all joins of similarity >= alpha are made."""
        label = np.arange(self.n)
        members = self.members()
        for i, height in enumerate(self.heights):
            if height >= alpha:
                label[members[self.n + i]] = members[self.n + i][0]
        return label


def tree(values: Matrix, method: str = "single") -> Tree:
    """The tree of symmetric similarities [circuit, circuit]; the diagonal is not looked at, and NaN joins nothing."""
    n = len(values)
    if n < 2:
        return Tree(np.empty((0, 2), np.int64), np.empty(0), n)
    from scipy.cluster.hierarchy import linkage  # a third of a second to import

    pairs = values[np.triu_indices(n, 1)]
    levels, places = np.unique(-pairs[~np.isnan(pairs)], return_inverse=True)
    distances = np.full(len(pairs), len(levels) + 1.0)
    distances[~np.isnan(pairs)] = places + 1.0
    found = linkage(distances, method)
    heights = np.append(0.0 - levels, np.nan)[found[:, 2].astype(np.int64) - 1]
    return Tree(_ordered(found[:, :2].astype(np.int64), n), heights, n)


def ceilings(found: Tree, values: Matrix, ceiling: Matrix) -> Matrix:
    """[join]: the ceiling of the pair whose similarity is the height of the join (of equals the first); NaN for none.

    `values` are those that the tree was made of; `ceiling` [circuit, circuit] as in `Similarity`.
    """
    members = found.members()
    limits = np.full(len(found.heights), np.nan)
    for i, ((a, b), height) in enumerate(zip(found.joins.tolist(), found.heights, strict=True)):
        between = np.ix_(members[a], members[b])
        pairs = np.argwhere(values[between] == height)
        if len(pairs):
            limits[i] = ceiling[between][tuple(pairs[0])]
    return limits


def _ordered(joins: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.int64]:
    first = list(range(n))
    found = []
    for a, b in joins.tolist():
        found.append((a, b) if first[a] < first[b] else (b, a))
        first.append(min(first[a], first[b]))
    return np.array(found, np.int64)
