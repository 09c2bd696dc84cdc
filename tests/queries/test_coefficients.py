from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from sklearn.metrics import cohen_kappa_score, jaccard_score
from sklearn.metrics.pairwise import cosine_similarity

from circuitdb.errors import UsageError
from circuitdb.queries.coefficients import KINDS, coefficient, members

Floats = npt.NDArray[np.float64]
# Few different values: ties, zeros and constant rows come often.
TIED = arrays(np.float64, st.tuples(st.integers(0, 4), st.integers(0, 12)), elements=st.integers(-3, 3))
GAPS = arrays(np.float64, st.just((3, 10)), elements=st.one_of(st.integers(-3, 3), st.just(math.nan)))


def oracle(kind: str, a: Floats, b: Floats, top: int) -> float:
    """SciPy's and scikit-learn's value; NaN where they have none."""
    if kind in ("spearman", "pearson", "kendall"):
        if len(a) < 2 or not np.ptp(a) or not np.ptp(b):
            return math.nan
        functions = {"spearman": stats.spearmanr, "pearson": stats.pearsonr, "kendall": stats.kendalltau}
        return float(functions[kind](a, b).statistic)
    if not a.any() or not b.any():
        return math.nan
    if kind == "cosine":
        return float(cosine_similarity([a], [b])[0, 0])
    chosen = [np.isin(np.arange(len(row)), strongest(row, top)) for row in (a, b)]
    if kind == "overlap":
        return float(jaccard_score(*chosen))
    return math.nan if all(row.all() for row in chosen) else float(cohen_kappa_score(*chosen))


def strongest(row: Floats, top: int) -> list[int]:
    """By sorting: absolute score, then the edge."""
    order = sorted((i for i in range(len(row)) if row[i]), key=lambda i: (-abs(row[i]), i))
    return order[:top]


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=60)
@given(TIED, st.integers(1, 6))
def test_it_is_scipys_and_scikit_learns(kind: str, matrix: Floats, top: int) -> None:
    found = coefficient(kind, matrix, top=top).values
    crossed = coefficient(kind, matrix, matrix[:2].copy(), top=top).values
    for i, a in enumerate(matrix):
        for j, b in enumerate(matrix):
            expected = oracle(kind, a, b, top)
            np.testing.assert_allclose(found[i, j], expected, rtol=0, atol=1e-12)
            if j < 2:
                np.testing.assert_allclose(crossed[i, j], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=40)
@given(TIED)
def test_it_is_symmetric_bounded_and_one_with_itself(kind: str, matrix: Floats) -> None:
    found = coefficient(kind, matrix, top=3)
    np.testing.assert_array_equal(found.values, found.values.T)
    known = found.values[~np.isnan(found.values)]
    assert (np.abs(known) <= 1).all()
    assert set(np.diag(found.values)[~np.isnan(np.diag(found.values))]) <= {1.0}
    np.testing.assert_array_equal(found.n_edges, np.full(found.values.shape, matrix.shape[1]))


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=40)
@given(GAPS)
def test_missing_scores_are_left_out_pair_by_pair(kind: str, matrix: Floats) -> None:
    found = coefficient(kind, matrix, top=3)
    for i, a in enumerate(matrix):
        for j, b in enumerate(matrix):
            both = ~np.isnan(a) & ~np.isnan(b)
            assert found.n_edges[i, j] == both.sum()
            np.testing.assert_allclose(found.values[i, j], oracle(kind, a[both], b[both], 3), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=40)
@given(GAPS)
def test_zeros_of_both_are_left_out_on_request(kind: str, matrix: Floats) -> None:
    found = coefficient(kind, matrix, top=3, joint_zeros=False)
    for i, a in enumerate(matrix):
        for j, b in enumerate(matrix):
            both = ~np.isnan(a) & ~np.isnan(b) & ((a != 0) | (b != 0))
            assert found.n_edges[i, j] == both.sum()
            np.testing.assert_allclose(found.values[i, j], oracle(kind, a[both], b[both], 3), rtol=0, atol=1e-12)


@settings(deadline=None, max_examples=40)
@given(TIED)
def test_rank_coefficients_do_not_change_under_a_growing_transform(matrix: Floats) -> None:
    for kind in ("spearman", "kendall"):
        np.testing.assert_array_equal(coefficient(kind, matrix**3).values, coefficient(kind, matrix).values)
    for kind in ("overlap", "kappa"):
        np.testing.assert_array_equal(
            coefficient(kind, matrix**3, top=3).values, coefficient(kind, matrix, top=3).values
        )


def test_pearson_and_cosine_do_not_change_with_the_scale() -> None:
    matrix = np.random.default_rng(0).standard_normal((3, 40))
    scaled = matrix * np.array([[2.0], [0.1], [30.0]])
    for kind in ("pearson", "cosine"):
        np.testing.assert_allclose(coefficient(kind, scaled).values, coefficient(kind, matrix).values, atol=1e-14)
    np.testing.assert_allclose(
        coefficient("pearson", matrix + 5).values, coefficient("pearson", matrix).values, atol=1e-13
    )


def test_a_constant_row_far_from_zero_has_no_pearson() -> None:
    # 0.1 is no binary fraction: its mean over 7 edges differs from it in the last bit.
    found = coefficient("pearson", np.array([[0.1] * 7, [1, 2, 3, 4, 5, 6, 7]]))
    assert np.isnan(found.values[0]).all()
    assert found.values[1, 1] == 1


def test_overlap_and_kappa_by_hand() -> None:
    # The top 2 are edges 0, 1 and 1, 2: one of three is shared; by chance 2 x 2 / 8 = 0.5, so (1 - 0.5) / (2 - 0.5).
    matrix = np.array([[9.0, -8, 1, 1, 0, 0, 0, 0], [0.0, 7, 6, 1, 0, 0, 0, 0]])
    assert coefficient("overlap", matrix, top=2).values[0, 1] == pytest.approx(1 / 3)
    assert coefficient("kappa", matrix, top=2).values[0, 1] == pytest.approx(1 / 3)
    # All eight edges as the top: shared 3, in either 4, by chance 4 x 3 / 8 = 1.5, so (3 - 1.5) / (3.5 - 1.5).
    assert coefficient("overlap", matrix, top=8).values[0, 1] == pytest.approx(3 / 4)
    assert coefficient("kappa", matrix, top=8).values[0, 1] == pytest.approx(3 / 4)


def test_kappa_of_random_circuits_is_nought() -> None:
    rng = np.random.default_rng(3)
    found = coefficient("kappa", rng.standard_normal((40, 2000)), top=200).values
    shared = coefficient("overlap", rng.standard_normal((40, 2000)), top=200).values
    pairs = np.triu_indices(40, 1)
    # Hypergeometric: mean 20 of 200 shared, variance 16.2; 780 pairs, the effect 1 / (200 - 20) of it.
    assert found[pairs].mean() == pytest.approx(0, abs=3 * math.sqrt(16.2 / 780) / 180)
    assert shared[pairs].mean() == pytest.approx(20 / 380, abs=0.003)


def test_ties_at_the_cut_go_to_the_lower_edge() -> None:
    assert members(np.array([1.0, -2, 2, 2, 0, math.inf]), 3).tolist() == [1, 2, 5]
    assert members(np.array([0.0, 0, 3]), 3).tolist() == [2]
    assert members(np.zeros(0), 3).tolist() == []


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="no similarity of kind 'spearmann'; kinds are spearman, pearson"):
        coefficient("spearmann", np.ones((2, 2)))
