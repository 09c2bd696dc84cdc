"""Writes evaluations and the user's word on their names into the database file, each in one short transaction."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from circuitdb.connection import transaction, writing
from circuitdb.errors import UsageError
from circuitdb.evals import tables
from circuitdb.evals.rows import Imported

OURS = "circuitdb"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWNED = ("imported_evaluation", "evaluation_name", "evaluation_source")
KINDS = ("model", "subtask")


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
        if name in _sources(connection):
            if not replace:
                raise UsageError(f"There are evaluations {name} already; choose another name, or replace them.")
            _delete(connection, name, keep_names=True)
        connection.execute(
            "INSERT INTO evaluation_source (source, format, files, n_rows) VALUES (?, ?, ?, ?)",
            [name, imported.format, [str(file.resolve()) for file in files], len(imported.rows)],
        )
        _append(connection, "imported_evaluation", _table(name, imported))
        if imported.table is not None:
            _create(connection, name, imported.table)
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


def _sources(connection: duckdb.DuckDBPyConnection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT source FROM evaluation_source ORDER BY 1").fetchall()]


def _unknown(connection: duckdb.DuckDBPyConnection, name: str) -> UsageError:
    names = ", ".join(_sources(connection)) or "none; `circuitdb evals add` adds some"
    return UsageError(f"There are no evaluations {name}; the database has {names}.")


def _map(connection: duckdb.DuckDBPyConnection, name: str, mapping: Sequence[Mapping]) -> None:
    for entry in mapping:
        if entry.kind not in KINDS:
            raise UsageError(f"A mapping is of kind model or subtask, not {entry.kind!r}.")
    given = pa.table(
        {
            "source": pa.array([name] * len(mapping), pa.string()),
            "kind": pa.array([entry.kind for entry in mapping], pa.string()),
            "external": pa.array([entry.external for entry in mapping], pa.string()),
            "internal": pa.array([entry.internal for entry in mapping], pa.string()),
        }
    )
    connection.register("arriving", given)
    try:
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
    finally:
        connection.unregister("arriving")


def _delete(connection: duckdb.DuckDBPyConnection, name: str, *, keep_names: bool) -> None:
    for table in _OWNED:
        if not (keep_names and table == "evaluation_name"):
            connection.execute(f"DELETE FROM {table} WHERE source = ?", [name])
    connection.execute(f"DROP TABLE IF EXISTS evals.{tables.quoted(name)}")


def _create(connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    connection.register("arriving", table)
    try:
        connection.execute(f"CREATE TABLE evals.{tables.quoted(name)} AS SELECT * FROM arriving")
    finally:
        connection.unregister("arriving")
    connection.execute(f"COMMENT ON TABLE evals.{tables.quoted(name)} IS 'Evaluations as their files have them.'")


def _append(connection: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    connection.register("arriving", rows)
    try:
        connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM arriving")
    finally:
        connection.unregister("arriving")


def _table(name: str, imported: Imported) -> pa.Table:
    rows = imported.rows
    return pa.table(
        {
            "source": pa.array([name] * len(rows), pa.string()),
            "model": pa.array([row.model for row in rows], pa.string()),
            "subtask": pa.array([row.subtask for row in rows], pa.string()),
            "metric": pa.array([row.metric for row in rows], pa.string()),
            "filter": pa.array([row.filter for row in rows], pa.string()),
            "value": pa.array([row.value for row in rows], pa.float64()),
            "stderr": pa.array([row.stderr for row in rows], pa.float64()),
            "n": pa.array([row.n for row in rows], pa.int32()),
            "is_group": pa.array([row.is_group for row in rows], pa.bool_()),
            "file": pa.array([row.file for row in rows], pa.string()),
        }
    )
