"""Tables, views and macros of a database, in the words of the schema's own comments."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import closing, contextmanager

import duckdb
import pyarrow as pa

from circuitdb import migrations
from circuitdb.errors import UsageError
from circuitdb.queries import named
from circuitdb.queries.result import Result


@contextmanager
def fresh() -> Iterator[duckdb.DuckDBPyConnection]:
    """An empty database in memory with this version's schema."""
    with duckdb.connect() as connection:
        migrations.migrate(connection, "the database in memory")
        yield connection


def describe(connection: duckdb.DuckDBPyConnection, name: str | None = None) -> Result:
    """All relations, or the columns of one: see `Database.schema`."""
    if name is None:
        return Result(relations(connection), "Tables, views and macros")
    return Result(columns(connection, name), f"Columns of {name.partition('(')[0]}")


def relations(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Tables, views and macros: name, kind, columns, comment."""
    return named.run(connection, "relations")


def vocabulary(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """What a statement may be made of: word, kind, relation (of a column), parameters (of a macro)."""
    return named.run(connection, "vocabulary")


def columns(connection: duckdb.DuckDBPyConnection, name: str) -> pa.Table:
    """The columns of a table, of a view, or of what a macro gives: column, type, nullable, comment.

    Raises UsageError, with the nearest name, if there is nothing of that name.
    """
    known = {
        str(row["name"]).partition("(")[0]: str(row["name"]) for row in relations(connection).to_pylist()
    }  # a macro's name goes on with its parameters
    plain = name.partition("(")[0]
    if plain not in known:
        near = difflib.get_close_matches(plain, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}."
        raise UsageError(f"There is no table, view or macro {name}; {hint}")
    if known[plain] == plain:
        return named.run(connection, "relation_columns", name=plain)
    nulls = ", ".join("NULL" for _ in known[plain].split(","))
    quoted = '"' + plain.replace('"', '""') + '"'
    with closing(connection.cursor()) as cursor:
        described = cursor.sql(f"DESCRIBE SELECT * FROM {quoted}({nulls})").to_arrow_table()
    return pa.table({"column": described["column_name"], "type": described["column_type"]})
