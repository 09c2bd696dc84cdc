"""Writing circuits: whole or not at all, once, and with every score."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import rankdata

from circuitdb.connection import reading, writing
from circuitdb.errors import ScoreError, StoreError
from circuitdb.graph import GraphShape
from circuitdb.records import Accuracy, Example
from circuitdb.store import Store
from stores import SHAPE, addition_scores, addition_store, circuit, model

Scores = npt.NDArray[np.float32]
RNG = np.random.default_rng(5)
SCORES = RNG.standard_normal(SHAPE.n_edges).astype(np.float32)
FOLDS = RNG.standard_normal((2, SHAPE.n_edges)).astype(np.float32)


def rows(path: Path, sql: str, *parameters: object) -> list[tuple[object, ...]]:
    """Ask the file."""
    with reading(path) as connection:
        return connection.execute(sql, list(parameters)).fetchall()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A database that does not exist yet."""
    return Store(tmp_path / "circuits.duckdb")


def test_scores_come_back_to_the_bit(store: Store) -> None:
    written = store.write(circuit(), SCORES, FOLDS)
    path = Path(store.path)
    assert written == 1
    found = rows(path, "SELECT edge_id, score FROM edge_score WHERE circuit_id = 1 ORDER BY edge_id")
    assert [row[0] for row in found] == list(range(SHAPE.n_edges))
    assert np.array([row[1] for row in found], np.float32).tobytes() == SCORES.tobytes()
    found = rows(path, "SELECT score FROM fold_score ORDER BY fold, edge_id")
    assert np.array([row[0] for row in found], np.float32).tobytes() == FOLDS.tobytes()


def test_provenance_examples_and_accuracy_are_stored(store: Store) -> None:
    examples = [
        Example("1 + 1 = ", "2 + 3 = ", "2", "5", n_tokens=8, fold=0, prediction="2", correct=True),
        Example("9 + 9 = ", answer="18", n_tokens=9, reason="no other question has 9 tokens"),
    ]
    store.write(circuit("1+1", {"digits_a": 1, "digits_b": 1}), SCORES, FOLDS, examples=examples,
                accuracy=Accuracy(0.5, 0.35, 2))  # fmt: skip
    path = Path(store.path)
    assert rows(
        path,
        "SELECT model, task, subtask, parameters->>'digits_b', method, steps, grid, metric, shots, accuracy "
        "FROM circuits",
    ) == [("tiny", "addition", "1+1", "1", "eap-ig", 5, "right", "kl", 3, 0.5)]
    assert rows(path, "SELECT clean, corrupted, used, reason, correct FROM example ORDER BY position") == [
        ("1 + 1 = ", "2 + 3 = ", True, None, True),
        ("9 + 9 = ", None, False, "no other question has 9 tokens", None),
    ]
    assert rows(path, "SELECT parameter, value, number FROM subtask_parameters ORDER BY parameter") == [
        ("digits_a", "1", 1.0),
        ("digits_b", "1", 1.0),
    ]


def test_same_spec_is_kept_and_replace_is_explicit(store: Store) -> None:
    first = store.write(circuit(), SCORES)
    assert store.write(circuit(), SCORES * 2) == first
    assert store.write(circuit(salt="other spec"), SCORES * 3) == 2
    replaced = store.write(circuit(), SCORES * 4, replace=True)
    path = Path(store.path)
    assert replaced == 3
    assert rows(path, "SELECT circuit_id, count(*), sum(score) FROM edge_score GROUP BY 1 ORDER BY 1") == [
        (2, SHAPE.n_edges, pytest.approx(float(SCORES.sum()) * 3, abs=1e-4)),
        (3, SHAPE.n_edges, pytest.approx(float(SCORES.sum()) * 4, abs=1e-4)),
    ]
    assert set(store.finished().values()) == {2, 3}


def test_notes_pass_to_the_successor(store: Store) -> None:
    store.write(circuit(), SCORES)
    with writing(store.path) as connection:
        connection.execute("INSERT INTO note (circuit_id, text) VALUES (1, 'odd'), (NULL, 'general')")
    store.write(circuit(salt="other"), SCORES)
    assert store.write(circuit(), SCORES, replace=True) == 3
    assert rows(Path(store.path), "SELECT circuit_id, text FROM note ORDER BY text") == [(None, "general"), (3, "odd")]


def test_graph_model_and_subtask_are_shared(store: Store) -> None:
    store.write(circuit("1+1", {"digits_a": 1}), SCORES)
    store.write(circuit("1+2", {"digits_a": 1}), SCORES)
    store.write(circuit("1+1", {"digits_a": 1}, of=model("other")), SCORES)
    store.write(circuit("1+1", {"digits_a": 1}, of=model("deep", GraphShape(3, 3))), np.zeros(GraphShape(3, 3).n_edges))
    counts = [
        rows(Path(store.path), f"SELECT count(*) FROM {table}")[0][0]
        for table in ("graph", "model", "task", "subtask", "circuit")
    ]
    assert counts == [2, 3, 1, 2, 4]


def test_non_finite_scores_become_null_and_are_counted(store: Store) -> None:
    scores = SCORES.copy()
    scores[[0, 5, 9]] = [np.nan, np.inf, -np.inf]
    store.write(circuit(), scores)
    path = Path(store.path)
    assert rows(path, "SELECT n_nonfinite FROM circuit") == [(3,)]
    assert rows(path, "SELECT edge_id FROM edge_score WHERE score IS NULL ORDER BY 1") == [(0,), (5,), (9,)]
    assert rows(path, "SELECT count(*) FROM edge_score WHERE NOT isfinite(score)") == [(0,)]


def test_score_digest_is_sha256_of_the_little_endian_floats(store: Store) -> None:
    store.write(circuit(), SCORES)
    wanted = hashlib.sha256(SCORES.astype("<f4").tobytes()).hexdigest()
    assert rows(Path(store.path), "SELECT score_digest FROM circuit") == [(wanted,)]


@pytest.mark.parametrize(
    ("scores", "folds", "message"),
    [
        (SCORES[:-1], None, "this graph has 75 edges"),
        (SCORES.reshape(1, -1), None, "this graph has 75 edges"),
        (SCORES, FOLDS[:, :-1], r"they must be \[folds, 75\]"),
        (SCORES, FOLDS[0], r"they must be \[folds, 75\]"),
        (SCORES.astype(str), None, "must be real numbers"),
        (SCORES.astype(complex), None, "must be real numbers"),
    ],
)
def test_scores_of_the_wrong_shape_or_type_change_nothing(
    store: Store, scores: npt.NDArray[np.generic], folds: Scores | None, message: str
) -> None:
    with pytest.raises(ScoreError, match=message):
        store.write(circuit(), scores, folds)
    assert not Path(store.path).exists()


def test_a_circuit_without_examples_is_refused(store: Store) -> None:
    with pytest.raises(ScoreError, match="has no scored example"):
        store.write(circuit(n_examples=0), SCORES)


def test_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not exist; make it"):
        Store(tmp_path / "no" / "circuits.duckdb").create()


def test_a_failure_in_mid_write_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write(circuit(), SCORES, FOLDS)

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("circuitdb.store._example_table", fail)
    with pytest.raises(KeyboardInterrupt):
        store.write(circuit(salt="second"), SCORES, FOLDS)
    path = Path(store.path)
    assert rows(path, "SELECT count(*) FROM circuit") == [(1,)]
    assert rows(path, "SELECT count(*) FROM edge_score") == [(SHAPE.n_edges,)]


WRITER = """
import sys
from stores import circuit, model
from circuitdb.graph import GraphShape
from circuitdb.store import Store
import numpy as np
import numpy.typing as npt
shape = GraphShape(12, 12)
store = Store(sys.argv[1])
scores = np.random.default_rng(0).standard_normal(shape.n_edges).astype(np.float32)
start = len(store.finished())
for n in range(start, int(sys.argv[2])):
    store.write(circuit(str(n), {"n": n}, of=model(shape=shape)), scores, np.stack([scores, scores]))
    print(n, flush=True)
"""


def test_kill_9_loses_no_finished_circuit_and_leaves_none_by_half(tmp_path: Path) -> None:
    path, n = tmp_path / "circuits.duckdb", 6
    rng = np.random.default_rng(3)
    # All of sys.path, so that it is this circuitdb that is killed and not one that is installed.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent / "support"), *sys.path])}
    command = [sys.executable, "-c", WRITER, str(path), str(n)]
    kills = 0
    for _ in range(n):
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(float(rng.uniform(0, 0.3)))
            process.send_signal(signal.SIGKILL)
            reported = process.stdout.read().split()
        kills += process.returncode == -signal.SIGKILL
        stored = rows(path, "SELECT count(*), count(DISTINCT spec_digest) FROM circuit")[0]
        assert stored[0] == stored[1]
        assert int(str(stored[0])) >= (int(reported[-1]) + 1 if reported else 1)  # what was reported is there
        halves = rows(
            path,
            "SELECT c.circuit_id FROM circuit AS c "
            "WHERE (SELECT count(*) FROM edge_score AS e WHERE e.circuit_id = c.circuit_id) <> c.n_edges "
            "OR (SELECT count(*) FROM fold_score AS f WHERE f.circuit_id = c.circuit_id) <> 2 * c.n_edges",
        )
        assert halves == []
        if stored[0] == n:
            break
    assert kills >= 2
    assert rows(path, "SELECT count(*) FROM circuit") == [(n,)]
    assert rows(path, "SELECT count(*) FROM edge_score WHERE circuit_id NOT IN (SELECT circuit_id FROM circuit)") == [
        (0,)
    ]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Plain DuckDB, without a line of ours, on a 2 x 2 addition database."""
    path = addition_store(tmp_path_factory.mktemp("bare") / "circuits.duckdb", digits=2)
    with duckdb.connect(str(path), read_only=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def first() -> Scores:
    """Scores of circuit 1 of it."""
    return addition_scores(digits=2)[1, 1][0]


def test_macro_top_edges(shell: duckdb.DuckDBPyConnection, first: Scores) -> None:
    found = shell.execute("SELECT edge, score FROM top_edges(1, 5)").fetchall()
    order = np.lexsort((np.arange(first.size), -np.abs(first)))[:5]
    assert [row[0] for row in found] == [SHAPE.edge_names[i] for i in order]
    assert [row[1] for row in found] == first[order].tolist()


def test_edge_ranks_are_mid_ranks(shell: duckdb.DuckDBPyConnection, first: Scores) -> None:
    found = shell.execute("SELECT rank FROM edge_ranks WHERE circuit_id = 1 ORDER BY edge_id").fetchall()
    assert [float(row[0]) for row in found] == rankdata(first).tolist()


def test_node_scores_are_sums_over_outgoing_edges(shell: duckdb.DuckDBPyConnection, first: Scores) -> None:
    found = dict(shell.execute("SELECT node, score FROM node_scores WHERE circuit_id = 1").fetchall())
    sums = np.bincount(SHAPE.edge_sources, weights=first, minlength=SHAPE.n_sources)
    assert set(found) == set(SHAPE.source_names)
    assert [found[name] for name in SHAPE.source_names] == pytest.approx(sums.tolist(), abs=1e-6)


def test_names_are_joined_in(shell: duckdb.DuckDBPyConnection) -> None:
    found = shell.execute(
        "SELECT subtask, source_kind, source_layer, source_head, target_kind, target_layer, target_head, qkv "
        "FROM scores WHERE circuit_id = 2 AND edge = 'a0.h2->a1.h1<k>'"
    ).fetchall()
    assert found == [("1+2", "head", 0, 2, "head", 1, 1, "k")]


def test_shared_scores_sum_over_the_group(tmp_path: Path) -> None:
    shape = GraphShape(1, 4)
    scores = np.arange(shape.n_edges, dtype=np.float32)
    path = tmp_path / "grouped.duckdb"
    Store(path).write(circuit(of=model("grouped", shape, n_kv_heads=2)), scores)
    wanted = sum(float(scores[shape.edge_id(f"input->a0.h{head}<v>")]) for head in (2, 3))
    assert rows(path, "SELECT score FROM shared_scores WHERE source = 'input' AND target = 'a0.kv1<v>'") == [(wanted,)]
    groups = rows(path, "SELECT DISTINCT target_head, kv_group FROM scores WHERE qkv = 'k' ORDER BY 1")
    assert groups == [(0, 0), (1, 0), (2, 1), (3, 1)]


def test_every_table_view_and_column_has_a_comment(shell: duckdb.DuckDBPyConnection) -> None:
    missing = shell.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal AND comment IS NULL "
        "UNION ALL SELECT table_name, NULL FROM duckdb_tables() WHERE NOT internal AND comment IS NULL "
        "UNION ALL SELECT view_name, NULL FROM duckdb_views() WHERE NOT internal AND comment IS NULL"
    ).fetchall()
    assert missing == []
