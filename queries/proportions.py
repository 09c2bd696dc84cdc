"""The difference of two accuracies, each the share of right answers to questions of its own.

1. Its standard error is sqrt(p1 (1 - p1) / n1 + p2 (1 - p2) / n2).
2. Its 95% interval comes from the Wilson intervals of the two shares (Newcombe 1998, method 10): the standard error
   alone would give none where all answers are right, or all wrong.
3. p is Fisher's exact one, two-sided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from circuitdb.queries.chance import distribution

_Z = 1.959963984540054  # 97.5% of the normal distribution
_ALIKE = 1 + 1e-7  # by which equal chances may differ


@dataclass(frozen=True)
class Difference:
    """First less second: `effect` in -1..1, its standard error, 95% interval and two-sided p; NaN where not known."""

    effect: float
    stderr: float
    low: float
    high: float
    p: float


def difference(first: float, n_first: int | None, second: float, n_second: int | None) -> Difference:
    """The difference of two shares (0..1) of so many questions; only the effect where their numbers are not known."""
    effect = first - second
    if math.isnan(effect) or not n_first or not n_second:
        return Difference(effect, math.nan, math.nan, math.nan, math.nan)
    (low_first, high_first), (low_second, high_second) = wilson(first, n_first), wilson(second, n_second)
    return Difference(
        effect,
        math.sqrt(first * (1 - first) / n_first + second * (1 - second) / n_second),
        effect - math.hypot(first - low_first, high_second - second),
        effect + math.hypot(high_first - first, second - low_second),
        fisher(round(first * n_first), n_first, round(second * n_second), n_second),
    )


def mean_difference(gaps: Sequence[Difference]) -> Difference:
    """The mean of independent differences, each weighed alike, for these very cells: they are no sample of others.

    The interval is built from those of the differences, as Newcombe's is from those of two shares (MOVER, Zou & Donner
    2008); p is NaN.
    """
    n = len(gaps)
    effect = math.fsum(gap.effect for gap in gaps) / n
    return Difference(
        effect,
        math.hypot(*(gap.stderr for gap in gaps)) / n,
        effect - math.hypot(*(gap.effect - gap.low for gap in gaps)) / n,
        effect + math.hypot(*(gap.high - gap.effect for gap in gaps)) / n,
        math.nan,
    )


def fisher(first: int, n_first: int, second: int, n_second: int) -> float:
    """Two-sided p of so many right of so many (Fisher 1935): the chance of all tables that are as unlikely."""
    values, chances = distribution(n_first + n_second, first + second, n_first)
    here = chances[int(np.flatnonzero(values == first)[0])]
    return min(float(chances[chances <= here * _ALIKE].sum()), 1.0)


def wilson(share: float, n: int) -> tuple[float, float]:
    """The 95% interval of a share (0..1) of `n` (Wilson 1927)."""
    centre = share + _Z**2 / (2 * n)
    half = _Z * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return (centre - half) / (1 + _Z**2 / n), (centre + half) / (1 + _Z**2 / n)


def holm(p_values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """P of each of several tests, so that a false finding among them all has the chance of one (Holm 1979); NaN stays.

    The i-th smallest of m is multiplied by m - i (from 0), made no smaller than the one before, and at most 1.
    """
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    found = np.full(len(p_values), np.nan)
    found[order] = np.minimum(np.maximum.accumulate(p_values[order] * (len(order) - np.arange(len(order)))), 1.0)
    return found
