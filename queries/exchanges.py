"""Permutation tests over pairs of circuits that have none in common, such as (a, b) and (b, a).

- Matching: are the two of a pair more alike than two of its kind that do not belong together? The partners within a
  stratum, such as the pairs of one difference of digits, are exchanged; the mean over the pairs is the statistic, and p
  is one-sided.
- Sign flips: is the mean of differences other than zero? Under the hypothesis each has either sign (Fisher 1935); p is
  two-sided.

All exchanges where there are up to 9,999, else so many random ones, counted as in Phipson and Smyth (2010).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from circuitdb.queries.pairing import Matrix
from circuitdb.queries.resampling import around

_N_RANDOM, _SEED, _TINY = 9_999, 0, 1e-12


@dataclass(frozen=True)
class Matching:
    """Mean over the pairs, and if partners are exchanged; one-sided p; `ways` to exchange them. NaN where undefined."""

    mean: float
    exchanged: float
    p: float
    ways: int


@dataclass(frozen=True)
class Mean:
    """Mean of independent values, its 95% interval by Student's t, two-sided p that it is zero; of `n`."""

    mean: float
    low: float
    high: float
    p: float
    n: int


def matching(values: Matrix, pairs: Sequence[tuple[int, int]], strata: Sequence[int]) -> Matching:
    """Compare pairs (row, column) of similarities with those of exchanged partners, each within its stratum."""
    if not pairs:
        return Matching(math.nan, math.nan, math.nan, 1)
    first, second = np.array(pairs).T
    groups = [np.flatnonzero(np.array(strata) == stratum) for stratum in dict.fromkeys(strata)]
    ways = math.prod(math.factorial(len(group)) for group in groups)
    found = _mean(values[first, second][None])[0]
    exact = ways <= _N_RANDOM
    places = _all_orders(groups, len(first)) if exact else _random_orders(groups, len(first))
    means = _mean(values[first[None], second[places]])
    extreme = int(np.count_nonzero(means >= found - _TINY))
    p = extreme / len(means) if exact else (1 + extreme) / (1 + len(means))
    # Over all exchanges each of a stratum gets each partner equally often.
    expected = np.concatenate([_mean(values[np.ix_(first[group], second[group])]) for group in groups])
    undefined = math.isnan(found) or ways == 1
    return Matching(float(found), float(_mean(expected[None])[0]), math.nan if undefined else p, ways)


def clustered(values: npt.NDArray[np.float64], shared: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """[cluster]: the mean of the values that share a circuit, by its number; NaN where none is known.

    Pairs of one circuit with several are not independent; their means over each such circuit are.
    """
    return np.array([_mean(values[shared == one][None])[0] for one in dict.fromkeys(shared.tolist())])


def mean(values: npt.NDArray[np.float64]) -> Mean:
    """The mean of those that are not NaN; the interval takes two of them, p one."""
    known = values[~np.isnan(values)]
    n = len(known)
    if not n:
        return Mean(math.nan, math.nan, math.nan, math.nan, 0)
    found = float(known.mean())
    low, high = around(found, float(known.std(ddof=1)) / math.sqrt(n), n - 1) if n > 1 else (math.nan, math.nan)
    return Mean(found, low, high, sign_flips(known), n)


def mean_gap(values: npt.NDArray[np.float64]) -> Mean:
    """The mean of differences of two shares: as `mean`, with the interval cut to what such a mean can be, -1 to 1."""
    found = mean(values)
    low, high = np.clip([found.low, found.high], -1.0, 1.0).tolist()
    return replace(found, low=low, high=high)


def ratio(above: npt.NDArray[np.float64], below: npt.NDArray[np.float64]) -> Mean:
    """The mean of the one divided by that of the other, over items that have both; no p.

    The interval is that of a ratio of means: with residuals above - ratio * below, their standard error over the mean
    of `below`. A mean of ratios would be ruled by the items whose divisor is near 0.
    """
    known = ~np.isnan(above) & ~np.isnan(below)
    one, other, n = above[known], below[known], int(np.count_nonzero(known))
    if not n:
        return Mean(math.nan, math.nan, math.nan, math.nan, 0)
    found = float(one.mean() / other.mean())
    if n < 2:
        return Mean(found, math.nan, math.nan, math.nan, n)
    error = float((one - found * other).std(ddof=1)) / math.sqrt(n) / float(other.mean())
    return Mean(found, *around(found, error, n - 1), math.nan, n)


def sign_flips(values: npt.NDArray[np.float64]) -> float:
    """Two-sided p that the mean of differences is zero."""
    n = len(values)
    exact = 2**n <= _N_RANDOM
    if exact:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=n)))
    else:
        signs = np.random.default_rng(_SEED).choice((-1.0, 1.0), size=(_N_RANDOM, n))
    extreme = int(np.count_nonzero(np.abs(signs @ values) >= abs(values.sum()) - _TINY))
    return extreme / len(signs) if exact else (1 + extreme) / (1 + len(signs))


def _mean(values: Matrix) -> Matrix:
    """[row]: the mean of those that are not NaN."""
    known = ~np.isnan(values)
    n = known.sum(axis=1)
    return np.where(n > 0, np.where(known, values, 0.0).sum(axis=1) / np.maximum(n, 1), np.nan)


def _all_orders(groups: Sequence[npt.NDArray[np.int64]], n: int) -> npt.NDArray[np.int64]:
    """[exchange, pair]: whose partner each pair gets."""
    orders = [list(itertools.permutations(group.tolist())) for group in groups]
    found = np.empty((math.prod(map(len, orders)), n), np.int64)
    for row, chosen in zip(found, itertools.product(*orders), strict=True):
        for group, order in zip(groups, chosen, strict=True):
            row[group] = order
    return found


def _random_orders(groups: Sequence[npt.NDArray[np.int64]], n: int) -> npt.NDArray[np.int64]:
    rng = np.random.default_rng(_SEED)
    found = np.empty((_N_RANDOM, n), np.int64)
    for group in groups:
        found[:, group] = rng.permuted(np.tile(group, (_N_RANDOM, 1)), axis=1)
    return found
