"""Exchanges of partners and signs, against enumeration, SciPy and arithmetic by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import permutation_test, ttest_1samp

from circuitdb.queries.exchanges import clustered, matching, mean, mean_gap, ratio

PAIRS = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
STRATA = [1, 1, 1, 2, 2]


def symmetric(n: int, seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).standard_normal((n, n))
    return (values + values.T) / 2


def by_hand(values: np.ndarray) -> list[float]:
    """The mean over the pairs for each of 3! x 2! ways to exchange partners."""
    found = []
    for one in itertools.permutations((1, 3, 5)):
        for two in itertools.permutations((7, 9)):
            partners = (*one, *two)
            found.append(np.mean([values[i, j] for (i, _), j in zip(PAIRS, partners, strict=True)]))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_matching_by_enumeration(seed: int) -> None:
    values = symmetric(10, seed)
    every = by_hand(values)
    found = matching(values, PAIRS, STRATA)
    assert found.ways == 12
    assert found.mean == pytest.approx(np.mean([values[i, j] for i, j in PAIRS]))
    assert found.exchanged == pytest.approx(np.mean(every))
    assert found.p == pytest.approx(np.mean([value >= found.mean - 1e-12 for value in every]))


def test_planted_partners_are_found_by_random_exchanges() -> None:
    pairs = [(2 * i, 2 * i + 1) for i in range(8)]
    values = symmetric(16, 0)
    for i, j in pairs:
        values[i, j] = values[j, i] = 4
    found = matching(values, pairs, [0] * 8)
    assert found.ways == math.factorial(8)
    assert found.p == pytest.approx(1 / 10_000, abs=2e-4)
    assert matching(-values, pairs, [0] * 8).p == 1


def test_one_pair_a_stratum_has_nothing_to_exchange() -> None:
    found = matching(symmetric(4, 0), [(0, 1), (2, 3)], [1, 2])
    assert found.ways == 1
    assert math.isnan(found.p)
    assert math.isnan(matching(symmetric(2, 0), [], []).mean)


def test_matching_without_some_values() -> None:
    values = symmetric(10, 0)
    values[0, 1] = values[1, 0] = np.nan
    assert matching(values, PAIRS, STRATA).mean == pytest.approx(np.mean([values[i, j] for i, j in PAIRS[1:]]))


@pytest.mark.parametrize("values", [[0.3, -0.1, 0.4, 0.2], [1.0, 1.0, 1.0], [-0.2, 0.5, 0.1, 0.1, -0.4, 0.9]])
def test_mean_as_in_scipy(values: list[float]) -> None:
    found = mean(np.array([*values, np.nan]))
    assert found.n == len(values)
    assert found.mean == pytest.approx(np.mean(values))
    if np.std(values) > 0:
        expected = ttest_1samp(values, 0).confidence_interval()
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    flipped = permutation_test((np.array(values),), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert found.p == pytest.approx(flipped.pvalue)


def test_one_value_and_none() -> None:
    one = mean(np.array([0.4]))
    assert (one.mean, one.n, one.p) == (0.4, 1, 1.0)  # 0.4 and -0.4 are equally far from zero
    assert math.isnan(one.low)
    assert mean(np.array([np.nan])).n == 0
    assert ratio(np.array([np.nan]), np.array([1.0])).n == 0


def test_a_mean_gap_is_never_over_all_of_the_answers() -> None:
    """Two gaps say so little that Student's t of one degree of freedom leaves the range of a difference of shares."""
    gaps = np.array([0.15625, -0.09375])
    expected = ttest_1samp(gaps, 0).confidence_interval()
    assert (expected.low, expected.high) == pytest.approx((-1.557, 1.619), abs=1e-3)  # what a mean gives
    assert (mean_gap(gaps).low, mean_gap(gaps).high, mean_gap(gaps).mean) == (-1.0, 1.0, 0.03125)
    three = np.array([0.1, 0.2, 0.3])
    assert mean_gap(three) == mean(three)
    assert math.isnan(mean_gap(three[:1]).low)


def test_ratio_by_hand() -> None:
    # 4 / 6; residuals -1/3 and 1/3, so that the standard error is sqrt(2) / 3 / sqrt(2) / 3 = 1/9; t(1) = 12.7062.
    found = ratio(np.array([1.0, 3.0, np.nan]), np.array([2.0, 4.0, 5.0]))
    assert found.mean == pytest.approx(2 / 3)
    assert (found.high - found.low) / 2 == pytest.approx(12.7062 / 9, rel=1e-4)
    assert found.n == 2


def test_pairs_that_share_a_circuit_are_one_observation() -> None:
    values = np.array([0.1, 0.3, 0.5, math.nan, math.nan])
    found = clustered(values, np.array([7, 7, 2, 2, 4]))
    assert found[:2] == pytest.approx([0.2, 0.5])
    assert np.isnan(found[2:]).all()
    # Of two observations 2 of 4 flips are as extreme; of three it would be 2 of 8.
    assert mean(found).p == 0.5
    assert mean(values).p == 0.25
