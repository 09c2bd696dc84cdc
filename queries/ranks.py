"""Rank correlation of score vectors (Spearman 1904), all pairs by one matrix product.

1. Each row is ranked by one sort; equal values share the mean of their places (mid-ranks).
2. Ranks are centred on (n + 1) / 2. They are multiples of 1/2, so their products are exact in float64 and so are their
   sums up to some 300,000 edges.
3. rho = <a, b> / sqrt(<a, a> <b, b>), where all <a, b> come from one matrix product.
4. Rows with NaN are compared over the edges that both have, ranked anew among these.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from circuitdb.queries.pairing import Matrix, Scores
from circuitdb.sorting import ascending


def midranks(matrix: Scores) -> Matrix:
    """Rank each row of [row, edge] from 1 up, ties averaged: scipy.stats.rankdata(axis=1). NaN keeps out of the ranks.

    -0.0 and 0.0 are equal.
    """
    return _ranked(matrix, np.arange(1.0, matrix.shape[1] + 1))


def centred_ranks(matrix: Scores) -> Matrix:
    """Mid-ranks of [row, edge] without gaps, less their mean."""
    n = matrix.shape[1]
    return _ranked(matrix, np.arange(n) - (n - 1) / 2)


def correlated(a: Matrix, b: Matrix) -> Matrix:
    """Cosines of the rows of `a` and of `b`, [row, other row], in -1..1; NaN where a row is all zeros."""
    products = a @ b.T
    squares_a = np.diag(products) if a is b else np.einsum("ij,ij->i", a, a)
    squares_b = squares_a if a is b else np.einsum("ij,ij->i", b, b)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.clip(products / np.sqrt(np.outer(squares_a, squares_b)), -1.0, 1.0)


def _ranked(matrix: Scores, places: Matrix) -> Matrix:
    """[row, edge]: the places of the scores of each row in ascending order, equal ones sharing the mean of theirs."""
    ranks = np.empty(matrix.shape)
    for row, out in zip(matrix, ranks, strict=True):
        missing = np.isnan(row)
        some_missing = bool(missing.any())
        order, ordered = _sorted(row) if some_missing or row.dtype != np.float32 else ascending(row)
        out[order] = _shared(places, np.flatnonzero(ordered[1:] == ordered[:-1]))
        if some_missing:
            out[missing] = np.nan
    return ranks


def _shared(places: Matrix, tied: npt.NDArray[np.int64]) -> Matrix:
    """The places in ascending order, where each of `tied` shares its own with the next."""
    if not len(tied):
        return places
    first = np.flatnonzero(np.diff(tied, prepend=-2) != 1)
    sizes = np.diff(first, append=len(tied)) + 1
    starts = tied[first]
    # The places of one run after the other: its start, and 0, 1, 2 ... from there.
    runs = np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    shared = places.copy()
    shared[runs] = np.repeat((places[starts] + places[starts + sizes - 1]) / 2, sizes)
    return shared


def _sorted(values: Scores) -> tuple[npt.NDArray[np.int64], Scores]:
    """(places of the values in ascending order, the sorted values)."""
    order = np.argsort(values)
    return order, values[order]
