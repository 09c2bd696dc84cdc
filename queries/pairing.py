"""Every pair of rows over the edges that both have: pairwise complete, with few products where few gaps differ.

1. Rows that lack the same scores, and with `joint_zeros=False` are zero at the same edges, share a pattern.
2. Each pair of patterns is compared once, over the edges that both have; of these, those that are zero in both are left
   out on request.
3. Among the rows of one matrix the result is exactly symmetric, with exactly 1 on the diagonal where it is defined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
class Block:
    """Rows (indices) that all meet each other over the same edges.

    Attributes:
        rows, others: which meet.
        common: the edges that they meet over; None is all of them.
        same: whether the rows meet themselves.
    """

    rows: npt.NDArray[np.int64]
    others: npt.NDArray[np.int64]
    common: Mask | None
    same: bool


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
    for block in blocks(matrix, other, joint_zeros=joint_zeros):
        a = part(matrix, block.rows, block.common)
        found = compare(a, a if block.same else part(second, block.others, block.common))
        size = matrix.shape[1] if block.common is None else int(np.count_nonzero(block.common))
        here, there = np.ix_(block.rows, block.others), np.ix_(block.others, block.rows)
        values[here], n_edges[here] = found, size
        if other is None:
            values[there], n_edges[there] = found.T, size
    if other is None:
        values = np.triu(values) + np.triu(values, 1).T
        np.fill_diagonal(values, np.where(np.isnan(np.diag(values)), np.nan, 1.0))
    return Pairs(values, n_edges)


def blocks(matrix: Scores, other: Scores | None = None, *, joint_zeros: bool = True) -> Iterator[Block]:
    """All pairs of rows of [row, edge], or of one of these and one of `other`, in blocks that have the same edges.

    Among the rows of one matrix two patterns meet once: the block of the one with the other stands for both.
    """
    patterns = _patterns(matrix, joint_zeros)
    for one, two in product(patterns, patterns if other is None else _patterns(other, joint_zeros)):
        if other is not None or one.rows[0] <= two.rows[0]:
            yield Block(one.rows, two.rows, _common(one, two), other is None and one is two)


def part(matrix: Scores, rows: npt.NDArray[np.int64], common: Mask | None) -> Scores:
    """Some rows of [row, edge], at the common edges."""
    chosen = matrix if len(rows) == len(matrix) else matrix[rows]
    return chosen if common is None else chosen[:, common]


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
