from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from circuitdb.errors import UsageError
from circuitdb.graph import GraphShape
from circuitdb.queries import Database
from circuitdb.queries.pair import ladder
from circuitdb.store import Store
from stores import SHAPE, circuit, model


def test_the_ladder() -> None:
    assert ladder(8) == [1, 2, 3, 4, 5, 6, 8]
    assert ladder(75) == [1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 40, 50, 60, 75]
    assert ladder(1) == [1]
    assert ladder(123_211)[-4:] == [60_000, 80_000, 100_000, 123_211]


@pytest.mark.parametrize("signed", [False, True])
def test_overlap_is_that_of_containment(db: Database, signed: bool) -> None:
    rows = {row["n"]: row for row in db.pair(4, 2).overlap([1, 7, 30, 75, 900], signed=signed).rows()}
    for n, row in rows.items():
        assert isinstance(n, int)
        there = {r["a_id"]: r for r in db.containment(circuits=[2, 4], top=n, signed=signed).rows()}
        assert (row["n_a"], row["n_b"], row["shared"]) == (there[4]["n_a"], there[4]["n_b"], there[4]["shared"])
        assert row["a_in_b"] == pytest.approx(there[4]["share_of_a"])
        assert row["b_in_a"] == pytest.approx(there[2]["share_of_a"])
        for name in ("jaccard", "expected_jaccard", "p_value"):
            assert row[name] == pytest.approx(there[4][name])
        assert row["expected_shared"] == pytest.approx(row["n_a"] * row["n_b"] / 75)  # type: ignore[operator]
    assert rows[75]["n_a"] == rows[900]["n_a"] == (75 if not signed else (scores(db, 4) > 0).sum())


def scores(db: Database, which: int) -> np.ndarray:
    rows = db.sql(f"SELECT score FROM edge_score WHERE circuit_id = {which} ORDER BY edge_id").rows()
    return np.array([np.nan if row["score"] is None else row["score"] for row in rows], np.float64)


def test_similarity_is_in_the_order_of_the_two_with_its_reliabilities(db: Database) -> None:
    pair = db.pair(5, 1)
    assert pair.signed.circuit_ids == pair.magnitude.circuit_ids == (5, 1)
    a, b = scores(db, 5), scores(db, 1)
    assert pair.signed.matrix[0, 1] == pytest.approx(stats.spearmanr(a, b).statistic)
    assert pair.magnitude.matrix[0, 1] == pytest.approx(stats.spearmanr(np.abs(a), np.abs(b)).statistic)
    reliability = {row["subtask"]: row["reliability"] for row in db.reliability(circuits=[1, 5]).rows()}
    assert pair.signed.reliabilities == pytest.approx([reliability["2+2"], reliability["1+1"]])
    assert (pair.first.label, pair.second.label) == ("2+2", "1+1")


@pytest.mark.parametrize("signed", [False, True])
def test_edges_of_either_by_sets(db: Database, signed: bool) -> None:
    n = 12
    found = db.pair(3, 7).edges(n, signed=signed)
    ids = {}
    for side, which in (("a", 3), ("b", 7)):
        strong = scores(db, which) if signed else np.abs(scores(db, which))
        ids[side] = np.argsort(-strong, kind="stable")
    a, b = (set(own[:n].tolist()) for own in ids.values())
    where = {row["edge_id"]: row["where"] for row in found.rows()}
    assert where == {i: "both" if i in a & b else "only a" if i in a else "only b" for i in a | b}
    assert found.title == (
        f"Edges of 1+3 (a) and 3+1 (b), 12 strongest: {len(a - b)} only a, {len(a & b)} both, {len(b - a)} only b"
    )
    for row in found.rows():
        edge = row["edge_id"]
        assert isinstance(edge, int)
        assert row["edge"] == SHAPE.edge_names[edge]
        assert row["score_b"] == scores(db, 7)[edge]
        for side, strong in (("a", scores(db, 3)), ("b", scores(db, 7))):
            place = ids[side].tolist().index(edge) + 1
            assert row[f"place_{side}"] == (place if not signed or strong[edge] > 0 else None)
    places = found.arrow().select(["place_a", "place_b"]).to_pylist()
    better = [min(place for place in row.values() if place) for row in places]
    assert better == sorted(better)


def test_nodes_by_their_share_of_the_circuit(tmp_path: Path) -> None:
    """One layer of one head: edges 0-4 leave the input, 5 and 6 the head, 7 the MLP."""
    shape = GraphShape(1, 1)
    store = Store(tmp_path / "c.duckdb")
    store.write(circuit("a", of=model(shape=shape)), np.array([1, 1, 1, 1, 1, -2, -1, 2], np.float32))
    nan = np.nan
    store.write(circuit("b", of=model(shape=shape)), np.array([10, 10, 0, 0, 0, 70, 10, nan], np.float32))
    store.write(circuit("c", of=model(shape=shape)), np.zeros(8, np.float32))
    db = Database(store.path)
    # Sums of a: 5, -3, 2, of 10 in all; of b: 20, 80 of 100, and none.
    names = ("node", "score_a", "score_b", "share_a", "share_b")
    expected = [("a0.h0", -3, 80, -0.3, 0.8), ("input", 5, 20, 0.5, 0.2), ("m0", 2, None, 0.2, None)]
    rows = db.pair(1, 2).nodes().rows()
    assert [tuple(row[name] for name in names) for row in rows] == expected
    assert [row["difference"] for row in rows] == [pytest.approx(1.1), pytest.approx(-0.3), None]
    assert [row["difference"] for row in db.pair(1, 3).nodes().rows()] == [None] * 3  # no share of nothing
    (row,) = db.pair(3, 1).overlap([5]).rows()
    assert (row["n_a"], row["n_b"], row["shared"], row["a_in_b"], row["b_in_a"]) == (0, 5, 0, None, 0)


def test_two_of_one_graph_are_asked_for(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    for name, shape in (("tiny", SHAPE), ("other", GraphShape(1, 1))):
        store.write(circuit(of=model(name, shape)), np.ones(shape.n_edges, np.float32))
    db = Database(store.path)
    with pytest.raises(UsageError) as caught:
        db.pair(2, 2)
    assert str(caught.value) == "A circuit is compared with another one, not with itself; both are circuit 2."
    with pytest.raises(UsageError, match="graph"):
        db.pair(1, 2)
    with pytest.raises(UsageError, match="no circuit 7"):
        db.pair(1, 7)
