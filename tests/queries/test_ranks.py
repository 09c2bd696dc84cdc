from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata, spearmanr

from circuitdb.queries.coefficients import coefficient
from circuitdb.queries.ranks import midranks

spearman = partial(coefficient, "spearman")
Floats = npt.NDArray[np.float64]
# Small whole numbers: plenty of ties, and cubes that are exact.
TIED = arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 12)), elements=st.integers(-3, 3).map(float))


def tied(rows: int, edges: int, seed: int = 0) -> Floats:
    """Scores of which many are equal, zeros among them."""
    return np.round(np.random.default_rng(seed).standard_normal((rows, edges)), 1)


def scipy_rho(a: Floats, b: Floats) -> float:
    return float(spearmanr(a, b).statistic)


def test_rho_of_the_known_pair() -> None:
    # Mid-ranks 1, 2.5, 2.5, 4, 5 and 2.5, 2.5, 4, 1, 5: the covariance of the centred ranks is 2.75, the sums of
    # squares are 9.5 and 9.5, so rho = 2.75 / 9.5.
    found = spearman(np.array([[1.0, 2, 2, 3, 4], [2, 2, 5, 1, 7]]))
    assert found.values[0, 1] == pytest.approx(0.289473684, abs=1e-9)
    assert found.n_edges.tolist() == [[5, 5], [5, 5]]


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([[3.0, 1, 2]], id="distinct"),
        pytest.param([[1.0, 1, 1, 1]], id="constant"),
        pytest.param([[0.0, -0.0, 1, -1]], id="signed-zeros"),
        pytest.param([[5.0]], id="one-edge"),
        pytest.param([[np.inf, 1, -np.inf, 1]], id="infinite"),
        pytest.param(tied(7, 500), id="ties"),
        pytest.param(tied(7, 500).astype(np.float32), id="float32"),
        pytest.param(
            np.array([[0, -0.0, 1e-45, -1e-45, np.inf, -np.inf, -3, 2, -2, 2]], np.float32), id="float32-bits"
        ),
    ],
)
def test_midranks_are_scipys(rows: npt.ArrayLike) -> None:
    matrix = np.asarray(rows)
    np.testing.assert_array_equal(midranks(matrix), rankdata(matrix, axis=1))


def test_midranks_leave_missing_scores_out() -> None:
    ranks = midranks(np.array([[np.nan, 5, 5, 1], [2, np.nan, np.nan, np.nan]]))
    np.testing.assert_array_equal(ranks, [[np.nan, 2.5, 2.5, 1], [1, np.nan, np.nan, np.nan]])


def test_spearman_is_scipys_with_ties() -> None:
    matrix = tied(6, 800)
    expected = [[scipy_rho(a, b) for b in matrix] for a in matrix]
    np.testing.assert_allclose(spearman(matrix).values, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(spearman(matrix[:2], matrix[2:]).values, np.array(expected)[:2, 2:], rtol=0, atol=1e-12)


def test_spearman_is_symmetric_and_one_on_the_diagonal_exactly() -> None:
    matrix = np.random.default_rng(1).standard_normal((8, 20_000)).astype(np.float32)
    rho = spearman(np.vstack([matrix, matrix[:1]])).values
    np.testing.assert_array_equal(rho, rho.T)
    np.testing.assert_array_equal(np.diag(rho), 1.0)
    assert rho[0, 8] == 1.0  # the same scores twice


def test_constant_scores_have_no_correlation() -> None:
    found = spearman(np.array([[1.0, 2, 3], [4, 4, 4], [0, 0, 0]]))
    np.testing.assert_array_equal(found.values, [[1, np.nan, np.nan], [np.nan] * 3, [np.nan] * 3])


def test_missing_scores_are_left_out_pair_by_pair() -> None:
    matrix = tied(6, 60, seed=3)
    matrix[1, :7] = np.nan
    matrix[2, :7] = np.nan
    matrix[3, 5:20] = np.nan
    matrix[4] = np.nan
    matrix[5, 2:] = np.nan
    found = spearman(matrix)
    crossed = spearman(matrix[:3], matrix)
    for i, a in enumerate(matrix):
        for j, b in enumerate(matrix):
            both = ~np.isnan(a) & ~np.isnan(b)
            assert found.n_edges[i, j] == both.sum()
            one_value = min(len(np.unique(a[both])), len(np.unique(b[both]))) < 2
            expected = np.nan if one_value else scipy_rho(a[both], b[both])
            np.testing.assert_allclose(found.values[i, j], expected, rtol=0, atol=1e-12)
            if i < 3:
                np.testing.assert_allclose(crossed.values[i, j], expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.values, found.values.T)


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (3, 0), (1, 4)])
def test_spearman_of_little_or_nothing(shape: tuple[int, int]) -> None:
    found = spearman(np.ones(shape))
    assert found.values.shape == (shape[0], shape[0])
    assert np.isnan(found.values).all()


@settings(deadline=None)
@given(TIED)
def test_rho_is_symmetric_bounded_and_one_with_itself(matrix: Floats) -> None:
    rho = spearman(matrix).values
    np.testing.assert_array_equal(rho, rho.T)
    known = rho[~np.isnan(rho)]
    assert (np.abs(known) <= 1).all()
    varies = [len(set(row)) > 1 for row in matrix.tolist()]
    np.testing.assert_array_equal(np.diag(rho), np.where(varies, 1.0, np.nan))


@settings(deadline=None)
@given(TIED)
def test_rho_depends_on_the_order_of_scores_alone(matrix: Floats) -> None:
    rho = spearman(matrix).values
    np.testing.assert_array_equal(spearman(matrix**3 * 2 + 1).values, rho)  # a growing transform of the scores
    np.testing.assert_array_equal(spearman(matrix[:, ::-1].copy()).values, rho)  # the edges in another order
    np.testing.assert_allclose(spearman(-matrix, matrix).values, -rho, rtol=0, atol=1e-15)


@settings(deadline=None, max_examples=50)
@given(TIED)
def test_rho_is_scipys_whatever_the_ties(matrix: Floats) -> None:
    rho = spearman(matrix).values
    for i, a in enumerate(matrix):
        for j, b in enumerate(matrix):
            if len(set(a.tolist())) > 1 and len(set(b.tolist())) > 1:
                assert rho[i, j] == pytest.approx(scipy_rho(a, b), abs=1e-12)
            else:
                assert np.isnan(rho[i, j])
