"""Runs a user's own SQL: guarded, then asked, its errors turned into sentences with the nearest name."""

from __future__ import annotations

import difflib
import re
from contextlib import closing

import duckdb
import pyarrow as pa
from duckdb.sqltypes import DuckDBPyType

from circuitdb import stopping
from circuitdb.errors import CircuitdbError, StoreError, UsageError
from circuitdb.evals import attached
from circuitdb.evals.attached import Attached
from circuitdb.queries import dialects, guard, macros, named
from circuitdb.queries.columns import distinct
from circuitdb.queries.result import Result, count

_ERROR_LINES = 6
_UNKNOWN = re.compile(r"Error: Table (?P<function>Function )?with name (?P<name>\S+) does not exist")
_GARBLED = re.compile(r"\b(BIT|TIME WITH TIME ZONE)\b")


def run(connection: duckdb.DuckDBPyConnection, statement: str, dialect: str = dialects.DUCKDB) -> Result:
    """Run one statement that only reads, in the SQL of a dialect. Raises UsageError where it is refused or wrong."""
    statement = dialects.to_duckdb(statement, dialect)
    there = Attached()
    try:
        text = guard.check(connection, statement)
        tokens = guard.tokens_of(text)
        there = attached.read_for(connection, macros.names(tokens))
        with closing(connection.cursor()) as cursor, stopping.running(cursor):
            there.register(cursor)
            macros.serve(cursor, tokens)
            table = _fetch(cursor.sql(text))
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        raise _explain(connection, statement, there, error) from error
    table, notes = _unique_names(table)
    return Result(table, count(len(table), "row"), (*notes, *there.notes))


def _fetch(answer: duckdb.DuckDBPyRelation) -> pa.Table:
    """All rows; what Arrow has no type for and would garble (BIT, TIME WITH TIME ZONE) as DuckDB's text of it."""
    kinds = [_faithful(kind) for kind in answer.types]
    if kinds == [str(kind) for kind in answer.types]:
        return answer.to_arrow_table()
    names = answer.columns
    chosen = [
        f"#{i}" if wanted == str(kind) else f"CAST(#{i} AS {wanted})"
        for i, (kind, wanted) in enumerate(zip(answer.types, kinds, strict=True), start=1)
    ]
    return answer.project(", ".join(chosen)).to_arrow_table().rename_columns(names)


def _faithful(kind: DuckDBPyType) -> str:
    """The type to fetch a type as."""
    whole = str(kind)
    if not _GARBLED.search(whole):
        return whole
    if kind.id in ("list", "array", "map", "struct"):
        parts = [
            (name, _faithful(part) if isinstance(part, DuckDBPyType) else str(part)) for name, part in kind.children
        ]
    if kind.id in ("list", "array"):  # an array's second part is its size
        return f"{parts[0][1]}[{parts[1][1] if len(parts) > 1 else ''}]"
    if kind.id == "map":
        return f"MAP({parts[0][1]}, {parts[1][1]})"
    if kind.id == "struct":
        quoted = [(name.replace('"', '""'), part) for name, part in parts]
        return "STRUCT(" + ", ".join(f'"{name}" {part}' for name, part in quoted) + ")"
    return "VARCHAR" if kind.id in ("bit", "time with time zone", "union") else whole


def _explain(
    connection: duckdb.DuckDBPyConnection, statement: str, there: Attached, error: duckdb.Error
) -> CircuitdbError:
    text = str(error)
    if isinstance(error, duckdb.BinderException | duckdb.CatalogException):
        text = _pointed(connection, statement, there) or text
    lines = [line for line in text.splitlines() if line.strip()]
    lines = _own_suggestion(connection, lines)
    kind, _, first = lines[0].partition(" Error: ")
    message = "\n".join([first or kind, *lines[1:_ERROR_LINES]])
    if isinstance(error, duckdb.CatalogException) and first.startswith("Table with name"):
        message += "\nSHOW TABLES lists what there is."
    unusable = isinstance(error, duckdb.InternalException | duckdb.FatalException | duckdb.OutOfMemoryException)
    return StoreError(message) if unusable else UsageError(message)


def _own_suggestion(connection: duckdb.DuckDBPyConnection, lines: list[str]) -> list[str]:
    """The lines of a message with the nearest of the file's own tables or macros, never of DuckDB's catalogs."""
    unknown = _UNKNOWN.search(lines[0])
    if not unknown:
        return lines
    there = named.run(connection, "relations").to_pylist()
    # The name of a macro goes on with its parameters.
    macro = bool(unknown["function"])
    names = [str(row["name"]).partition("(")[0] for row in there if ("(" in str(row["name"])) == macro]
    near = difflib.get_close_matches(unknown["name"].lower(), names, n=1)
    guess = [f'Did you mean "{near[0]}"?'] if near else []
    return [lines[0], *guess, *(line for line in lines[1:] if not line.startswith("Did you mean "))]


def _pointed(connection: duckdb.DuckDBPyConnection, statement: str, there: Attached) -> str | None:
    """The same error with the line and a caret, which a relation leaves out; a name that is wrong is found unrun."""
    with closing(connection.cursor()) as cursor:
        there.register(cursor)
        try:
            cursor.execute(statement)
        except duckdb.Error as error:
            return str(error)
    return None


def _unique_names(table: pa.Table) -> tuple[pa.Table, tuple[str, ...]]:
    """The columns under distinct names, with a note where that needed others."""
    names = distinct(table.column_names)
    renamed = dict.fromkeys(old for old, new in zip(table.column_names, names, strict=True) if old != new)
    if not renamed:
        return table, ()
    note = f"Several columns are called {', '.join(renamed)}; all but the first are numbered."
    return table.rename_columns(names), (note,)
