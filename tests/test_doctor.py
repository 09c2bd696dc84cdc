"""What the doctor finds: nothing in a good file, and each fault by its name."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest

from circuitdb import migrations
from circuitdb.compaction import compact
from circuitdb.connection import writing
from circuitdb.doctor import Diagnosis, Finding, examine
from circuitdb.errors import LockedDatabase, MissingDatabase
from circuitdb.graph import GraphShape
from circuitdb.records import Example
from circuitdb.store import Store
from stores import SHAPE, addition_store, circuit, model

CHECKS = [
    "file", "schema", "tables and views", "orphan rows", "graphs", "circuits", "example scores", "hard circuits",
    "specs", "score digests", "disk",
]  # fmt: skip


def wrong(diagnosis: Diagnosis) -> list[Finding]:
    """Its findings that are faults."""
    assert diagnosis.healthy == all(finding.status != "wrong" for finding in diagnosis.findings)
    return [finding for finding in diagnosis.findings if finding.status == "wrong"]


@pytest.fixture(scope="session")
def full_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Circuits with folds, a NULL score, skipped examples, scores of single examples, of two graphs."""
    path = addition_store(tmp_path_factory.mktemp("full") / "circuits.duckdb", digits=2)
    scores = np.linspace(-1, 1, SHAPE.n_edges, dtype=np.float32)
    scores[[3, 8]] = np.nan, np.inf
    examples = [Example("1", answer="3"), Example("9+1=", answer="10", reason="no partner"), Example("2", answer="2")]
    record = replace(circuit("single", n_examples=2), n_skipped=1)
    Store(path).write(record, scores, [scores, scores], examples=examples, by_example=[scores, -scores])
    small = GraphShape(1, 2, parallel=True)
    Store(path).write(circuit("other graph", of=model("small", small), n_examples=8), np.zeros(small.n_edges))
    return path


def test_a_good_file(full_store: Path) -> None:
    diagnosis = examine(full_store, every=True)
    assert diagnosis.healthy
    assert [(finding.check, finding.status) for finding in diagnosis.findings] == [(name, "ok") for name in CHECKS]
    assert diagnosis.findings[CHECKS.index("score digests")].found == "6 of 6 computed anew, and equal."
    assert diagnosis.n_bytes == full_store.stat().st_size
    rows = {use.table: use.n_rows for use in diagnosis.tables}
    n_small = GraphShape(1, 2, parallel=True).n_edges
    assert (rows["edge_score"], rows["fold_score"]) == (5 * SHAPE.n_edges + n_small, 10 * SHAPE.n_edges)
    assert (rows["example_score"], rows["circuit"], rows["graph"], rows["note"]) == (2 * SHAPE.n_edges, 6, 2, 0)
    with duckdb.connect(str(full_store), read_only=True) as connection:
        names = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    assert set(rows) == {str(row[0]) for row in names}
    assert [use.n_bytes for use in diagnosis.tables] == sorted((use.n_bytes for use in diagnosis.tables), reverse=True)
    assert all(use.n_bytes % 262_144 == 0 for use in diagnosis.tables)
    assert diagnosis.tables[0].n_bytes > 0


N = SHAPE.n_edges
# A statement that spoils the file, the check that finds it, and what that tells.
FAULTS = [
    ("INSERT INTO edge_score VALUES (77, 0, 1)", "orphan rows",
     "1 of edge_score with a circuit_id that is not in circuit"),
    ("INSERT INTO fold_score VALUES (77, 0, 0, 1), (78, 0, 0, 1)", "orphan rows", "2 of fold_score with a circuit_id"),
    ("INSERT INTO example_score VALUES (77, 0, 0, 1)", "orphan rows", "1 of example_score with a circuit_id"),
    ("INSERT INTO example (circuit_id, position, used) VALUES (77, 0, true)", "orphan rows", "1 of example with a"),
    ("INSERT INTO note (circuit_id, text) VALUES (77, 'x')", "orphan rows", "1 of note with a circuit_id"),
    ("INSERT INTO faithfulness (circuit_id, data_circuit_id, n_edges, selection, ablation, metric) "
     "VALUES (1, 77, 1, 'a', 'b', 'c')", "orphan rows", "1 of faithfulness with a data_circuit_id"),
    ("INSERT INTO evaluation (model_id, metric, source) VALUES (9, 'a', 'b')", "orphan rows",
     "1 of evaluation with a model_id that is not in model"),
    ("UPDATE circuit SET subtask_id = 99 WHERE circuit_id = 2", "orphan rows", "1 of circuit with a subtask_id"),
    ("UPDATE subtask SET task_id = 99 WHERE subtask_id = 2", "orphan rows", "1 of subtask with a task_id"),
    ("INSERT INTO node (graph_id, node_id, name, kind) VALUES (9, 0, 'x', 'mlp')", "orphan rows", "1 of node with a"),
    ("INSERT INTO attached_file (source, file, n_bytes, modified_ns, digest) VALUES ('gone', 'f', 1, 1, 'd')",
     "orphan rows", "1 of attached_file with a source that is not in evaluation_source"),
    ("DELETE FROM edge_score WHERE circuit_id = 2 AND edge_id = 7", "circuits",
     f"scores: 2 (said {N}, found {N - 1})."),
    ("DELETE FROM edge_score WHERE circuit_id = 2", "circuits", f"scores: 2 (said {N}, found 0)"),
    ("INSERT INTO edge_score VALUES (3, 5, 1)", "circuits", f"scores: 3 (said {N}, found {N + 1})."),
    ("UPDATE edge_score SET edge_id = 6 WHERE circuit_id = 3 AND edge_id = 5", "circuits",
     f"ids of its edges, their sum: 3 (said {N * (N - 1) // 2}, found {N * (N - 1) // 2 + 1})."),
    (f"UPDATE edge_score SET edge_id = {N} WHERE circuit_id = 3 AND edge_id = {N - 1}", "circuits",
     f"last edge: 3 (said {N - 1}, found {N})."),
    ("UPDATE edge_score SET score = NULL WHERE circuit_id IN (1, 2, 3, 4) AND edge_id = 5", "circuits",
     "scores that are NULL: 1 (said 0, found 1), 2 (said 0, found 1), 3 (said 0, found 1) and 1 more."),
    ("UPDATE circuit SET n_nonfinite = 3 WHERE circuit_id = 5", "circuits", "NULL: 5 (said 3, found 2)."),
    ("UPDATE edge_score SET score = 'nan' WHERE circuit_id = 5 AND edge_id IN (3, 8)", "circuits",
     "scores that are NULL: 5 (said 2, found 0); scores that are NaN or infinite: 5 (said 0, found 2)."),
    ("UPDATE fold_score SET score = '-inf' WHERE circuit_id = 1 AND edge_id = 3", "circuits",
     "scores that are NaN or infinite: 1 (said 0, found 2)."),
    ("DELETE FROM fold_score WHERE circuit_id = 1 AND fold = 1", "circuits", "folds: 1 (said 2, found 1); scores of"),
    ("DELETE FROM fold_score WHERE circuit_id = 1 AND fold = 1 AND edge_id = 0", "circuits",
     f"scores of folds: 1 (said {2 * N}, found {2 * N - 1})."),
    ("DELETE FROM example WHERE circuit_id = 1 AND position = 7", "circuits", "scored examples: 1 (said 8, found 7)."),
    ("UPDATE circuit SET n_skipped = 0 WHERE circuit_id = 5", "circuits", "skipped examples: 5 (said 0, found 1)."),
    ("UPDATE circuit SET graph_id = 2 WHERE circuit_id = 1", "circuits",
     "graph, that of its model: 1 (said 2, found 1)."),
    ("DELETE FROM example_score WHERE position = 2 AND edge_id = 0", "example scores",
     f"scores: 5 example 2 (said {N}, found {N - 1})."),
    ("UPDATE example_score SET position = 1 WHERE position = 2", "example scores",
     "is a scored example: 5 example 1 (said 1, found 0)."),
    ("UPDATE circuit SET spec = json_merge_patch(spec, '{\"salt\": \"x\"}') WHERE circuit_id = 4", "specs",
     "spec digest: 4 (said "),
    ("UPDATE circuit SET spec = (SELECT spec FROM circuit WHERE circuit_id = 4), spec_digest = "
     "(SELECT spec_digest FROM circuit WHERE circuit_id = 4) WHERE circuit_id = 3", "specs",
     "one spec digest for several circuits: 3 and 4."),
    ("UPDATE edge_score SET score = 0.123 WHERE circuit_id = 4 AND edge_id = 9", "score digests",
     "The scores are not those that were stored: circuit 4."),
    ("UPDATE circuit SET score_digest = 'x'", "score digests", "stored: circuit 1, 2, 3 and 3 more."),
    ("DELETE FROM node WHERE graph_id = 1 AND name = 'm0'", "graphs", "nodes: graph 1 (said 10, found 9)"),
    ("UPDATE edge SET name = 'x' WHERE graph_id = 2 AND edge_id < 2", "graphs", "different names of edges: graph 2"),
    ("UPDATE model SET n_heads = 7 WHERE model_id = 2", "graphs",
     "heads, those of its graph: model 2 (said 7, found 2)."),
    ("DELETE FROM schema_version WHERE version = 3", "schema", "migration 004_cache: 4 (said 4, found 3)"),
    ("DROP VIEW node_scores", "tables and views",
     "not there: node_scores.circuit_id, node_scores.head, node_scores.kind and 3 more."),
    ("DROP MACRO TABLE top_edges", "tables and views", "not there: top_edges."),
    ("ALTER TABLE fold_score ALTER score TYPE DOUBLE", "tables and views",
     "of another type: fold_score.score (said FLOAT, found DOUBLE)."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "check", "told"), FAULTS, ids=[f"{case[1]}-{i}" for i, case in enumerate(FAULTS)]
)
def test_every_fault_is_named(statement: str, check: str, told: str, full_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "circuits.duckdb"
    shutil.copy(full_store, path)
    with writing(path) as connection:
        connection.execute(statement)
    before = path.read_bytes()
    found = {finding.check: finding for finding in wrong(examine(path, every=True))}
    assert check in found
    assert told in found[check].found
    assert found[check].advice
    assert path.read_bytes() == before


def test_every_table_that_names_a_circuit_is_looked_at(full_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "circuits.duckdb"
    shutil.copy(full_store, path)
    with duckdb.connect(str(path)) as connection:
        tables = connection.execute(
            "SELECT c.table_name FROM duckdb_columns() AS c JOIN duckdb_tables() AS t USING (table_name) "
            "WHERE column_name = 'circuit_id' AND table_name <> 'circuit'"
        ).fetchall()
        connection.execute("UPDATE circuit SET circuit_id = 66 WHERE circuit_id = 5")
        filled = [
            str(name)
            for (name,) in tables
            if connection.execute(f"SELECT count(*) FROM {name} WHERE circuit_id = 5").fetchall() != [(0,)]
        ]
    assert set(filled) == {"edge_score", "fold_score", "example", "example_score"}
    told = next(finding.found for finding in wrong(examine(path)) if finding.check == "orphan rows")
    assert all(f" of {name} with a circuit_id that is not in circuit" in told for name in filled)


def test_digests_of_a_sample(full_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "circuits.duckdb"
    shutil.copy(full_store, path)
    digests = {
        n: next(finding.found for finding in examine(path, sample=n).findings if finding.check == "score digests")
        for n in (0, 2, 6, 99)
    }
    assert digests == {
        0: "0 of 6 computed anew, and equal.", 2: "2 of 6 computed anew, and equal.",
        6: "6 of 6 computed anew, and equal.", 99: "6 of 6 computed anew, and equal.",
    }  # fmt: skip
    with writing(path) as connection:
        connection.execute("UPDATE circuit SET score_digest = 'x'")
    assert examine(path, sample=0).healthy
    told = wrong(examine(path, sample=1))[0].found
    assert told.startswith("The scores are not those that were stored: circuit ")
    assert told.count(",") == 0


def test_older_newer_and_empty_files(tmp_path: Path, full_store: Path) -> None:
    path = tmp_path / "circuits.duckdb"
    shutil.copy(full_store, path)
    latest = migrations.latest()
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO schema_version (version, name) VALUES (99, 'future')")
    assert [f.found for f in wrong(examine(path))] == [f"The file has schema 99; this circuitdb knows {latest}."]
    with duckdb.connect(str(path)) as connection:
        connection.execute("DELETE FROM schema_version WHERE version > 2")
    before = path.read_bytes()
    older = examine(path)
    assert older.healthy
    assert older.findings[1].found == f"The file has the older schema 2; this circuitdb writes {latest}."
    assert path.read_bytes() == before
    duckdb.connect(str(tmp_path / "empty.duckdb")).close()
    empty = examine(tmp_path / "empty.duckdb")
    assert (empty.healthy, empty.findings[1].found) == (True, "It is empty.")


def test_files_that_can_not_be_read(tmp_path: Path, full_store: Path) -> None:
    (tmp_path / "text.duckdb").write_text("not a database\n" * 1000)
    (tmp_path / "cut.duckdb").write_bytes(full_store.read_bytes()[:300_000])
    with duckdb.connect(str(tmp_path / "other.duckdb")) as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
    for name, told in (
        ("text", "is no DuckDB file"), ("cut", "is damaged or cut short"), ("other", "is a DuckDB file but no"),
    ):  # fmt: skip
        found = wrong(examine(tmp_path / f"{name}.duckdb"))
        assert len(found) == 1
        assert told in found[0].found
    with pytest.raises(MissingDatabase, match="There is no database"):
        examine(tmp_path / "none.duckdb")


def test_a_flipped_byte_is_found_in_every_block_of_the_tables(tmp_path: Path, full_store: Path) -> None:
    path = tmp_path / "circuits.duckdb"
    shutil.copy(full_store, path)
    compact(path)
    with duckdb.connect(str(path), read_only=True) as connection:
        ((n_used, n_blocks),) = connection.execute(
            "SELECT used_blocks, total_blocks FROM pragma_database_size()"
        ).fetchall()
    whole = path.read_bytes()
    found = []
    for start in range(12_288, len(whole), 262_144):
        spoilt = bytearray(whole)
        spoilt[start + 40] ^= 0xFF
        path.write_bytes(spoilt)
        found += wrong(examine(path, every=True))
    assert len(whole) == 12_288 + n_blocks * 262_144
    # The indexes of the five tables with a primary key are read by a writer alone.
    assert n_used - 5 <= len(found) <= n_used
    assert n_used > 10
    assert all(f.check == "file" and "is damaged or cut short; take a copy of it from" in f.found for f in found)


def test_a_writer_that_holds_the_file_is_named(full_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "circuits.duckdb"
    shutil.copy(full_store, path)
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    with pytest.raises(LockedDatabase, match=rf"held by process {holder.pid}"):
        examine(path, timeout=0.1)
    holder.communicate("")
    assert examine(path).healthy


def test_what_killed_runs_left(full_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "a[1].duckdb"
    shutil.copy(full_store, path)
    code = (
        "import duckdb, os, sys; c = duckdb.connect(sys.argv[1]); c.execute(\"INSERT INTO note (text) VALUES ('x')\")"
    )
    gone = subprocess.Popen([sys.executable, "-c", f"{code}; os.kill(os.getpid(), 9)", str(path)])
    gone.wait()
    left = [Path(f"{path}.compacting"), Path(f"{path}.{gone.pid}.new"), Path(f"{path}.schema-2.{gone.pid}.new.wal")]
    for name in left:
        name.touch()
    Path(f"{path}.1.new").touch()  # process 1 runs
    diagnosis = examine(path)
    assert diagnosis.healthy
    notes = [finding for finding in diagnosis.findings if finding.status == "note"]
    assert notes[0].found == f"{path}.wal is the log of a writer that was killed; the next writer folds it in."
    assert notes[1].found == f"A run that was killed has left {', '.join(map(str, left))}."
    assert next(use.n_rows for use in diagnosis.tables if use.table == "note") == 1


def test_advice_to_compact(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "circuits.duckdb", GraphShape(30, 9))
    disk = examine(path).findings[-1]
    assert (disk.check, disk.status) == ("disk", "note")
    assert disk.advice is not None
    said = float(disk.advice.split("about ")[1].split(" MB")[0])
    done = compact(path)
    assert (done.before - done.after) / 1e6 == pytest.approx(said, rel=0.5)
    assert examine(path).findings[-1].status == "ok"
