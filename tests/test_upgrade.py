"""Files of every older schema: copied, then brought to this version's, with all that is in them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import pytest

import terminals
from circuitdb import migrations, sqlfiles
from circuitdb.connection import reading, writing
from circuitdb.doctor import examine
from circuitdb.errors import SchemaMismatch, SchemaUpgraded
from circuitdb.store import Store
from stores import SHAPE, addition_store, circuit

Opener: TypeAlias = "Callable[[Path], Any]"
OLDER = range(1, migrations.latest())


def older_store(path: Path, version: int, like: Path) -> Path:
    """A file as the circuitdb of that schema version made it: its migrations alone, and the rows of another file."""
    with duckdb.connect(str(path)) as connection:
        for number, name in enumerate(sqlfiles.names("circuitdb.schema")[:version], start=1):
            connection.execute(sqlfiles.load("circuitdb.schema", name))
            connection.execute("INSERT INTO schema_version (version, name) VALUES (?, ?)", [number, name])
        connection.execute(f"ATTACH '{like}' AS other (READ_ONLY)")
        tables = [str(row[0]) for row in connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() "
            "AND table_name NOT IN ('schema_version', 'cache')"
        ).fetchall()]  # fmt: skip
        for table in tables:
            names, theirs = (
                [row[0] for row in connection.execute(f"DESCRIBE {database}{table}").fetchall()]
                for database in ("", "other.")
            )
            shared = ", ".join(name for name in names if name in theirs)
            connection.execute(f"INSERT INTO {table} ({shared}) SELECT {shared} FROM other.{table}")
    return path


def contents(path: Path) -> list[object]:
    """What every version has of the circuits, read without any code of ours."""
    with duckdb.connect(str(path), read_only=True) as connection:
        return [
            connection.execute(question).fetchall()
            for question in (
                "SELECT circuit_id, edge_id, score FROM edge_score ORDER BY ALL",
                "SELECT circuit_id, fold, edge_id, score FROM fold_score ORDER BY ALL",
                "SELECT circuit_id, position, clean, answer, used FROM example ORDER BY ALL",
                "SELECT circuit_id, spec_digest, score_digest, n_edges, method, seed FROM circuit ORDER BY ALL",
                "SELECT circuit_id, value FROM evaluation ORDER BY ALL",
                "SELECT name, parameters FROM subtask ORDER BY ALL",
            )
        ]


@pytest.mark.parametrize("version", OLDER)
@pytest.mark.parametrize("opener", [reading, writing])
def test_a_file_of_an_older_schema_is_copied_then_upgraded(
    version: int, opener: Opener, tmp_path: Path, shared_store: Path
) -> None:
    path = older_store(tmp_path / "circuits.duckdb", version, shared_store)
    before = contents(path)
    told = rf"was brought from schema {version} to {migrations.latest()}; .* kept in .*\.schema-{version}\."
    with pytest.warns(SchemaUpgraded, match=told):
        opener(path).__enter__()
    with reading(path) as connection:
        assert connection.execute("SELECT count(*), count(accuracy) FROM circuits").fetchall() == [(9, 9)]
        assert migrations.version_of(connection, str(path)) == migrations.latest()
    assert contents(path) == before == contents(shared_store)
    kept = tmp_path / f"circuits.duckdb.schema-{version}"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [path.name, kept.name]
    assert contents(kept) == before
    with duckdb.connect(str(kept), read_only=True) as connection:
        assert connection.execute("SELECT max(version) FROM schema_version").fetchall() == [(version,)]
    diagnosis = examine(path, every=True)
    assert [finding for finding in diagnosis.findings if finding.status == "wrong"] == []
    assert Store(path).write(circuit(salt="new"), [0.0] * SHAPE.n_edges) == 10  # and without a second warning


def test_the_first_copy_is_kept(tmp_path: Path, shared_store: Path) -> None:
    path = older_store(tmp_path / "circuits.duckdb", 2, shared_store)
    (tmp_path / "circuits.duckdb.schema-2").write_text("what the user kept")
    with pytest.warns(SchemaUpgraded):
        reading(path).__enter__()
    assert (tmp_path / "circuits.duckdb.schema-2").read_text() == "what the user kept"


def test_a_failed_upgrade_leaves_the_file_as_it_was(
    tmp_path: Path, shared_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = older_store(tmp_path / "circuits.duckdb", 3, shared_store)
    before = contents(path)
    names = (*sqlfiles.names("circuitdb.schema"), "999_wrong")
    load = sqlfiles.load
    monkeypatch.setattr(sqlfiles, "names", lambda package: names)
    monkeypatch.setattr(sqlfiles, "load", lambda package, name: "SELEC" if name == "999_wrong" else load(package, name))
    with pytest.raises(duckdb.ParserException):
        writing(path).__enter__()
    assert contents(path) == before
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.execute("SELECT max(version) FROM schema_version").fetchall() == [(3,)]


def test_one_that_can_not_be_written_to_is_told(
    tmp_path: Path, shared_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = older_store(tmp_path / "circuits.duckdb", 1, shared_store)
    monkeypatch.setattr(os, "access", lambda *_: False)  # the tests may run as root, who may write anything
    with pytest.raises(SchemaMismatch, match=r"has the older schema 1 and can't be written to; open a copy of it"):
        reading(path).__enter__()
    assert [entry.name for entry in tmp_path.iterdir()] == ["circuits.duckdb"]


def test_the_command_line_tells_it_as_a_note(tmp_path: Path, shared_store: Path) -> None:
    older_store(tmp_path / "circuits.duckdb", 4, shared_store)
    first, second = (terminals.run(["sql", "SELECT count(*) AS n FROM circuits", "--csv"], tmp_path) for _ in "ab")
    assert (first.returncode, first.stdout) == (0, "n\n9\n")
    assert first.stderr.startswith(f"Note: circuits.duckdb was brought from schema 4 to {migrations.latest()}; as it")
    assert (second.returncode, second.stdout, second.stderr) == (0, "n\n9\n", "")


def test_two_that_upgrade_at_once(tmp_path: Path, shared_store: Path) -> None:
    path = older_store(tmp_path / "circuits.duckdb", 5, shared_store)
    code = (
        "import sys, warnings; warnings.simplefilter('ignore'); from circuitdb.connection import reading\n"
        "with reading(sys.argv[1], timeout=60) as c: print(c.execute('SELECT count(*) FROM circuits').fetchone()[0])"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    assert [process.communicate(timeout=120)[0] for process in both] == ["9\n", "9\n"]
    assert examine(path, every=True).healthy
    assert addition_store(tmp_path / "other.duckdb", digits=1).exists()
