"""Copies of a database that is in use: whole, of one moment, and never over another file unasked."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from circuitdb import copies
from circuitdb.backup import back_up
from circuitdb.connection import reading, writing
from circuitdb.doctor import examine
from circuitdb.errors import LockedDatabase, MissingDatabase, SchemaMismatch, StoreError, UsageError
from stores import addition_store

HOLDER = """
import duckdb, sys, time
connection = duckdb.connect(sys.argv[1])
print("held", flush=True)
time.sleep(30)
"""
# As an ingest does: a circuit in a transaction of its own, and the file let go.
WRITER = """
import sys, time
sys.path.insert(0, sys.argv[2])
from circuitdb.store import Store
from stores import SHAPE, circuit
for i in range(1000):
    Store(sys.argv[1]).write(circuit(salt=str(i)), [float(i)] * SHAPE.n_edges, [[0.0] * SHAPE.n_edges] * 2)
    print(i, flush=True)
    time.sleep(0.01)
"""
SUPPORT = str(Path(__file__).parent / "support")


def test_a_backup_has_the_same_bytes(shared_store: Path, tmp_path: Path) -> None:
    made = back_up(shared_store, tmp_path / "copy.duckdb")
    assert (tmp_path / "copy.duckdb").read_bytes() == shared_store.read_bytes()
    assert (made.path, made.n_circuits) == (str(tmp_path / "copy.duckdb"), 9)
    assert made.n_bytes == shared_store.stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == ["copy.duckdb"]


def test_a_backup_is_of_one_moment_while_an_ingest_writes(tmp_path: Path) -> None:
    path = tmp_path / "circuits.duckdb"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path), SUPPORT], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    try:
        writer.stdout.readline()
        made = [back_up(path, tmp_path / f"copy{i}.duckdb") for i in range(4)]
        assert writer.poll() is None, "the ingest went on"
    finally:
        writer.kill()
        writer.communicate()
    counts = [backup.n_circuits for backup in made]
    assert counts == sorted(counts)
    assert counts[0] >= 1
    for backup in made:
        diagnosis = examine(backup.path, every=True)
        assert diagnosis.healthy, diagnosis.findings
        with reading(backup.path) as connection:
            assert connection.execute("SELECT count(*) FROM circuit").fetchall() == [(backup.n_circuits,)]


def test_what_a_killed_writer_left_in_its_log_is_in_the_backup(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "circuits.duckdb", digits=1)
    code = (
        "import duckdb, os, sys; c = duckdb.connect(sys.argv[1])\n"
        "c.execute(\"INSERT INTO note (text) VALUES ('in the log')\"); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert (tmp_path / "circuits.duckdb.wal").exists()
    log = (tmp_path / "circuits.duckdb.wal").read_bytes()
    back_up(path, tmp_path / "copy.duckdb")
    assert (tmp_path / "circuits.duckdb.wal").read_bytes() == log
    with duckdb.connect(str(tmp_path / "copy.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT text FROM note").fetchall() == [("in the log",)]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "circuits.duckdb", "circuits.duckdb.wal", "copy.duckdb",
    ]  # fmt: skip


def test_a_file_that_is_there_is_replaced_only_when_asked(shared_store: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.duckdb"
    target.write_text("mine")
    with pytest.raises(StoreError, match=r"copy\.duckdb exists already; name another file, or replace it with --force"):
        back_up(shared_store, target)
    assert target.read_text() == "mine"
    back_up(shared_store, target, replace=True)
    assert target.read_bytes() == shared_store.read_bytes()


def test_a_folder_gets_a_file_named_by_the_time(shared_store: Path, tmp_path: Path) -> None:
    made = back_up(shared_store, tmp_path)
    (only,) = tmp_path.iterdir()
    assert made.path == str(only)
    parsed = time.strptime(only.name, "circuits-%Y-%m-%d-%H%M%S.duckdb")
    assert abs(time.mktime(parsed) - time.time()) < 120


def test_targets_that_can_not_be(shared_store: Path, tmp_path: Path) -> None:
    copy = shutil.copy(shared_store, tmp_path / "c.duckdb")
    for target, message in ((copy, "is the database itself"), (tmp_path / "no" / "c", "does not exist; make it")):
        with pytest.raises(UsageError, match=message):
            back_up(copy, target)
    with pytest.raises(MissingDatabase, match="There is no database"):
        back_up(tmp_path / "none.duckdb", tmp_path / "copy.duckdb")
    (tmp_path / "text.duckdb").write_text("no database\n" * 1000)
    with pytest.raises(SchemaMismatch, match="is no DuckDB file"):
        back_up(tmp_path / "text.duckdb", tmp_path / "copy.duckdb")
    assert not (tmp_path / "copy.duckdb").exists()


def test_an_empty_database_can_be_copied(tmp_path: Path) -> None:
    duckdb.connect(str(tmp_path / "c.duckdb")).close()
    assert back_up(tmp_path / "c.duckdb", tmp_path / "copy.duckdb").n_circuits == 0


def test_too_little_room_is_told_before_anything_is_written(
    shared_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=40 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    copies.require_room(str(tmp_path / "copy"), 8 << 20)
    with pytest.raises(StoreError, match="would take 8 MB, and its disk has 42 MB free, of which 34 MB are to stay"):
        copies.require_room(str(tmp_path / "copy"), (8 << 20) + 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=0))
    with pytest.raises(StoreError, match="make room"):
        back_up(shared_store, tmp_path / "copy.duckdb")
    assert list(tmp_path.iterdir()) == []


def test_a_writer_is_waited_for_no_longer_than_told(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "circuits.duckdb", digits=1)
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    holder.stdout.readline()
    try:
        with pytest.raises(LockedDatabase, match=rf"held by process {holder.pid} .*not free within 0.2 s"):
            back_up(path, tmp_path / "copy.duckdb", timeout=0.2)
    finally:
        holder.kill()
        holder.communicate()
    with writing(path), pytest.raises(LockedDatabase, match="in use by another thread of this process"):
        back_up(path, tmp_path / "copy.duckdb", timeout=0.0)
    assert not (tmp_path / "copy.duckdb").exists()
