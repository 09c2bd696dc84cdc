from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from sklearn.metrics.pairwise import cosine_similarity

from circuitdb.queries import Database
from circuitdb.queries.features import Ends
from circuitdb.queries.nulls import permuted
from circuitdb.store import Store
from stores import SHAPE, circuit, model

Floats = npt.NDArray[np.float64]
RNG = np.random.default_rng(0)


def coefficient(kind: str, a: Floats, b: Floats) -> float:
    if kind == "cosine":
        return float(cosine_similarity([a], [b])[0, 0])
    return float((stats.spearmanr if kind == "spearman" else stats.pearsonr)(a, b).statistic)


@pytest.mark.parametrize("kind", ["spearman", "pearson", "cosine"])
def test_mean_and_deviation_are_those_of_all_orders(kind: str) -> None:
    """Against every order of b within strata of 4, 3 and 1 edges, ties included."""
    strata = np.array([2, 0, 0, 1, 0, 1, 0, 1])
    a = np.array([1.0, 2, 2, -3, 5, 4, 0.5, 2])
    b = np.array([0.0, 1, 3, 2, 2, 7, -1, 2])
    found = []
    for first in permutations(b[strata == 0]):
        for second in permutations(b[strata == 1]):
            order = b.copy()
            order[strata == 0], order[strata == 1] = first, second
            found.append(coefficient(kind, a, order))
    mean, deviation = permuted(np.stack([a, b]), strata, kind)
    assert mean[0, 1] == pytest.approx(np.mean(found), abs=1e-12)
    assert deviation[0, 1] == pytest.approx(np.std(found), abs=1e-12)
    np.testing.assert_allclose(mean, mean.T, atol=1e-15)
    np.testing.assert_allclose(deviation, deviation.T, atol=1e-15)


def test_one_stratum_is_no_correlation_at_all() -> None:
    scores = RNG.standard_normal((3, 50))
    mean, deviation = permuted(scores, np.zeros(50, np.int64))
    np.testing.assert_allclose(mean, 0, atol=1e-12)
    np.testing.assert_allclose(deviation, 1 / 7)  # 1 / sqrt(n - 1)


def test_strata_of_one_edge_leave_everything_in_place() -> None:
    scores = RNG.standard_normal((3, 20))
    mean, deviation = permuted(scores, np.arange(20), "pearson")
    np.testing.assert_allclose(mean, np.corrcoef(scores), atol=1e-12)
    np.testing.assert_allclose(deviation, 0, atol=1e-12)


@pytest.mark.parametrize("kind", ["spearman", "pearson", "cosine"])
def test_missing_scores_leave_each_pair_the_edges_that_both_have(kind: str) -> None:
    scores = RNG.standard_normal((4, 30))
    scores[0, [4, 11]] = scores[1, 4] = scores[2, 20:] = np.nan  # the last stratum is missing altogether
    strata = np.arange(30) // 10
    mean, deviation = permuted(scores, strata, kind)
    for i, j in np.ndindex(4, 4):
        both = ~np.isnan(scores[[i, j]]).any(axis=0)
        expected, spread = permuted(scores[[i, j]][:, both], strata[both], kind)
        assert mean[i, j] == pytest.approx(expected[0, 1], abs=1e-14)
        assert deviation[i, j] == pytest.approx(spread[0, 1], abs=1e-14)


def test_a_score_missing_in_one_circuit_moves_no_other_pair() -> None:
    scores = RNG.standard_normal((3, 30))
    strata = np.arange(30) // 10
    before = permuted(scores, strata)
    scores[0, :9] = np.nan
    after = permuted(scores, strata)
    for whole, part in zip(before, after, strict=True):
        np.testing.assert_array_equal(part[1:, 1:], whole[1:, 1:])
        assert part[0, 1] != whole[0, 1]


def test_constant_and_missing_scores() -> None:
    scores = RNG.standard_normal((3, 30))
    scores[1] = 2
    scores[0, 4] = np.nan
    strata = np.arange(30) // 10
    mean, _ = permuted(scores, strata)
    assert np.isnan(mean[1]).all()
    assert np.isnan(mean[:, 1]).all()
    scores[2, :29] = np.nan  # one edge in common with the first
    assert np.isnan(permuted(scores, strata)[0][0, 2])
    assert np.isnan(permuted(np.full((2, 3), np.nan), np.arange(3))[0]).all()
    assert permuted(np.empty((0, 0)), np.empty(0, np.int64))[0].shape == (0, 0)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Database, Floats]:
    """Two circuits of addition (1, 2), two of another task (3, 4), one in another way (5), one of another model."""
    scores = RNG.standard_normal((6, SHAPE.n_edges)) + np.linspace(0, 3, SHAPE.n_edges)
    path = tmp_path_factory.mktemp("tasks") / "c.duckdb"
    store = Store(path)
    for i, (task, method, name) in enumerate(
        [("addition", "eap-ig", "tiny")] * 2 + [("boolean", "eap-ig", "tiny")] * 2
        + [("boolean", "eap", "tiny"), ("boolean", "eap-ig", "other")]
    ):  # fmt: skip
        one = replace(circuit(f"s{i}", task=task, salt=str(i), of=model(name)), method=method)
        store.write(one, scores[i], [scores[i], scores[i]])
    return Database(path), scores.astype(np.float32).astype(np.float64)


def test_beside_every_similarity_stand_its_nulls(tasks: tuple[Database, Floats]) -> None:
    db, scores = tasks
    found = db.nulls(task="addition")
    (row,) = found.rows()
    rho = stats.spearmanr(scores, axis=1).statistic
    mean, deviation = permuted(scores[:2], Ends.of(SHAPE).strata())
    assert row["similarity"] == pytest.approx(rho[0, 1], abs=1e-12)
    assert row["permuted"] == pytest.approx(mean[0, 1], abs=1e-12)
    assert row["permuted_sd"] == pytest.approx(deviation[0, 1], abs=1e-12)
    assert row["z"] == pytest.approx((rho[0, 1] - mean[0, 1]) / deviation[0, 1], abs=1e-9)
    assert row["other_tasks"] == pytest.approx(rho[:2, 2:4].mean(), abs=1e-12)
    assert row["ceiling"] == pytest.approx(1)
    assert "to 2 circuits of other tasks of the same model, scored in the same way." in " ".join(found.notes)
    assert found.title == "Similarity of 2 circuits against chance: Spearman's rho, signed scores"


def test_nulls_are_over_the_edges_of_the_similarity(tmp_path: Path) -> None:
    """Three circuits, each with other edges missing: a null over the edges of all three would be of another number."""
    scores = RNG.standard_normal((3, SHAPE.n_edges)) + np.linspace(0, 3, SHAPE.n_edges)
    for i in range(3):
        scores[i, 10 * i : 10 * i + 10] = np.nan
    store = Store(tmp_path / "c.duckdb")
    for i, row in enumerate(scores):
        store.write(circuit(f"s{i}"), row, [row, row])
    kept = scores.astype(np.float32).astype(np.float64)
    rows = Database(tmp_path / "c.duckdb").nulls().rows()
    for row, (i, j) in zip(rows, [(0, 1), (0, 2), (1, 2)], strict=True):
        both = ~np.isnan(kept[[i, j]]).any(axis=0)
        assert row["similarity"] == pytest.approx(stats.spearmanr(*kept[[i, j]][:, both]).statistic, abs=1e-12)
        mean, deviation = permuted(kept[[i, j]][:, both], Ends.of(SHAPE).strata()[both])
        assert row["permuted"] == pytest.approx(mean[0, 1], abs=1e-12)
        assert row["permuted_sd"] == pytest.approx(deviation[0, 1], abs=1e-12)
        assert row["z"] == pytest.approx((row["similarity"] - mean[0, 1]) / deviation[0, 1], abs=1e-9)


def test_other_tasks_are_each_others(tasks: tuple[Database, Floats]) -> None:
    db, scores = tasks
    rows = db.nulls(circuits=[1, 3], on="magnitude", kind="pearson").rows()
    r = np.corrcoef(np.abs(scores))
    expected = (r[0, 2:4].mean() + r[2, :2].mean()) / 2
    assert rows[0]["other_tasks"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "asked", [{"level": "node"}, {"shared": True}, {"nonzero": True}, {"kind": "overlap"}, {"kind": "kendall"}]
)
def test_without_such_a_null_it_is_null(tasks: tuple[Database, Floats], asked: dict[str, object]) -> None:
    db, _ = tasks
    found = db.nulls(task="addition", **asked)  # type: ignore[arg-type]
    (row,) = found.rows()
    assert (row["permuted"], row["permuted_sd"], row["z"]) == (None, None, None)
    assert row["other_tasks"] is not None
    assert any("permuted is NULL" in note for note in found.notes)


def test_filtered_edges_have_their_strata(tasks: tuple[Database, Floats]) -> None:
    db, scores = tasks
    ends = Ends.of(SHAPE)
    kept = ends.target_kind == 0
    (row,) = db.nulls(task="addition", target="head").rows()
    assert row["permuted"] == pytest.approx(permuted(scores[:2, kept], ends.strata()[kept])[0][0, 1], abs=1e-12)


def test_a_database_of_one_task_and_an_empty_one(db: Database, tmp_path: Path) -> None:
    found = db.nulls(circuits=[1, 2])
    assert found.rows()[0]["other_tasks"] is None
    assert any("other_tasks is NULL" in note for note in found.notes)
    Store(tmp_path / "c.duckdb").create()
    assert len(Database(tmp_path / "c.duckdb").nulls()) == 0
