"""Opening the file: what is said when that can't be, and how the lock is waited for."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from circuitdb import migrations, sqlfiles
from circuitdb.connection import append, reading, registered, writing
from circuitdb.errors import LockedDatabase, MissingDatabase, SchemaMismatch, SchemaUpgraded, StoreError, UsageError
from circuitdb.store import Store
from stores import addition_store, circuit

HOLDER = """
import duckdb, sys, time
connection = duckdb.connect(sys.argv[1])
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""


def hold(path: Path, seconds: float) -> subprocess.Popen[str]:
    """Another process that keeps the file open for writing."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(MissingDatabase, match=r"There is no database .*none\.duckdb; make one with `circuitdb ingest`"):
        reading(tmp_path / "none.duckdb").__enter__()


def test_file_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "text.duckdb"
    path.write_text("not a database, but long enough to be looked at as one\n" * 100)
    with pytest.raises(SchemaMismatch, match="is no DuckDB file"):
        reading(path).__enter__()
    with pytest.raises(SchemaMismatch, match="is no DuckDB file"):
        writing(path).__enter__()


def test_somebody_elses_duckdb_file(tmp_path: Path) -> None:
    path = tmp_path / "other.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (i INTEGER)")
    for opener in (reading, writing):
        with pytest.raises(SchemaMismatch, match="no circuitdb database"):
            opener(path).__enter__()
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("t",)]


def test_a_newer_schema_is_told_and_left_alone(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "circuits.duckdb", digits=1)
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO schema_version (version, name) VALUES (99, 'future')")
    for opener in (reading, writing):
        with pytest.raises(SchemaMismatch, match=r"has schema 99, written by a newer circuitdb; .* upgrade circuitdb"):
            opener(path).__enter__()


def test_empty_database_is_migrated_by_a_writer_alone(tmp_path: Path) -> None:
    path = tmp_path / "circuits.duckdb"
    duckdb.connect(str(path)).close()
    with pytest.raises(SchemaMismatch, match="is an empty database; fill it with"):
        reading(path).__enter__()
    Store(path).create()
    with reading(path) as connection:
        assert migrations.version_of(connection, str(path)) == migrations.latest() == 13


def test_circuits_of_an_older_file_were_asked_in_the_plain_way(tmp_path: Path) -> None:
    """What schema 8 could not tell was always so: no template, and shots that are fixed where there are any."""
    path = tmp_path / "circuits.duckdb"
    names = sqlfiles.names("circuitdb.schema")[:8]
    with duckdb.connect(str(path)) as connection:
        for number, name in enumerate(names, start=1):
            connection.execute(sqlfiles.load("circuitdb.schema", name))
            connection.execute("INSERT INTO schema_version (version, name) VALUES (?, ?)", [number, name])
        for i, (style, shots) in enumerate([("few-shot", 3), ("zero-shot", 0), (None, None)], start=1):
            connection.execute(
                "INSERT INTO circuit (circuit_id, model_id, subtask_id, graph_id, origin, method, metric, positions, "
                "ablation, sign_convention, prompt_style, shots, n_folds, n_edges, n_nonfinite, score_digest, "
                "spec_digest, spec) VALUES (?, 1, 1, 1, 'x', 'x', 'x', 'x', 'x', 'x', ?, ?, 1, 1, 0, 'x', 'x', '{}')",
                [i, style, shots],
            )
    with pytest.warns(SchemaUpgraded, match="was brought from schema 8 to 13"):
        Store(path).create()
    with reading(path) as connection:
        assert connection.execute(
            "SELECT chat, shots_drawn, reasoning_tokens FROM circuit ORDER BY circuit_id"
        ).fetchall() == [(False, "fixed", None), (False, None, None), (None, None, None)]


def test_locked_by_another_process_names_it(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "circuits.duckdb", digits=1)
    holder = hold(path, 30)
    try:
        for opener in (reading, writing):
            start = time.monotonic()
            with pytest.raises(LockedDatabase, match=rf"held by process {holder.pid} .*was not free within 0.3 s"):
                opener(path, timeout=0.3).__enter__()
            assert 0.3 <= time.monotonic() - start < 5
    finally:
        holder.kill()
        holder.communicate()


def test_waits_until_the_lock_is_free(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "circuits.duckdb", digits=1)
    holder = hold(path, 0.5)
    with reading(path, timeout=20) as connection:
        assert connection.execute("SELECT count(*) FROM circuit").fetchall() == [(1,)]
    holder.communicate()


def test_reader_and_writer_of_one_process_take_turns(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "circuits.duckdb", digits=1)
    written: list[int] = []
    with reading(path) as connection:
        n_edges = int(connection.execute("SELECT n_edges FROM circuit").fetchall()[0][0])
        thread = threading.Thread(
            target=lambda: written.append(Store(path).write(circuit(salt="new"), [0.0] * n_edges))
        )
        thread.start()
        time.sleep(0.2)
        assert connection.execute("SELECT count(*) FROM circuit").fetchall() == [(1,)]
    thread.join(10)
    assert written == [2]


def test_readers_of_one_process_do_not_wait_for_each_other_and_a_writer_waits_no_longer_than_told(
    tmp_path: Path,
) -> None:
    path = addition_store(tmp_path / "circuits.duckdb", digits=1)
    with reading(path), reading(path, timeout=0.0) as second:
        assert second.execute("SELECT count(*) FROM circuit").fetchall() == [(1,)]
        start = time.monotonic()
        with pytest.raises(LockedDatabase, match="in use by another thread of this process"):
            writing(path, timeout=0.2).__enter__()
        assert 0.2 <= time.monotonic() - start < 5
    with writing(path, timeout=0.0):
        pass


@pytest.mark.parametrize("opener", [reading, writing])
def test_a_file_replaced_while_it_is_being_opened_is_opened_again(
    opener: Callable[[Path], Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = addition_store(tmp_path / "circuits.duckdb", digits=1)
    other = addition_store(tmp_path / "other.duckdb", digits=2)
    connect = duckdb.connect

    def slow(*given: Any, **named: Any) -> duckdb.DuckDBPyConnection:
        connection = connect(*given, **named)
        if other.exists():  # as `compact` does, after the file was found and before it was locked
            other.replace(path)
        return connection

    monkeypatch.setattr(duckdb, "connect", slow)
    with opener(path) as connection:
        assert connection.execute("SELECT count(*) FROM circuit").fetchall() == [(4,)]


def test_reader_can_touch_nothing_else(tmp_path: Path, shared_store: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    with reading(shared_store) as connection:
        for statement in (
            f"SELECT * FROM read_csv('{secret}')",
            f"COPY circuit TO '{tmp_path / 'out.csv'}'",
            "SET enable_external_access = true",
            "DELETE FROM circuit",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(statement)
    assert not (tmp_path / "out.csv").exists()


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    for opener in (reading, writing):
        with pytest.raises(StoreError, match="is a folder; name a file"):
            opener(tmp_path).__enter__()


@pytest.mark.parametrize("name", [":memory:", "sqlite:c.db", "file:x", "it's.duckdb", "spaß und \u4e2d.duckdb"])
def test_every_name_is_a_file_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    addition_store(Path(name), digits=1)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with reading(name) as connection:
        assert connection.execute("SELECT count(*) FROM circuit").fetchall() == [(1,)]


@pytest.mark.parametrize("path", [None, 3, "", b"circuits.duckdb"])
def test_what_is_no_path(path: Any) -> None:
    with pytest.raises(UsageError, match="is no path of a database file"):
        reading(path).__enter__()
    with pytest.raises(UsageError, match="is no path of a database file"):
        Store(path)


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "empty.duckdb"
    path.touch()
    Store(path).create()
    with reading(path) as connection:
        assert connection.execute("SELECT count(*) FROM circuit").fetchall() == [(0,)]


def test_a_file_cut_short(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "circuits.duckdb", digits=2)
    path.write_bytes(path.read_bytes()[:8192])
    for opener in (reading, writing):
        with pytest.raises(StoreError, match="is damaged or cut short"):
            opener(path).__enter__()


@pytest.mark.parametrize(
    "statement",
    ["CREATE VIEW v AS SELECT 1", "CREATE TABLE schema_version (a INTEGER); CREATE TABLE edge_score (b INTEGER)"],
)
def test_files_that_look_empty_or_like_ours_are_left_alone(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "other.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(statement)
    before = path.read_bytes()
    for opener in (reading, writing):
        with pytest.raises(SchemaMismatch, match="no circuitdb database"):
            opener(path).__enter__()
    assert path.read_bytes() == before


def test_registered_tables_are_gone_once_one_leaves() -> None:
    """Also after an error, of which a later question of the same connection must not see anything."""
    table = pa.table({"i": [1, 2]})
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE two AS SELECT 7 AS i")
        with registered(connection, {"one": table, "two": table.slice(1)}):
            assert connection.execute("SELECT one.i, two.i FROM one, two ORDER BY ALL").fetchall() == [(1, 2), (2, 2)]
        assert connection.execute("SELECT i FROM two").fetchall() == [(7,)]
        with pytest.raises(ZeroDivisionError), registered(connection, {"one": table}):
            raise ZeroDivisionError
        with (
            pytest.raises(duckdb.InvalidInputException),
            registered(connection, {"one": table, "wrong": 3}),
        ):
            pass
        with pytest.raises(duckdb.CatalogException, match="one does not exist"):
            connection.execute("FROM one")


def test_rows_are_appended_by_the_names_of_their_columns() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (a INTEGER, b VARCHAR DEFAULT 'none')")
        append(connection, "t", pa.table({"b": ["x"], "a": [1]}))
        append(connection, "t", pa.table({"a": [2]}))
        append(connection, "t", pa.table({"a": pa.nulls(0)}))
        assert connection.execute("FROM t ORDER BY a").fetchall() == [(1, "x"), (2, "none")]
