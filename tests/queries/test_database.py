from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

import circuitdb
from circuitdb.errors import MissingDatabase, SchemaMismatch, UsageError
from circuitdb.queries import Database, Result
from circuitdb.queries.coefficients import coefficient
from circuitdb.queries.cuts import Cut, hard
from circuitdb.queries.ranks import midranks
from circuitdb.records import Accuracy, Example
from circuitdb.store import Store
from stores import SHAPE, circuit


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> tuple[Database, np.ndarray]:
    """Circuits with ties, zeros of both signs, a missing score, and one that is constant."""
    rng = np.random.default_rng(5)
    scores = np.round(rng.standard_normal((4, SHAPE.n_edges)), 1).astype(np.float32)
    scores[0, :6] = [0.0, -0.0, 0.0, 9, -9, 9]
    scores[1, 3:5] = np.nan
    scores[3] = 2
    path = tmp_path_factory.mktemp("odd") / "c.duckdb"
    store = Store(path)
    for i, row in enumerate(scores):
        store.write(circuit(f"{i}"), row)
    return Database(path), scores


def test_open_gives_a_database(path: Path) -> None:
    found = circuitdb.open(path, timeout=1.0)
    assert isinstance(found, Database)
    assert repr(found) == f"Database({str(path)!r})"


def test_a_wrong_file_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(MissingDatabase, match="There is no database"):
        Database(tmp_path / "none.duckdb")
    (tmp_path / "text").write_text("text")
    with pytest.raises(SchemaMismatch):
        Database(tmp_path / "text")


def test_circuits(db: Database) -> None:
    found = db.circuits(subtask=["1+2", "3+1"])
    assert found.title == "2 circuits"
    rows = found.rows()
    assert [(row["circuit_id"], row["subtask"], row["accuracy"]) for row in rows] == [
        (2, "1+2", pytest.approx(1 / 3)), (7, "3+1", 0.25),
    ]  # fmt: skip
    assert rows[0]["parameters"] == '{"digits_a":1,"digits_b":2}'
    assert (rows[0]["n_edges"], rows[0]["n_folds"], rows[0]["wall_time_s"]) == (SHAPE.n_edges, 2, 1.5)


def test_circuits_are_in_the_order_of_their_subtasks(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    for a in (10, 9):
        store.write(circuit(f"{a}+1", {"a": a}), np.arange(SHAPE.n_edges))
    assert [row["subtask"] for row in Database(tmp_path / "c.duckdb").circuits().rows()] == ["9+1", "10+1"]


def test_top_edges(odd: tuple[Database, np.ndarray]) -> None:
    db, _ = odd
    found = db.top_edges(1, n=4)
    assert found.title == "Strongest 4 edges of circuit 1 (0)"
    assert found.columns == ["place", "edge", "source", "target", "score", "edge_id"]
    rows = found.rows()
    assert [(row["place"], row["edge_id"], row["score"]) for row in rows[:3]] == [(1, 3, 9), (2, 4, -9), (3, 5, 9)]
    assert rows[0]["edge"] == SHAPE.edge_names[3] == f"{rows[0]['source']}->{rows[0]['target']}"
    assert len(db.top_edges(2, n=500)) == SHAPE.n_edges - 2  # NULL scores are not ranked


@pytest.mark.parametrize(("circuit_id", "n", "message"), [(17, 5, "There is no circuit 17"), (1, 0, "n=0 is too few")])
def test_top_edges_of_nothing(db: Database, circuit_id: int, n: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        db.top_edges(circuit_id, n)


def test_evaluations(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    store.write(circuit("1+1"), np.arange(SHAPE.n_edges), accuracy=Accuracy(0.75, None, 8))
    store.write(circuit("1+2"), np.arange(SHAPE.n_edges))
    with duckdb.connect(str(tmp_path / "c.duckdb")) as connection:
        connection.execute("INSERT INTO subtask VALUES (9, 1, '9+9', '{}')")
        for subtask in (2, 9):
            connection.execute(
                "INSERT INTO evaluation VALUES (1, ?, NULL, 'acc', 'none', 0.5, NULL, 100, 'results.json')", [subtask]
            )
    db = Database(tmp_path / "c.duckdb")
    assert [(row["subtask"], row["circuit_id"], row["metric"], row["value"]) for row in db.evaluations().rows()] == [
        ("1+1", 1, "accuracy", 0.75), ("1+2", None, "acc", 0.5), ("9+9", None, "acc", 0.5),
    ]  # fmt: skip
    assert [row["subtask"] for row in db.evaluations(circuits=[1, 2]).rows()] == ["1+1", "1+2"]
    assert [row["source"] for row in db.evaluations(subtask="1+2").rows()] == ["results.json"]


def test_the_similarity_macro_agrees(odd: tuple[Database, np.ndarray]) -> None:
    db, scores = odd
    found = coefficient("spearman", scores)
    for a in range(4):
        for b in range(4):
            row = db.sql(f"SELECT * FROM similarity({a + 1}, {b + 1})").rows()[0]
            assert row["n_edges"] == found.n_edges[a, b]
            expected = None if np.isnan(found.values[a, b]) else pytest.approx(found.values[a, b], abs=1e-12)
            assert row["similarity"] == expected


def test_the_edge_ranks_view_agrees(odd: tuple[Database, np.ndarray]) -> None:
    db, scores = odd
    rows = db.sql("SELECT circuit_id, edge_id, rank FROM edge_ranks").arrow()
    found = np.full(scores.shape, np.nan)
    found[rows["circuit_id"].to_numpy() - 1, rows["edge_id"].to_numpy()] = rows["rank"].to_numpy()
    np.testing.assert_array_equal(found, midranks(scores))


@pytest.mark.parametrize("n", [1, 5, 20, 74])
def test_the_top_edges_macro_agrees(odd: tuple[Database, np.ndarray], n: int) -> None:
    db, scores = odd
    for i, row in enumerate(scores, start=1):
        found = db.sql(f"SELECT edge_id FROM top_edges({i}, {n}) WHERE score <> 0 ORDER BY edge_id")
        edges = found.arrow()["edge_id"].to_pylist()
        assert edges == np.flatnonzero(hard(row[None], Cut.of(top=n), SHAPE).members[0]).tolist()


def test_an_empty_database_gives_empty_answers(tmp_path: Path) -> None:
    Store(tmp_path / "c.duckdb").create()
    db = Database(tmp_path / "c.duckdb")
    answers = [
        db.circuits(), db.reliability(), db.similarity(), db.similarity().wide(), db.stability(), db.families(),
        db.family_sweep(), db.containment(), db.containment().wide(), db.evaluations(), db.containment_order(),
        db.inclusion(), db.inclusion([Cut.of(greedy=3, prune=True)]),
    ]  # fmt: skip
    for answer in answers:
        assert len(answer) == 0
        assert answer.columns
        assert repr(answer).startswith(answer.title)
    assert db.families().columns == [
        "family", "size", "circuit_id", "subtask", "medoid", "lowest_within", "lowest_ceiling", "mean_within",
        "mean_ceiling", "silhouette", "reliability",
    ]  # fmt: skip
    assert str(db.stability().arrow().schema.field("stability").type) == "double"
    assert db.stability().notes == ("The database holds no circuit yet; `circuitdb ingest` fills it.",)
    for ask in (db.top_edges, db.show, db.hard_circuit):
        with pytest.raises(UsageError, match="There is no circuit 1; the database holds none yet"):
            ask(1)


def test_show(tmp_path: Path) -> None:
    scores = np.arange(SHAPE.n_edges, dtype=np.float32)
    # Folds that agree on size and disagree on sign: rho -1, of which Spearman-Brown has no value, and 1.
    examples = [Example("1+1=", answer="2", fold=0), Example("9+9=", answer="18", reason="too long")]
    Store(tmp_path / "c.duckdb").write(circuit("1+1"), scores, [scores, -scores], examples=examples)
    found = Database(tmp_path / "c.duckdb").show(1, edges=2)
    (provenance,) = found.provenance.rows()
    assert (provenance["model"], provenance["subtask"], provenance["weights_digest"]) == (
        "tiny", "1+1", "digest of tiny",
    )  # fmt: skip
    assert [(r["on"], r["fold_correlation"], r["reliability"]) for r in found.reliability.rows()] == [
        ("signed", -1, None), ("magnitude", 1, 1),
    ]  # fmt: skip
    assert [row["edge_id"] for row in found.edges.rows()] == [74, 73]
    assert found.skipped.rows() == [{"position": 1, "clean": "9+9=", "answer": "18", "reason": "too long"}]
    assert found.skipped.title == "1 question left out"


def test_schema(db: Database) -> None:
    kinds = {row["name"]: row["kind"] for row in db.schema().rows()}
    assert (kinds["edge_score"], kinds["circuits"], kinds["top_edges(circuit, n)"]) == ("table", "view", "macro")
    assert [row["column"] for row in db.schema("fold_score").rows()] == ["circuit_id", "fold", "edge_id", "score"]
    assert db.schema("top_edges").columns == ["column", "type"]
    with pytest.raises(UsageError, match="no table, view or macro scors; did you mean scores"):
        db.schema("scors")


def test_a_filter_of_zero_is_a_filter(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    for shots in (0, 3):
        one = replace(circuit(f"{shots}", salt=str(shots)), shots=shots)
        store.write(one, np.arange(SHAPE.n_edges), accuracy=Accuracy(0.5, None, 8))
    db = Database(tmp_path / "c.duckdb")
    assert [row["subtask"] for row in db.evaluations(shots=0).rows()] == ["0"]
    assert [row["subtask"] for row in db.circuits(shots=0).rows()] == ["0"]
    assert len(db.evaluations()) == 2


def test_one_circuit_is_a_family_of_its_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    folds = rng.standard_normal(SHAPE.n_edges) + rng.standard_normal((2, SHAPE.n_edges))
    Store(tmp_path / "c.duckdb").write(circuit("1+1"), folds.mean(0), folds)
    db = Database(tmp_path / "c.duckdb")
    assert db.similarity().wide().rows()[0]["1+1"] == 1.0
    assert len(db.similarity()) == len(db.family_sweep()) == len(db.containment()) == 0
    assert [(row["family"], row["size"]) for row in db.families().rows()] == [("A", 1)]


def test_every_answer_is_a_typed_table(db: Database) -> None:
    for answer in (db.circuits(), db.reliability(), db.stability(), db.families(), db.family_sweep(), db.evaluations()):
        assert isinstance(answer, Result)
        assert not any(str(field.type) == "null" for field in answer.arrow().schema)


def test_questions_load_neither_torch_nor_textual(path: Path) -> None:
    script = (
        "import sys, circuitdb; db = circuitdb.open(sys.argv[1]); db.families(); db.containment(); db.sql('SELECT 1')\n"
        "print(sorted({'torch', 'textual', 'pandas', 'circuitdb.ingest'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
