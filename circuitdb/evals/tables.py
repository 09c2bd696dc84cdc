"""Tables as others write them, as columns of values: CSV, Parquet, JSON, Arrow, and those in DuckDB and SQLite."""

from __future__ import annotations

import csv
import io
import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa

from circuitdb import sqlfiles
from circuitdb.errors import UsageError
from circuitdb.evals import json_text
from circuitdb.evals.rows import Table

_DELIMITERS = ",;\t"
_ARROW = (".arrow", ".feather", ".ipc")
_SQLITE = b"SQLite format 3\0"
_DUCKDB = b"DUCK"
_PARQUET = b"PAR1"
_ARROW_FILE = b"ARROW1\0\0"
_GZIP = b"\x1f\x8b"
_JSON = (".json", ".jsonl", ".ndjson")
_CSV = (".csv", ".tsv", ".txt")


def kind_of(path: Path) -> str:
    """csv, parquet, json, arrow, duckdb or sqlite, by the first bytes and then by the name. Raises UsageError."""
    with path.open("rb") as file:
        head = file.read(16)
        file.seek(-min(4, file.seek(0, io.SEEK_END)), io.SEEK_END)
        tail = file.read()
    suffix = path.suffix.lower()
    if head.startswith(_GZIP):
        raise UsageError(f"{path} is compressed with gzip; unpack it first (`gunzip`).")
    if head.startswith(_SQLITE):
        return "sqlite"
    # Text may begin as these do: only zeros, which text has none of, or the same word at the end say that it is none.
    is_text = suffix in (*_JSON, *_CSV)
    if head[8:12] == _DUCKDB and (not is_text or b"\0" in head):
        return "duckdb"
    if head.startswith(_PARQUET) and (not is_text or tail == _PARQUET):
        return "parquet"
    if head.startswith(_ARROW_FILE) or suffix in _ARROW:
        return "arrow"
    if suffix in _JSON:
        return "json"
    if suffix in _CSV:
        return "csv"
    raise UsageError(
        f"{path}: what kind of file it is can't be told from its name; known are .csv, .tsv, .json, .jsonl, .parquet, "
        ".arrow, .eval, and files of DuckDB and SQLite."
    )


def read(path: Path, table: str | None = None) -> Table:
    """All of a table; `table` names one of a database file that has several. Raises UsageError."""
    kind = kind_of(path)
    if table is not None and kind not in ("duckdb", "sqlite"):
        raise UsageError(f"{path} is one table; --table is for files of DuckDB and SQLite.")
    if kind == "csv":
        return _csv(path)
    if kind == "json":
        return from_records(path, json_records(path))
    if kind == "sqlite":
        return _sqlite(path, table)
    return _duckdb(path, table) if kind == "duckdb" else _arrow(path, kind)


def json_records(path: Path) -> list[object]:
    """The rows of a JSON table: a list of objects, an object a line, or what `--json` of circuitdb prints."""
    values = json_text.values(path)
    if len(values) == 1 and isinstance(values[0], dict) and isinstance(values[0].get("rows"), list):
        return list(values[0]["rows"])
    if len(values) == 1 and isinstance(values[0], list):
        return list(values[0])
    return values


def from_records(path: Path, records: list[object]) -> Table:
    """Columns from objects; a key that an object lacks is None. Raises UsageError for what is no object."""
    table: Table = {}
    for i, record in enumerate(records):
        if not isinstance(record, dict):
            raise UsageError(f"{path}: row {i + 1} is no object with named values, but {type(record).__name__}.")
        for key in record:
            table.setdefault(str(key), [None] * len(records))[i] = record[key]
    return table


def _csv(path: Path) -> Table:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not in UTF-8; save it so.") from error
    # A line ends at \n, \r or both, as csv has it: U+2028 and others that splitlines() takes for ends are in a cell.
    delimiter = max(_DELIMITERS, key=io.StringIO(text, newline="").readline().count)
    try:
        lines = [line for line in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True) if line]
    except csv.Error as error:
        raise UsageError(f"{path} is no valid CSV: {error}.") from error
    if not lines:
        raise UsageError(f"{path} is empty.")
    header = [name.strip() for name in lines[0]]
    if len(set(header)) < len(header):
        raise UsageError(f"{path}: several columns are called {_repeated(header)!r}; give each a name of its own.")
    for i, line in enumerate(lines[1:], start=2):
        if len(line) != len(header):
            raise UsageError(f"{path}: row {i} has {len(line)} cells, the header {len(header)}.")
    return {name: [line[i] for line in lines[1:]] for i, name in enumerate(header)}


def _repeated(header: list[str]) -> str:
    return next(name for name in header if header.count(name) > 1)


def _arrow(path: Path, kind: str) -> Table:
    import pyarrow.feather
    import pyarrow.parquet

    try:
        found = pyarrow.parquet.read_table(path) if kind == "parquet" else pyarrow.feather.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"{path} can't be read as {kind}: {str(error).splitlines()[0]}") from error
    return _columns(path, found)


def _columns(path: Path, found: pa.Table) -> Table:
    if len(set(found.column_names)) < len(found.column_names):
        several = _repeated(found.column_names)
        raise UsageError(f"{path}: several columns are called {several!r}; give each a name of its own.")
    table: Table = {}
    for name in found.column_names:
        try:
            table[name] = found.column(name).to_pylist()
        except (OverflowError, ValueError) as error:  # ArrowInvalid is a ValueError too
            raise UsageError(
                f"{path}: column {name}, of {found.column(name).type}, has values that can't be read, such as times "
                "before the year 1 or after 9999; leave it out, or store it as text."
            ) from error
    return table


def _duckdb(path: Path, table: str | None) -> Table:
    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            rows = connection.execute(sqlfiles.load("circuitdb.sql", "tables_of_file")).fetchall()
            names = {name if schema == "main" else f"{schema}.{name}": (schema, name) for schema, name in rows}
            schema, name = names[_one_table(path, list(names), table)]
            found = connection.sql(f"FROM {quoted(schema)}.{quoted(name)}").to_arrow_table()
    except duckdb.Error as error:
        raise UsageError(f"{path} can't be read as a DuckDB file: {str(error).splitlines()[0]}") from error
    return _columns(path, found)


def _sqlite(path: Path, table: str | None) -> Table:
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1").fetchall()
            cursor = connection.execute(f"SELECT * FROM {quoted(_one_table(path, [row[0] for row in rows], table))}")
            names = [column[0] for column in cursor.description]
            values = cursor.fetchall()
    except sqlite3.Error as error:
        raise UsageError(f"{path} can't be read as a SQLite file: {error}") from error
    return {name: [line[i] for line in values] for i, name in enumerate(names)}


def quoted(name: str) -> str:
    """An identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def _one_table(path: Path, names: list[str], wanted: str | None) -> str:
    if wanted is not None:
        if wanted not in names:
            raise UsageError(f"{path} has no table {wanted}; it has {', '.join(names) or 'none'}.")
        return wanted
    if len(names) != 1:
        raise UsageError(f"{path} has {len(names)} tables ({', '.join(names)}); name one with --table.")
    return names[0]
