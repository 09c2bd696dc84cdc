from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from circuitdb.queries import jackknife
from circuitdb.queries.comparison import Comparison
from circuitdb.queries.jackknife import deleted, mean_interval, pair_errors, pair_intervals
from circuitdb.queries.matrix import ScoreMatrix
from circuitdb.queries.reliability import reliabilities
from circuitdb.queries.similarity import similarity
from matrices import score_matrix

Floats = npt.NDArray[np.float64]
PEARSON = Comparison(kind="pearson")


def circuits(n: int, n_folds: int, *, seed: int = 0, n_edges: int = 60) -> ScoreMatrix:
    """Circuits with a common part, scored with noise."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal(n_edges)
    folds = [common + rng.standard_normal(n_edges) + rng.standard_normal((n_folds, n_edges)) for _ in range(n)]
    return score_matrix([np.asarray(part, np.float32).mean(0) for part in folds], folds)


def corrected_of(a: Floats, b: Floats) -> float:
    """By the definitions, from folds [fold, edge] of two circuits: SciPy's rho over all splits."""
    reliability = []
    for folds in (a, b):
        n = len(folds)
        half = n // 2
        r = np.mean(
            [
                stats.spearmanr(folds[list(x)].mean(0), folds[list(y)].mean(0)).statistic
                for x, y in combinations(list(combinations(range(n), half)), 2)
                if not set(x) & set(y)
            ]
        )
        k = n / half
        reliability.append(k * r / (1 + (k - 1) * r))
    return float(stats.spearmanr(a.mean(0), b.mean(0)).statistic / math.sqrt(reliability[0] * reliability[1]))


@pytest.mark.parametrize("n_folds", [3, 4, 5])
def test_errors_are_those_of_leaving_each_fold_out(n_folds: int) -> None:
    matrix = circuits(2, n_folds)
    assert matrix.folds is not None
    a, b = (np.asarray(part, np.float64) for part in matrix.folds)
    plain, corrected = [0.0, 0.0], [0.0, 0.0]
    for side in (0, 1):
        one, two = [], []
        for fold in range(n_folds):
            pair = [np.delete(a, fold, 0), b] if side == 0 else [a, np.delete(b, fold, 0)]
            one.append(stats.spearmanr(pair[0].mean(0), pair[1].mean(0)).statistic)
            two.append(corrected_of(*pair))
        for out, values in ((plain, one), (corrected, two)):
            out[side] = (n_folds - 1) * float(np.var(values))
    found, whole = deleted(matrix), reliabilities(matrix)
    assert pair_errors(found, whole, corrected=False)[0, 1] == pytest.approx(math.sqrt(sum(plain)), abs=1e-5)
    assert pair_errors(found, whole, corrected=True)[0, 1] == pytest.approx(math.sqrt(sum(corrected)), abs=1e-5)


def test_intervals_are_students_around_the_similarity() -> None:
    matrix = circuits(3, 4)
    whole = similarity(matrix)
    found = deleted(matrix)
    errors = pair_errors(found, whole.reliability, corrected=True)
    low, high = pair_intervals(whole.corrected, errors, found)
    np.testing.assert_allclose((low + high)[0, 1] / 2, whole.corrected[0, 1])
    np.testing.assert_allclose((high - low)[0, 1] / 2, stats.t.ppf(0.975, 6) * errors[0, 1])
    np.testing.assert_array_equal(low, low.T)
    assert np.isnan(np.diag(low)).all()


def test_the_standard_error_is_that_of_scoring_anew() -> None:
    """Two circuits of fixed signals, scored 200 times with fresh noise: the spread of the corrected correlation."""
    rng = np.random.default_rng(0)
    first = rng.standard_normal(300)
    second = 0.6 * first + 0.8 * rng.standard_normal(300)
    values, errors, covered = [], [], 0
    true = np.corrcoef(first, second)[0, 1]
    for _ in range(200):
        folds = [signal + 1.5 * rng.standard_normal((4, 300)) for signal in (first, second)]
        matrix = score_matrix([part.mean(0) for part in folds], folds)
        whole, found = similarity(matrix, PEARSON), deleted(matrix, PEARSON)
        error = pair_errors(found, whole.reliability, corrected=True)
        low, high = pair_intervals(whole.corrected, error, found)
        values.append(whole.corrected[0, 1])
        errors.append(error[0, 1])
        covered += bool(low[0, 1] <= true <= high[0, 1])
    assert np.mean(values) == pytest.approx(true, abs=0.02)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.25)
    assert 0.92 <= covered / 200 <= 0.995


def test_circuits_of_few_folds_have_none() -> None:
    parts = circuits(3, 4)
    assert parts.folds is not None
    matrix = score_matrix(parts.scores, [parts.folds[0], parts.folds[1][:2], parts.folds[2]])
    found = deleted(matrix)
    errors = pair_errors(found, reliabilities(matrix), corrected=True)
    assert np.isnan(errors[1]).all()
    assert np.isnan(errors[:, 1]).all()
    assert errors[0, 2] > 0
    assert found.enough.tolist() == [True, False, True]
    nothing = deleted(score_matrix(np.ones((2, 5))))
    assert nothing.values.shape == (0, 2)
    assert np.isnan(pair_errors(nothing, reliabilities(score_matrix(np.ones((2, 5)))), corrected=False)).all()


def test_blocks_of_circuits_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = circuits(7, 3)
    whole = deleted(matrix)
    monkeypatch.setattr(jackknife, "_ROWS_AT_ONCE", 6)
    np.testing.assert_array_equal(deleted(matrix).values, whole.values)


def test_the_interval_of_a_mean_is_that_of_leaving_each_fold_out() -> None:
    matrix = circuits(4, 3)
    whole, found = similarity(matrix), deleted(matrix)
    allowed = ~np.eye(4, dtype=bool)
    allowed[0, 1] = allowed[1, 0] = False
    pairs = [(a, b) for a, b in combinations(range(4), 2) if allowed[a, b]]

    def statistic(values: Floats, ceiling: Floats) -> tuple[float, float]:
        mean = float(np.mean([values[pair] for pair in pairs]))
        return mean, mean / float(np.mean([ceiling[pair] for pair in pairs]))

    variance = np.zeros(2)
    for i in range(4):
        rows = []
        for row in np.flatnonzero(found.circuit == i):
            values, ceiling = whole.matrix.copy(), whole.ceiling.copy()
            values[i] = values[:, i] = found.values[row]
            roots = np.sqrt(np.where(np.arange(4) == i, found.reliability("spearman")[row], whole.reliabilities))
            ceiling[i] = ceiling[:, i] = roots * math.sqrt(found.reliability("spearman")[row])
            rows.append(statistic(values, ceiling))
        variance += 2 * np.var(rows, axis=0)
    for which, divisor in enumerate((None, whole.ceiling)):
        low, high = mean_interval(whole.matrix, divisor, allowed, found, whole.reliability)
        assert (low + high) / 2 == pytest.approx(statistic(whole.matrix, whole.ceiling)[which], abs=1e-12)
        half = stats.t.ppf(0.975, 8) * math.sqrt(variance[which])
        assert (high - low) / 2 == pytest.approx(half, abs=1e-9)


def test_a_part_is_the_jackknife_of_the_part() -> None:
    matrix = circuits(4, 3)
    part = deleted(matrix).part([3, 1])
    assert matrix.folds is not None
    alone = deleted(score_matrix(matrix.scores[[3, 1]], [matrix.folds[3], matrix.folds[1]]))
    np.testing.assert_allclose(part.values, alone.values, atol=1e-12)
    np.testing.assert_array_equal(part.circuit, alone.circuit)
    np.testing.assert_array_equal(part.halves, alone.halves)
