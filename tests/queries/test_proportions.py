"""Differences of accuracies against published figures, SciPy and sums by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest, fisher_exact, hypergeom

from circuitdb.queries.proportions import difference, fisher, holm, mean_difference, wilson


def test_standard_error_by_hand() -> None:
    found = difference(0.9, 20, 0.5, 20)
    assert found.effect == pytest.approx(0.4)
    assert found.stderr == pytest.approx(math.sqrt(0.9 * 0.1 / 20 + 0.5 * 0.5 / 20))  # 0.1304
    assert found.stderr == pytest.approx(0.130384, abs=1e-6)


@pytest.mark.parametrize(
    ("first", "n_first", "second", "n_second", "low", "high"),
    [  # Newcombe 1998, Table II, method 10
        (56 / 70, 70, 48 / 80, 80, 0.0524, 0.3339),
        (9 / 10, 10, 3 / 10, 10, 0.1705, 0.8090),
        (10 / 10, 10, 0 / 10, 10, 0.6075, 1.0),
    ],
)
def test_interval_as_published(
    first: float, n_first: int, second: float, n_second: int, low: float, high: float
) -> None:
    found = difference(first, n_first, second, n_second)
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)


def test_p_is_the_sum_of_tables_as_unlikely() -> None:
    found = difference(9 / 10, 10, 3 / 10, 10)
    chances = hypergeom(20, 12, 10).pmf(np.arange(11))
    assert found.p == pytest.approx(chances[chances <= chances[9] * (1 + 1e-7)].sum())


@pytest.mark.parametrize(("first", "n_first", "second", "n_second"), [(0, 8, 8, 8), (5, 9, 2, 30), (19, 20, 11, 20)])
def test_p_as_in_scipy(first: int, n_first: int, second: int, n_second: int) -> None:
    table = [[first, n_first - first], [second, n_second - second]]
    assert fisher(first, n_first, second, n_second) == pytest.approx(fisher_exact(table).pvalue, rel=1e-9)


def test_what_is_not_known_is_nan() -> None:
    found = difference(0.9, None, 0.5, 20)
    assert found.effect == pytest.approx(0.4)
    assert all(math.isnan(value) for value in (found.stderr, found.low, found.high, found.p))
    assert math.isnan(difference(math.nan, 20, 0.5, 20).effect)


@pytest.mark.parametrize(("right", "n"), [(0, 8), (3, 8), (8, 8), (150, 200)])
def test_wilson_as_in_scipy(right: int, n: int) -> None:
    expected = binomtest(right, n).proportion_ci(method="wilson")
    assert wilson(right / n, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_holm_by_hand() -> None:
    # 0.01 * 3; 0.03 * 2; 0.04 * 1, but no less than the one before.
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, np.nan, 0.03])), [0.03, 0.06, np.nan, 0.06])
    np.testing.assert_allclose(holm(np.array([0.6, 0.7])), [1.0, 1.0])
    assert holm(np.empty(0)).size == 0


def test_the_mean_of_differences_is_of_these_cells_alone() -> None:
    """Two cells, whose interval by cells as a sample would be wider than any difference can be."""
    cells = [((15, 20), (9, 20)), ((8, 16), (12, 24))]
    found = mean_difference([difference(a / n, n, b / m, m) for (a, n), (b, m) in cells])
    below = above = variance = 0.0
    for (a, n), (b, m) in cells:
        first, second = (binomtest(k, of).proportion_ci(method="wilson") for k, of in ((a, n), (b, m)))
        below += (a / n - first.low) ** 2 + (second.high - b / m) ** 2
        above += (first.high - a / n) ** 2 + (b / m - second.low) ** 2
        variance += a / n * (1 - a / n) / n + b / m * (1 - b / m) / m
    assert found.effect == pytest.approx(0.15)
    assert found.stderr == pytest.approx(math.sqrt(variance) / 2)
    assert (found.low, found.high) == pytest.approx((0.15 - math.sqrt(below) / 2, 0.15 + math.sqrt(above) / 2))
    assert math.isnan(found.p)


def test_the_mean_of_one_difference_is_that_difference() -> None:
    one = difference(0.8, 20, 0.4, 20)
    found = mean_difference([one])
    assert (found.effect, found.stderr, found.low, found.high) == pytest.approx(
        (one.effect, one.stderr, one.low, one.high)
    )


def test_where_one_interval_is_not_known_that_of_the_mean_is_not() -> None:
    found = mean_difference([difference(0.8, 20, 0.4, 20), difference(0.8, None, 0.4, 20)])
    assert found.effect == pytest.approx(0.4)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
