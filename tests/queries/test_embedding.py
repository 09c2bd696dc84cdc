from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.decomposition import PCA

from circuitdb.errors import UsageError
from circuitdb.queries import Database
from circuitdb.queries.embedding import classical, embedding
from circuitdb.queries.ranks import centred_ranks
from circuitdb.queries.similarity import similarity
from matrices import score_matrix

RNG = np.random.default_rng(0)


def coordinates(rows: list[dict[str, object]]) -> npt.NDArray[np.float64]:
    return np.array([[row["x"], row["y"]] for row in rows], np.float64)


def test_points_of_a_plane_are_found_again() -> None:
    points = RNG.standard_normal((12, 2))
    found, share = classical(squareform(pdist(points)) ** 2)
    np.testing.assert_allclose(pdist(found), pdist(points), atol=1e-12)
    assert share == pytest.approx(1)


def test_the_map_of_rho_is_the_principal_components_of_ranks() -> None:
    scores = RNG.standard_normal((8, 50)).astype(np.float32)
    ranks = centred_ranks(scores)
    ranks /= np.linalg.norm(ranks, axis=1, keepdims=True)
    expected = PCA(2).fit(ranks)
    found = embedding(similarity(score_matrix(scores)))
    points = coordinates(found.rows())
    np.testing.assert_allclose(np.abs(points), np.abs(expected.transform(ranks)), atol=1e-10)
    assert (
        found.notes[-1] == f"The two axes show {expected.explained_variance_ratio_.sum():.0%} of the squared distances."
    )
    assert (points[np.abs(points).argmax(axis=0), [0, 1]] > 0).all()


def test_a_circuit_without_a_similarity_is_left_out() -> None:
    scores = RNG.standard_normal((4, 30))
    scores[2] = 1
    found = embedding(similarity(score_matrix(scores, labels=list("abcd"))))
    assert [row["subtask"] for row in found.rows()] == ["a", "b", "d"]
    assert "Left out for want of a similarity to each of the others: c." in found.notes


@pytest.mark.parametrize("n", [0, 1, 2])
def test_of_little_or_nothing(n: int) -> None:
    scores = RNG.standard_normal((n, 30))
    found = embedding(similarity(score_matrix(scores)))
    assert len(found) == n
    points = coordinates(found.rows()).reshape(n, 2)
    if n == 2:
        rho = similarity(score_matrix(scores)).matrix[0, 1]
        assert math.dist(*points) == pytest.approx(math.sqrt(2 * (1 - rho)))


def test_t_sne_keeps_families_together_and_is_the_same_each_time(db: Database) -> None:
    groups = np.repeat(RNG.standard_normal((2, 400)), 8, axis=0) + 0.5 * RNG.standard_normal((16, 400))
    found = [embedding(similarity(score_matrix(groups)), "t-sne") for _ in range(2)]
    np.testing.assert_array_equal(coordinates(found[0].rows()), coordinates(found[1].rows()))
    distance = squareform(pdist(coordinates(found[0].rows())))
    nearest = np.where(np.eye(16, dtype=bool), np.inf, distance).argmin(axis=1)
    assert (nearest // 8 == np.arange(16) // 8).all()
    assert found[0].notes[-1] == "t-SNE keeps neighbours, not distances; its start is random (seed 0)."
    assert len(db.embedding("t-sne")) == 9


def test_what_there_is_not_is_refused(db: Database) -> None:
    with pytest.raises(UsageError, match="no embedding 'umap'; there are mds and t-sne"):
        db.embedding("umap")
    with pytest.raises(UsageError, match="t-SNE needs three circuits or more; there are 2"):
        db.embedding("t-sne", circuits=[1, 2])
