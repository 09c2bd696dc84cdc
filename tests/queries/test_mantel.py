"""The Mantel test against SciPy's rank correlation under every permutation, one by one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from circuitdb.queries.mantel import complete, mantel


def symmetric(n: int, seed: int) -> np.ndarray:
    values = np.random.default_rng(seed).standard_normal((n, n))
    return np.asarray((values + values.T) / 2)


def on_grid(n: int) -> np.ndarray:
    places = np.array(list(itertools.product(range(n), repeat=2)))
    return np.asarray(np.abs(places[:, None] - places[None]).sum(axis=2), np.float64)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_small_cases_by_brute_force(seed: int) -> None:
    near, far = symmetric(5, seed), on_grid(3)[:5, :5]
    upper = np.triu_indices(5, 1)

    def rho(order: tuple[int, ...]) -> float:
        return float(spearmanr(near[upper], far[np.ix_(order, order)][upper]).statistic)

    observed = rho((0, 1, 2, 3, 4))
    every = [rho(order) for order in itertools.permutations(range(5))]
    found = mantel(near, far)
    assert found.rho == pytest.approx(observed)
    assert found.p == pytest.approx(np.mean([abs(value) >= abs(observed) - 1e-9 for value in every]))
    assert found.n == 5


def test_a_planted_fall_is_found_and_noise_is_not() -> None:
    far = on_grid(4)
    planted = mantel(-far + 0.1 * symmetric(16, 0), far)
    assert planted.rho < -0.9
    assert planted.p == pytest.approx(1 / 10_000)
    assert mantel(symmetric(16, 3), far).p > 0.05


def test_p_is_uniform_where_there_is_nothing() -> None:
    far = on_grid(3)
    p = [mantel(symmetric(9, seed), far).p for seed in range(60)]
    assert 0.35 < float(np.mean(p)) < 0.65
    assert sum(value < 0.1 for value in p) <= 14  # 6 expected


def test_circuits_that_lack_similarities_are_left_out() -> None:
    near, far = symmetric(6, 0), on_grid(3)[:6, :6]
    whole = mantel(near[:5, :5], far[:5, :5])
    near[5, :] = near[:, 5] = np.nan
    assert mantel(near, far) == whole
    assert complete(near) == [0, 1, 2, 3, 4]
    near[0, 1] = near[1, 0] = np.nan
    assert len(complete(near)) == 4


def test_nothing_to_tell() -> None:
    assert math.isnan(mantel(symmetric(2, 0), on_grid(2)[:2, :2]).rho)
    assert math.isnan(mantel(np.ones((4, 4)), on_grid(2)).rho)
    assert mantel(np.full((4, 4), np.nan), on_grid(2)).n < 2
