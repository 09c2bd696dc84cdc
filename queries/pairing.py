"""Every pair of rows over the edges that both have: pairwise complete, with few products where few gaps differ.

1. Rows that lack the same scores, and with `joint_zeros=False` are zero at the same edges, share a pattern.
2. Each pair of patterns is compared once, over the edges that both have; of these, those that are zero in both are left
   out on request.
3. Among the rows of one matrix the result is exactly symmetric, with exactly 1 on the diagonal where it is defined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Scores: TypeAlias = npt.NDArray[np.float32] | npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
# [row, edge] and [other row, edge] without gaps, the same object where rows meet themselves -> [row, other row].
Compare: TypeAlias = Callable[[Scores, Scores], Matrix]


@dataclass(frozen=True)
class Pairs:
    """`values` [row, other row], NaN where undefined; `n_edges` [row, other row], the edges each is over."""

    values: Matrix
    n_edges: npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Pattern:
    """Rows (indices) that have a score at the same edges, and are not zero at the same ones; None: at all edges."""

    rows: npt.NDArray[np.int64]
    known: Mask | None
    nonzero: Mask | None


def paired(matrix: Scores, other: Scores | None, compare: Compare, *, joint_zeros: bool = True) -> Pairs:
    """Compare the rows of [row, edge] with each other, or with the rows of `other` [other row, edge].

    `joint_zeros=False` leaves out, pair by pair, the edges whose score is zero in both.
    """
    second = matrix if other is None else other
    values = np.full((len(matrix), len(second)), np.nan)
    n_edges = np.zeros(values.shape, np.int64)
    patterns = _patterns(matrix, joint_zeros)
    for one, two in product(patterns, patterns if other is None else _patterns(second, joint_zeros)):
        if other is None and two.rows[0] < one.rows[0]:
            continue
        common = _common(one, two)
        a = _part(matrix, one.rows, common)
        same = other is None and one is two
        block = compare(a, a if same else _part(second, two.rows, common))
        size = matrix.shape[1] if common is None else int(np.count_nonzero(common))
        values[np.ix_(one.rows, two.rows)], n_edges[np.ix_(one.rows, two.rows)] = block, size
        if other is None:
            values[np.ix_(two.rows, one.rows)], n_edges[np.ix_(two.rows, one.rows)] = block.T, size
    if other is None:
        values = np.triu(values) + np.triu(values, 1).T
        np.fill_diagonal(values, np.where(np.isnan(np.diag(values)), np.nan, 1.0))
    return Pairs(values, n_edges)


def _patterns(matrix: Scores, joint_zeros: bool) -> list[_Pattern]:
    """By their first row."""
    gaps = set(np.flatnonzero(np.isnan(matrix).any(axis=1)).tolist())
    zeros = set() if joint_zeros else set(np.flatnonzero((matrix == 0).any(axis=1)).tolist())
    parts: dict[tuple[bytes, bytes], list[int]] = {}
    masks: dict[tuple[bytes, bytes], tuple[Mask | None, Mask | None]] = {}
    for i, row in enumerate(matrix):
        known = ~np.isnan(row) if i in gaps else None
        nonzero = row != 0 if i in zeros else None
        key = (_bytes(known), _bytes(nonzero))
        parts.setdefault(key, []).append(i)
        masks[key] = known, nonzero
    return [_Pattern(np.array(rows), *masks[key]) for key, rows in parts.items()]


def _bytes(mask: Mask | None) -> bytes:
    return b"" if mask is None else np.packbits(mask).tobytes()


def _common(one: _Pattern, two: _Pattern) -> Mask | None:
    """The edges to compare; None is all of them."""
    masks = [mask for mask in (one.known, two.known) if mask is not None]
    if one.nonzero is not None and two.nonzero is not None:
        masks.append(one.nonzero | two.nonzero)
    return np.logical_and.reduce(masks) if masks else None


def _part(matrix: Scores, rows: npt.NDArray[np.int64], common: Mask | None) -> Scores:
    part = matrix if len(rows) == len(matrix) else matrix[rows]
    return part if common is None else part[:, common]
