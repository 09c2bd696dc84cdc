"""Evaluations that stay in their files: read when they are asked for, and put where every query looks for them.

A connection for questions has no access to files, and cannot change the database. So a file is not DuckDB's to read:

1. The database keeps where a file is and how it was read; a view evals.NAME selects from a table attached_NAME that it
   does not have.
2. Before a question about evaluations we read the files ourselves, and register on its connection attached_NAME and
   imported_evaluation, the latter with the rows of the database too. What is registered goes before a table of the same
   name, so the views that match names find all rows.
3. A file that has other bytes than when it was attached is read as it is now, and a note says so.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa

from circuitdb import sqlfiles
from circuitdb.connection import append
from circuitdb.errors import StoreError, UsageError
from circuitdb.evals import files
from circuitdb.evals.columns import Columns
from circuitdb.evals.rows import as_table

ROWS = "imported_evaluation"
_PACKAGE = "circuitdb.sql"
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class State:
    """What a file was like: its size, when it was changed last (ns since 1970), the SHA-256 of its bytes."""

    n_bytes: int
    modified_ns: int
    digest: str


@dataclass(frozen=True)
class Attached:
    """What was read from attached files: tables by the name that queries know them under, and what has changed."""

    tables: dict[str, pa.Table] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def register(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Put the tables where the statements of this connection find them."""
        for name, table in self.tables.items():
            connection.register(name, table)


def table_name(source: str) -> str:
    """The name under which the view evals.`source` looks for the table of its files."""
    return f"attached_{source}"


def state_of(path: Path) -> State:
    """The state of a file as it is now. Raises OSError."""
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        return State(found.st_size, found.st_mtime_ns, hashlib.file_digest(file, "sha256").hexdigest())


def read(connection: duckdb.DuckDBPyConnection, sources: Collection[str] | None = None) -> Attached:
    """What the attached files of evaluations hold now; of all of them, or of those of some names.

    Raises StoreError, naming the file and what to do, for one that is gone or that can't be read any more.
    """
    with closing(connection.cursor()) as cursor:
        return read_within(cursor, sources)


def read_within(connection: duckdb.DuckDBPyConnection, sources: Collection[str] | None = None) -> Attached:
    """The same as the connection's own transaction sees it: with what it has not committed yet."""
    wanted = None if sources is None else [source.lower() for source in sources]
    by_source: dict[str, list[dict[str, object]]] = {}
    listed = connection.sql(sqlfiles.load(_PACKAGE, "attached_files"), params={"sources": wanted}).to_arrow_table()
    for row in listed.to_pylist():
        by_source.setdefault(row["source"], []).append(row)
    if not by_source:
        return Attached()
    rows = [connection.sql(sqlfiles.load(_PACKAGE, "copied_evaluations")).to_arrow_table()]
    tables: dict[str, pa.Table] = {}
    notes: list[str] = []
    for source, entries in by_source.items():
        notes += [note for entry in entries if (note := _change(source, entry))]
        first = entries[0]
        told = Columns(
            *(_text(first[name]) for name in ("model_column", "subtask_column", "model_name", "subtask_name"))
        )
        try:
            found = files.read([Path(str(entry["file"])) for entry in entries], told, _text(first["table_name"]))
        except (UsageError, OSError) as error:
            raise StoreError(f"The evaluations {source} can't be read from where they are attached: {error}") from error
        rows.append(as_table(source, found.rows).cast(rows[0].schema))
        if found.table is not None:
            tables[table_name(source)] = found.table
    return Attached({ROWS: pa.concat_tables(rows), **tables}, tuple(notes))


def read_for(connection: duckdb.DuckDBPyConnection, words: Collection[str]) -> Attached:
    """What a statement that has these words in it will ask of attached files. Raises StoreError as `read` does."""
    with closing(connection.cursor()) as cursor:
        listed = cursor.sql(sqlfiles.load(_PACKAGE, "attached_files"), params={"sources": None}).to_arrow_table()
        if not len(listed):
            return Attached()
        definitions = [
            ({name} if schema == "main" else {schema, name}, set(_WORD.findall(definition.lower())))
            for schema, name, definition in cursor.sql(sqlfiles.load(_PACKAGE, "definitions")).fetchall()
        ]
    named = {word.lower() for word in words}
    while more := {word for called, inside in definitions if called <= named for word in inside} - named:
        named |= more  # what a view is made of, also one of the user's own
    if ROWS in named:
        return read(connection)
    there = {source for source in listed["source"].to_pylist() if table_name(source).lower() in named}
    return read(connection, there)


def insert(connection: duckdb.DuckDBPyConnection, source: str, paths: Sequence[Path], states: Sequence[State],
           told: Columns, table: str | None) -> None:  # fmt: skip
    """Keep where files are, how they were read, and what they were like."""
    n = len(paths)
    arriving = {
        "source": [source] * n,
        "file": [os.path.abspath(path) for path in paths],
        "n_bytes": [state.n_bytes for state in states],
        "modified_ns": [state.modified_ns for state in states],
        "digest": [state.digest for state in states],
        "model_column": pa.array([told.model_column] * n, pa.string()),
        "subtask_column": pa.array([told.subtask_column] * n, pa.string()),
        "model_name": pa.array([told.model] * n, pa.string()),
        "subtask_name": pa.array([told.subtask] * n, pa.string()),
        "table_name": pa.array([table] * n, pa.string()),
    }
    append(connection, "attached_file", pa.table(arriving))


def _change(source: str, entry: dict[str, object]) -> str | None:
    """A note if the file is not what it was. Raises StoreError if it is gone."""
    path = Path(str(entry["file"]))
    try:
        if (found := path.stat()) and (found.st_size, found.st_mtime_ns) == (entry["n_bytes"], entry["modified_ns"]):
            return None
        if state_of(path).digest == entry["digest"]:
            return None
    except OSError as error:
        gone = isinstance(error, FileNotFoundError | NotADirectoryError)
        what = "is not there any more" if gone else f"can't be opened ({error.strerror})"
        raise StoreError(
            f"The evaluations {source} are attached from {path}, which {what}; put it back, attach it from where it is "
            f"now (`circuitdb evals add FILE --name {source} --attach --replace`), or take them away "
            f"(`circuitdb evals remove {source}`)."
        ) from error
    return (
        f"{path} has changed since it was attached as {source} on {entry['attached_at']}, and counts as it is now; "
        f"`circuitdb evals map {source}` shows what its names match."
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)
