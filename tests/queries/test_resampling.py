from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from circuitdb.queries.resampling import NO_INTERVAL, draws, interval, pair_means
from circuitdb.queries.stability import over_subtasks

Floats = npt.NDArray[np.float64]


def symmetric(n: int, seed: int) -> Floats:
    values = np.random.default_rng(seed).uniform(-1, 1, (n, n))
    return np.triu(values, 1) + np.triu(values, 1).T + np.eye(n)


def test_a_resample_is_the_mean_over_the_pairs_it_draws() -> None:
    """Against a loop over the circuits drawn; circuits 0 and 1 are of one subtask, and one similarity is missing."""
    subtask = np.array([0, 0, 1, 2, 3, 4])
    values = symmetric(6, 0)
    values[2, 4] = values[4, 2] = np.nan
    allowed = (subtask[:, None] != subtask[None, :]) & ~np.isnan(values)
    counts = draws(5, 50, seed=3)
    found = pair_means(values, allowed, counts[:, subtask])
    for row, mean in zip(counts, found, strict=True):
        drawn = [i for i in range(6) for _ in range(int(row[subtask[i]]))]
        pairs = [values[a, b] for a, b in combinations(drawn, 2) if subtask[a] != subtask[b]]
        known = [value for value in pairs if not math.isnan(value)]
        assert mean == pytest.approx(np.mean(known), abs=1e-12) if known else math.isnan(mean)


def test_draws_are_as_many_as_there_are_units_and_the_same_each_time() -> None:
    counts = draws(7, 100, seed=1)
    assert counts.shape == (100, 7)
    assert (counts.sum(axis=1) == 7).all()
    np.testing.assert_array_equal(counts, draws(7, 100, seed=1))
    assert counts.mean() == 1


def test_the_interval_is_students() -> None:
    resampled = np.array([0.1, 0.2, 0.4, np.nan])
    low, high = interval(0.3, resampled, 5)
    half = stats.t.ppf(0.975, 4) * np.std([0.1, 0.2, 0.4], ddof=1) * math.sqrt(5 / 4)
    assert (low, high) == pytest.approx((0.3 - half, 0.3 + half), abs=1e-12)


@pytest.mark.parametrize(
    ("estimate", "resampled", "n"),
    [(0.3, [0.1, 0.2, 0.3], 3), (math.nan, [0.1, 0.2, 0.3], 9), (0.3, [0.1, math.nan], 9), (0.3, [], 9)],
    ids=["few-units", "no-estimate", "one-value", "none"],
)
def test_there_may_be_no_interval(estimate: float, resampled: list[float], n: int) -> None:
    assert interval(estimate, np.array(resampled), n) == pytest.approx(NO_INTERVAL, nan_ok=True)


def test_a_mean_of_circuits_gives_the_classical_interval() -> None:
    """Where every similarity is (u_i + u_j) / 2 the mean over pairs is the mean of u, of known standard error."""
    u = np.random.default_rng(0).standard_normal(30)
    values = (u[:, None] + u[None, :]) / 2
    allowed = ~np.eye(30, dtype=bool)
    low, high = over_subtasks(values, None, allowed, np.arange(30))
    half = stats.t.ppf(0.975, 29) * u.std(ddof=1) / math.sqrt(30)
    assert (low + high) / 2 == pytest.approx(u.mean(), abs=1e-12)
    assert (high - low) / 2 == pytest.approx(half, rel=0.08)  # of 2,000 resamples, with distinct pairs only


CASES = {
    "uniform": (lambda rng, n: rng.uniform(0, 1, n), 0.5**2, {4: 0.89, 9: 0.92}),
    "normal": (lambda rng, n: rng.normal(0.5, 0.15, n), 0.5**2, {4: 0.94, 9: 0.93}),
    "two-kinds": (lambda rng, n: rng.choice([0.2, 0.9], n), 0.55**2, {4: 0.78, 9: 0.89}),
}


@pytest.mark.parametrize(("draw", "truth", "documented"), CASES.values(), ids=CASES)
def test_the_interval_of_few_subtasks_holds_the_truth_as_often_as_is_documented(
    draw: Callable[[np.random.Generator, int], Floats], truth: float, documented: dict[int, float]
) -> None:
    """Similarity w_i w_j and noise: of 300 cases within 4 standard errors of the page's 2,000."""
    rng = np.random.default_rng(3)
    for n, share in documented.items():
        hits = 0
        for _ in range(300):
            w = draw(rng, n)
            noise = np.triu(rng.normal(0, 0.05, (n, n)), 1)
            low, high = over_subtasks(np.outer(w, w) + noise + noise.T, None, ~np.eye(n, dtype=bool), np.arange(n))
            hits += low <= truth <= high
        assert hits / 300 == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 300))


def test_the_interval_holds_the_true_value_as_often_as_it_says() -> None:
    """Similarity w_i w_j with w of a beta distribution: the expected one of two subtasks is E[w]^2 = (4/7)^2."""
    rng, hits = np.random.default_rng(1), 0
    allowed = ~np.eye(9, dtype=bool)
    for _ in range(200):
        w = rng.beta(4, 3, 9)
        low, high = over_subtasks(np.outer(w, w), None, allowed, np.arange(9))
        hits += low <= (4 / 7) ** 2 <= high
    assert 0.88 <= hits / 200 <= 0.99
