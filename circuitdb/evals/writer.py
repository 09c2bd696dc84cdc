"""Writes evaluations and the user's word on their names into the database file, each in one short transaction."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from circuitdb import sqlfiles
from circuitdb.connection import append, registered, transaction, writing
from circuitdb.errors import UsageError
from circuitdb.evals import attached, tables
from circuitdb.evals.columns import Columns
from circuitdb.evals.rows import Imported, as_table, check_text

OURS = "circuitdb"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWNED = ("imported_evaluation", "evaluation_name", "attached_file", "evaluation_source")
KINDS = ("model", "subtask")
_PACKAGE = "circuitdb.sql"


@dataclass(frozen=True)
class Mapping:
    """That `external` of a file is `internal` of the database, or nothing of it (None); `kind` is model or subtask."""

    kind: str
    external: str
    internal: str | None


def check_name(name: str) -> str:
    """A name for evaluations that SQL can say without quotes. Raises UsageError for another one."""
    if not _NAME.fullmatch(name) or name.lower() == OURS:
        reason = "is that of our own accuracies" if name.lower() == OURS else "is not letters, digits and _"
        raise UsageError(f"The name {name!r} {reason}; choose one such as leaderboard.")
    return name


def add(
    path: str, name: str, imported: Imported, files: Sequence[Path], *, mapping: Sequence[Mapping] = (),
    replace: bool = False, timeout: float = 60.0,
) -> None:  # fmt: skip
    """Store evaluations under a name, with what their names stand for; `replace` those of that name.

    The table that they came in, if it was one, becomes evals.NAME. Raises UsageError for a name that is taken.
    """
    check_name(name)
    with writing(path, timeout=timeout) as connection, transaction(connection):
        _make_room(connection, name, replace=replace)
        _insert_source(connection, name, imported, [str(file.resolve()) for file in files])
        append(connection, "imported_evaluation", as_table(name, imported.rows))
        if imported.table is not None:
            _create(connection, name, imported.table)
        _map(connection, name, mapping)


def attach(
    path: str, name: str, imported: Imported, files: Sequence[Path], states: Sequence[attached.State], told: Columns,
    table: str | None, *, mapping: Sequence[Mapping] = (), replace: bool = False, timeout: float = 60.0,
) -> None:  # fmt: skip
    """Keep under a name where files of evaluations are and how they were read, not what they hold; else as `add`.

    The table that they are, if they are one, becomes the view evals.NAME. Raises UsageError for a name that is taken.
    """
    check_name(name)
    with writing(path, timeout=timeout) as connection, transaction(connection):
        _make_room(connection, name, replace=replace)
        _insert_source(connection, name, imported, [os.path.abspath(file) for file in files])
        attached.insert(connection, name, files, states, told, table)
        if imported.table is not None:
            _create_view(connection, name, imported.table)
        _map(connection, name, mapping)


def map_names(path: str, name: str, mapping: Sequence[Mapping], *, timeout: float = 60.0) -> None:
    """Say what names of some evaluations stand for. Raises UsageError for evaluations that there are none of."""
    with writing(path, timeout=timeout) as connection, transaction(connection):
        if name not in _sources(connection):
            raise _unknown(connection, name)
        _map(connection, name, mapping)


def remove(path: str, name: str, *, timeout: float = 60.0) -> None:
    """Take evaluations of a name away, with their mapping. Raises UsageError for those that there are none of."""
    with writing(path, timeout=timeout) as connection, transaction(connection):
        if name not in _sources(connection):
            raise _unknown(connection, name)
        _delete(connection, name, keep_names=False)


def _make_room(connection: duckdb.DuckDBPyConnection, name: str, *, replace: bool) -> None:
    sources = _sources(connection)
    # To DuckDB both would be one table evals.NAME, and to drop the one would be to drop the other.
    same = next((there for there in sources if there != name and there.lower() == name.lower()), None)
    if same is not None:
        raise UsageError(f"The name {name!r} is {same} but for case, and SQL knows no case; choose another one.")
    if name in sources:
        if not replace:
            raise UsageError(f"There are evaluations {name} already; choose another name, or replace them.")
        _delete(connection, name, keep_names=True)


def _insert_source(connection: duckdb.DuckDBPyConnection, name: str, imported: Imported, files: list[str]) -> None:
    connection.execute(
        "INSERT INTO evaluation_source (source, format, files, n_rows) VALUES (?, ?, ?, ?)",
        [name, imported.format, files, len(imported.rows)],
    )


def _sources(connection: duckdb.DuckDBPyConnection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT source FROM evaluation_source ORDER BY 1").fetchall()]


def _unknown(connection: duckdb.DuckDBPyConnection, name: str) -> UsageError:
    names = ", ".join(_sources(connection)) or "none; `circuitdb evals add` adds some"
    return UsageError(f"There are no evaluations {name}; the database has {names}.")


def _map(connection: duckdb.DuckDBPyConnection, name: str, mapping: Sequence[Mapping]) -> None:
    for entry in mapping:
        if entry.kind not in KINDS:
            raise UsageError(f"A mapping is of kind model or subtask, not {entry.kind!r}.")
        for text in (entry.external, entry.internal):
            check_text(text, "The name")
    given = pa.table(
        {
            "source": pa.array([name] * len(mapping), pa.string()),
            "kind": pa.array([entry.kind for entry in mapping], pa.string()),
            "external": pa.array([entry.external for entry in mapping], pa.string()),
            "internal": pa.array([entry.internal for entry in mapping], pa.string()),
        }
    )
    held = attached.read_within(connection, [name]) if mapping else attached.Attached()
    with registered(connection, {"arriving": given, **held.tables}):
        unknown = connection.execute(
            "SELECT a.kind, a.external FROM arriving AS a ANTI JOIN evaluation_names USING (source, kind, external)"
        ).fetchall()
        if unknown:
            kind, theirs = unknown[0]
            raise UsageError(f"The evaluations {name} have no {kind} {theirs!r}; `circuitdb evals map` lists theirs.")
        missing = connection.execute(
            "SELECT a.kind, a.internal FROM arriving AS a ANTI JOIN known_names AS k "
            "ON k.kind = a.kind AND k.name = a.internal WHERE a.internal IS NOT NULL"
        ).fetchall()
        if missing:
            kind, ours = missing[0]
            raise UsageError(f"The database has no {kind} {ours!r}; `circuitdb circuits` lists what it has.")
        connection.execute(
            "DELETE FROM evaluation_name AS old USING arriving AS a "
            "WHERE old.source = a.source AND old.kind = a.kind AND old.external = a.external"
        )
        connection.execute("INSERT INTO evaluation_name BY NAME SELECT * FROM arriving")


def _delete(connection: duckdb.DuckDBPyConnection, name: str, *, keep_names: bool) -> None:
    for table in _OWNED:
        if not (keep_names and table == "evaluation_name"):
            connection.execute(f"DELETE FROM {table} WHERE source = ?", [name])
    # Only what is called exactly so: an older circuitdb took names that differ in case alone; one of them has it.
    for (kind,) in connection.execute(sqlfiles.load(_PACKAGE, "evaluation_relation"), {"name": name}).fetchall():
        connection.execute(f"DROP {kind} evals.{tables.quoted(name)}")


def _create(connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    with registered(connection, {"arriving": table}):
        connection.execute(f"CREATE TABLE evals.{tables.quoted(name)} AS SELECT * FROM arriving")
    connection.execute(f"COMMENT ON TABLE evals.{tables.quoted(name)} IS 'Evaluations as their files have them.'")


def _create_view(connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    """A view of a table that is there only while the view is made, and later while circuitdb asks."""
    there = attached.table_name(name)
    with registered(connection, {there: table.slice(0, 0)}):
        connection.execute(f"CREATE VIEW evals.{tables.quoted(name)} AS SELECT * FROM {tables.quoted(there)}")
    comment = "Evaluations as their files have them, read from where these lie, by circuitdb alone."
    connection.execute(f"COMMENT ON VIEW evals.{tables.quoted(name)} IS '{comment}'")
