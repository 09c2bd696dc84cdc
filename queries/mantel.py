"""The Mantel test (1967): do circuits that are far apart on a grid have less similar scores?

1. rho is Spearman's correlation of similarity and distance over all pairs of circuits.
2. Pairs share circuits, so p comes from permuting the circuits of one of the two matrices, rows and columns together:
   all permutations of up to 7 circuits, else 9,999 random ones; two-sided.
3. A circuit without a similarity to some other is left out: a permutation must leave every pair its value.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from circuitdb.queries.pairing import Matrix
from circuitdb.queries.ranks import centred_ranks

_N_EXACT, _N_RANDOM, _SEED = 7, 9_999, 0
_AT_ONCE = 2_000_000  # values that are gathered in one go
_TINY = 1e-9  # by which equal correlations may differ


@dataclass(frozen=True)
class Mantel:
    """`rho` and two-sided `p`, NaN where undefined; `n` circuits that it is over."""

    rho: float
    p: float
    n: int


def mantel(similarity: Matrix, distance: Matrix) -> Mantel:
    """The rank correlation of two symmetric matrices [circuit, circuit]; their diagonals are not looked at."""
    kept = complete(similarity)
    n = len(kept)
    rows, columns = np.triu_indices(n, 1)
    if n < 3:
        return Mantel(math.nan, math.nan, n)
    here = np.ix_(kept, kept)
    own, far = (centred_ranks(values[here][rows, columns][None])[0] for values in (similarity, distance))
    scale = math.sqrt(float(own @ own) * float(far @ far))
    if not scale:
        return Mantel(math.nan, math.nan, n)
    observed = float(own @ far) / scale
    square = np.zeros((n, n))
    square[rows, columns] = square[columns, rows] = far
    exact = n <= _N_EXACT
    if exact:
        orders = np.array(list(itertools.permutations(range(n))))
    else:
        orders = np.random.default_rng(_SEED).permuted(np.tile(np.arange(n), (_N_RANDOM, 1)), axis=1)
    extreme = 0
    step = max(_AT_ONCE // len(rows), 1)
    for start in range(0, len(orders), step):
        part = orders[start : start + step]
        permuted = square[part[:, rows], part[:, columns]] @ own / scale
        extreme += int(np.count_nonzero(np.abs(permuted) >= abs(observed) - _TINY))
    return Mantel(observed, extreme / len(orders) if exact else (1 + extreme) / (1 + len(orders)), n)


def complete(values: Matrix) -> list[int]:
    """The circuits that are left when, as long as a pair lacks its value, the one that lacks most is left out."""
    missing = np.isnan(values) & ~np.eye(len(values), dtype=bool)
    kept = list(range(len(values)))
    while kept:
        lacking = missing[np.ix_(kept, kept)].sum(axis=1)
        if not lacking.any():
            break
        kept.pop(len(kept) - 1 - int(np.argmax(lacking[::-1])))
    return kept
