"""Rank correlation of score vectors (Spearman 1904), all pairs by one matrix product.

1. Each row is ranked by one sort; equal values share the mean of their places (mid-ranks).
2. Ranks are centred on (n + 1) / 2. They are multiples of 1/2, so their products are exact in float64 and so are their
   sums up to some 300,000 edges.
3. rho = <a, b> / sqrt(<a, a> <b, b>), where all <a, b> come from one matrix product.
4. Rows with NaN are compared over the edges that both have, ranked anew among these.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Scores: TypeAlias = npt.NDArray[np.float32] | npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Correlations:
    """`rho` [row, other row] in -1..1, NaN where it is undefined; `n_edges` [row, other row], the edges it is over."""

    rho: Matrix
    n_edges: npt.NDArray[np.int64]


def midranks(matrix: Scores) -> Matrix:
    """Rank each row of [row, edge] from 1 up, ties averaged: scipy.stats.rankdata(axis=1). NaN keeps out of the ranks.

    -0.0 and 0.0 are equal.
    """
    ranks = np.empty(matrix.shape)
    places = np.arange(1.0, matrix.shape[1] + 1)
    for row, out in zip(matrix, ranks, strict=True):
        _rank(row, places, out)
    return ranks


def spearman(matrix: Scores, other: Scores | None = None) -> Correlations:
    """Spearman's rho of the rows of [row, edge] with each other, or with the rows of `other` [other row, edge].

    Equals scipy.stats.spearmanr to rounding. NaN where either row is constant over the common edges, or has fewer than
    two: no agreement is 0, but nothing to agree on is undefined. Among the rows of one matrix the result is exactly
    symmetric, with exactly 1 on the diagonal.
    """
    second = matrix if other is None else other
    rho = np.full((len(matrix), len(second)), np.nan)
    n_edges = np.zeros(rho.shape, np.int64)
    patterns = _patterns(matrix)
    for (rows, has), (others, theirs) in product(patterns, patterns if other is None else _patterns(second)):
        if other is None and others[0] < rows[0]:
            continue
        common = has & theirs
        centred = _centred(matrix, rows, common)
        same = other is None and others[0] == rows[0]
        values = _correlate(centred, centred if same else _centred(second, others, common))
        rho[np.ix_(rows, others)] = values
        n_edges[np.ix_(rows, others)] = np.count_nonzero(common)
        if other is None:
            rho[np.ix_(others, rows)] = values.T
            n_edges[np.ix_(others, rows)] = np.count_nonzero(common)
    if other is None:
        rho = np.triu(rho) + np.triu(rho, 1).T
        np.fill_diagonal(rho, np.where(np.isnan(np.diag(rho)), np.nan, 1.0))
    return Correlations(np.clip(rho, -1.0, 1.0), n_edges)


def _rank(values: Scores, places: Matrix, out: Matrix) -> None:
    missing = np.isnan(values)
    some_missing = bool(missing.any())
    order, ordered = _sorted(values, packed=values.dtype == np.float32 and not some_missing)
    fresh = np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(values)]
    if fresh.all():
        out[order] = places
    else:
        starts = np.flatnonzero(fresh)
        sizes = np.diff(starts, append=len(values))
        out[order] = np.repeat(starts + (sizes + 1) / 2, sizes)
    if some_missing:
        out[missing] = np.nan


def _sorted(values: Scores, *, packed: bool) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.generic]]:
    """(indices of the values in ascending order, something that is equal where the sorted values are)."""
    if not packed:
        order = np.argsort(values)
        return order, values[order]
    # Score and index in one whole number: its sort takes half the time of an argsort. Adding 0 makes -0.0 into 0.0; the
    # bits of a float32 are in the order of its values once those below the sign are turned round for negative ones.
    bits = (values + np.float32(0)).view(np.int32).astype(np.int64)
    keys = ((bits ^ ((bits >> 63) & 0x7FFFFFFF)) << 32) | np.arange(len(values))
    keys.sort()
    return keys & 0xFFFFFFFF, keys >> 32


def _patterns(matrix: Scores) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]]:
    """Rows that have values at the same edges, with these edges: (indices, [edge] mask), by their first row."""
    lacking = set(np.flatnonzero(np.isnan(matrix).any(axis=1)).tolist())
    everywhere = np.ones(matrix.shape[1], bool)
    parts: dict[bytes, list[int]] = {}
    masks: dict[bytes, npt.NDArray[np.bool_]] = {}
    for i in range(len(matrix)):
        mask = ~np.isnan(matrix[i]) if i in lacking else everywhere
        key = np.packbits(mask).tobytes() if i in lacking else b""
        parts.setdefault(key, []).append(i)
        masks[key] = mask
    return [(np.array(rows), masks[key]) for key, rows in parts.items()]


def _centred(matrix: Scores, rows: npt.NDArray[np.int64], common: npt.NDArray[np.bool_]) -> Matrix:
    part = matrix if len(rows) == len(matrix) else matrix[rows]
    ranks = midranks(part if common.all() else part[:, common])
    ranks -= (ranks.shape[1] + 1) / 2
    return ranks


def _correlate(a: Matrix, b: Matrix) -> Matrix:
    products = a @ b.T
    squares_a = np.diag(products) if a is b else np.einsum("ij,ij->i", a, a)
    squares_b = squares_a if a is b else np.einsum("ij,ij->i", b, b)
    with np.errstate(invalid="ignore", divide="ignore"):
        return products / np.sqrt(np.outer(squares_a, squares_b))
