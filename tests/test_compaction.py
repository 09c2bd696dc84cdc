"""Files written anew: the same content in less room, whole at any moment, and nobody's work lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import numpy as np
import pytest

from circuitdb import compaction
from circuitdb.compaction import compact
from circuitdb.connection import reading, writing
from circuitdb.doctor import examine
from circuitdb.errors import LockedDatabase, MissingDatabase, StoreError
from circuitdb.graph import GraphShape
from circuitdb.records import Accuracy
from circuitdb.store import Store
from stores import SHAPE, addition_store, circuit, model

COMPACT = "import sys; from circuitdb.compaction import compact; print('go', flush=True); compact(sys.argv[1])"
# In a transaction of its own each, as an ingest writes; a number is printed once its circuit is stored.
WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from circuitdb.store import Store
from stores import SHAPE, circuit
store = Store(sys.argv[1])
for i in range(int(sys.argv[3])):
    print(store.write(circuit(salt=f"w{i}"), [float(i)] * SHAPE.n_edges), flush=True)
"""
SUPPORT = str(Path(__file__).parent / "support")


def everything(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table in its order, and every definition, read without any code of ours."""
    with duckdb.connect(str(path), read_only=True) as connection:
        names = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY ALL").fetchall()
        found = {str(name): connection.execute(f"SELECT * FROM {name}").fetchall() for (name,) in names}
        for what in ("tables", "columns", "views", "functions", "constraints"):
            rows = connection.execute(f"SELECT * FROM duckdb_{what}() WHERE database_name = current_database()")
            columns = [column[0] for column in rows.description or ()]
            kept = [i for i, name in enumerate(columns) if not name.endswith("_oid") and "size" not in name
                    and name not in ("database_name", "index_count")]  # fmt: skip
            found[what] = sorted(tuple(str(row[i]) for i in kept) for row in rows.fetchall())
        return found


def test_nothing_changes_but_the_size(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "circuits.duckdb")
    store = Store(path)
    for digits in ("1+1", "2+2"):  # holes, and rows that moved to the end
        rows = np.full((2, SHAPE.n_edges), 0.25, np.float32)
        store.write(circuit(digits, {"digits_a": 1, "digits_b": 1}), rows[0], rows, replace=True)
    with writing(path) as connection:
        connection.execute("CREATE TABLE mine (a INTEGER PRIMARY KEY, b VARCHAR DEFAULT 'x')")
        connection.execute("INSERT INTO mine (a) VALUES (7), (3)")
        connection.execute("CREATE VIEW evals.mine AS SELECT * FROM circuits")
    path.chmod(0o640)
    before = everything(path)
    done = compact(path)
    assert everything(path) == before
    assert (done.after, path.stat().st_mode & 0o777) == (path.stat().st_size, 0o640)
    assert done.n_scores == len(before["edge_score"])
    assert [entry.name for entry in tmp_path.iterdir()] == ["circuits.duckdb"]
    assert examine(path, every=True).healthy
    again = compact(path)
    assert again.after == again.before == done.after


def test_circuits_are_added_and_replaced_after_it(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "circuits.duckdb")
    compact(path)
    rng = np.random.default_rng(1)
    written = {}
    for i in range(3):
        scores = rng.standard_normal(SHAPE.n_edges).astype(np.float32)
        written[Store(path).write(circuit(salt=f"new {i}"), scores)] = scores
        compact(path)
    scores = rng.standard_normal(SHAPE.n_edges).astype(np.float32)
    written[Store(path).write(circuit(salt="new 1"), scores, replace=True)] = scores
    del written[11]
    with reading(path) as connection:
        for circuit_id, scores in written.items():
            found = connection.execute(
                "SELECT score FROM edge_score WHERE circuit_id = ? ORDER BY edge_id", [circuit_id]
            ).fetchnumpy()["score"]
            assert np.asarray(found).tobytes() == scores.tobytes()
    assert examine(path, every=True).healthy


@pytest.mark.parametrize("n", [16, pytest.param(64, marks=pytest.mark.slow)])
def test_bytes_per_score_of_circuits_that_came_one_by_one(n: int, tmp_path: Path) -> None:
    shape = GraphShape(30, 9)
    rng = np.random.default_rng(0)
    store = Store(tmp_path / "circuits.duckdb")
    for i in range(n):
        # As scores of a model are: signed, over many orders of magnitude, no two alike.
        scores = rng.standard_normal(shape.n_edges) * np.exp(rng.normal(-8, 2, shape.n_edges))
        store.write(circuit(str(i), of=model(shape=shape)), scores, accuracy=Accuracy(0.5, None, 8))
    done = compact(store.path)
    assert done.n_scores == n * shape.n_edges
    assert done.after < 0.85 * done.before
    if n == 64:  # of fewer circuits the names of the edges are the larger part
        assert done.after < 1.1 * 4 * done.n_scores < 36e6 < done.before
    with duckdb.connect(store.path, read_only=True) as connection:
        assert connection.execute(
            "SELECT count(DISTINCT row_group_id) FROM pragma_storage_info('edge_score')"
        ).fetchall() == [(-(-done.n_scores // compaction.ROW_GROUP),)]


def test_readers_go_on_meanwhile_and_writers_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = addition_store(tmp_path / "circuits.duckdb", digits=1)
    asked: list[str] = []
    compare = compaction._require_equal

    def ask(connection: duckdb.DuckDBPyConnection, name: str) -> None:
        code = (
            "import sys; from circuitdb.connection import reading, writing\n"
            "with reading(sys.argv[1], timeout=0) as c: print(c.execute('FROM circuit').fetchone()[0])\n"
            "with writing(sys.argv[1], timeout=0): print('wrote')"
        )
        run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
        asked.extend([run.stdout, run.stderr.splitlines()[-1]])
        compare(connection, name)

    monkeypatch.setattr(compaction, "_require_equal", ask)
    compact(path)
    assert asked[0] == "1\n"
    assert "LockedDatabase" in asked[1]
    assert f"held by process {os.getpid()}" in asked[1]


def test_a_copy_that_is_not_equal_is_not_put_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = addition_store(tmp_path / "circuits.duckdb", digits=1)
    before = path.read_bytes()
    compare = compaction._require_equal
    for change, told in (
        ("UPDATE fresh.edge_score SET score = score + 1 WHERE edge_id = 3", r'"main"\."edge_score"'),
        ("DELETE FROM fresh.example WHERE position = 7", r'"main"\."example"'),
        ("DROP VIEW fresh.node_scores", r"main\.node_scores"),
        ("COMMENT ON TABLE fresh.circuit IS 'other'", r"main\.circuit"),
        ("CREATE TABLE fresh.more (a INTEGER)", r"main\.more"),
    ):

        def spoil(connection: duckdb.DuckDBPyConnection, name: str, change: str = change) -> None:
            fresh = f"'{compaction.fresh_name(str(path))}' AS fresh"
            for statement in ("DETACH fresh", f"ATTACH {fresh}", change, "DETACH fresh", f"ATTACH {fresh} (READ_ONLY)"):
                connection.execute(statement)
            compare(connection, name)

        monkeypatch.setattr(compaction, "_require_equal", spoil)
        with pytest.raises(StoreError, match=rf"is as it was: its copy is not equal in .*{told}"):
            compact(path)
        assert path.read_bytes() == before
        assert [entry.name for entry in tmp_path.iterdir()] == ["circuits.duckdb"]


def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingDatabase, match="There is no database"):
        compact(tmp_path / "none.duckdb")
    path = addition_store(tmp_path / "circuits.duckdb", digits=1)
    with compaction._alone(str(path)), pytest.raises(LockedDatabase, match="is being compacted; wait for that"):
        compact(path)
    with reading(path), pytest.raises(LockedDatabase, match="in use by another thread"):
        compact(path, timeout=0.0)
    usage = shutil.disk_usage(tmp_path)._replace(free=path.stat().st_size)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(StoreError, match="make room"):
        compact(path)


def test_what_a_killed_writer_left_is_in_the_new_file(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "circuits.duckdb", digits=1)
    code = (
        "import duckdb, os, sys; c = duckdb.connect(sys.argv[1])\n"
        "c.execute(\"INSERT INTO note (text) VALUES ('in the log')\"); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert (tmp_path / "circuits.duckdb.wal").exists()
    compact(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["circuits.duckdb"]
    with reading(path) as connection:
        assert connection.execute("SELECT text FROM note").fetchall() == [("in the log",)]


def test_kill_9_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "circuits.duckdb")
    before = everything(path)
    start = time.monotonic()
    subprocess.run([sys.executable, "-c", COMPACT, str(path)], check=True, stdout=subprocess.DEVNULL)
    lasts = time.monotonic() - start
    rng = np.random.default_rng(7)
    kills = 0
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-c", COMPACT, str(path)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(float(rng.uniform(0, lasts / 2)))
            process.send_signal(signal.SIGKILL)
        kills += process.returncode == -signal.SIGKILL
        assert everything(path) == before
        assert examine(path, every=True).healthy
    assert kills >= 2
    compact(path)
    assert everything(path) == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["circuits.duckdb"]


def test_no_circuit_is_lost_while_files_are_put_in_each_others_place(tmp_path: Path) -> None:
    path, n = addition_store(tmp_path / "circuits.duckdb", digits=1), 8
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), SUPPORT, str(n)], stdout=subprocess.PIPE, text=True
    )
    told: list[str] = []
    listening = threading.Thread(target=lambda: told.extend(writer.communicate()[0].split()))
    listening.start()
    n_compacted = 0
    while listening.is_alive():
        compact(path, timeout=60)
        n_compacted += 1
    listening.join()
    assert told == [str(i) for i in range(2, n + 2)]
    assert n_compacted > 1
    with reading(path) as connection:
        assert connection.execute("SELECT count(*), max(circuit_id) FROM circuit").fetchall() == [(n + 1, n + 1)]
    assert examine(path, every=True).healthy
