"""`circuitdb schema`: the tables, views and macros that SQL can ask, in the words of the schema's own comments."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from circuitdb.cli import output, statements
from circuitdb.cli.options import DEFAULT_DATABASE, Ask, question
from circuitdb.errors import UsageError

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


@question(filters=False)
def schema(
    ask: Ask,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A table, view or macro, to see its columns.")
    ] = None,
) -> None:
    """List the tables, views and macros that SQL can ask.

    With a name, the columns of that one. Where there is no database yet, the schema that an ingest would make.

    Example: circuitdb schema scores
    """
    from circuitdb.connection import reading
    from circuitdb.queries.result import Result

    packaged = ask.path == DEFAULT_DATABASE and not Path(ask.path).exists()
    notes = (
        (f"There is no {ask.path} here; this is the schema that `circuitdb ingest` would make.",) if packaged else ()
    )
    with fresh() if packaged else reading(ask.path, timeout=ask.timeout) as connection:
        found = relations(connection) if name is None else columns(connection, name)
    title = "Tables, views and macros" if name is None else f"Columns of {name.partition('(')[0]}"
    output.answer(Result(found, title, notes), ask.form)


@contextmanager
def fresh() -> Iterator[duckdb.DuckDBPyConnection]:
    """An empty database in memory with this version's schema."""
    import duckdb

    from circuitdb import migrations

    with duckdb.connect() as connection:
        migrations.migrate(connection, "the database in memory")
        yield connection


def relations(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Tables, views and macros: name, kind, columns, comment."""
    return statements.run(connection, "schema_relations")


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
        return statements.run(connection, "schema_columns", name=plain)
    nulls = ", ".join("NULL" for _ in known[plain].split(","))
    quoted = '"' + plain.replace('"', '""') + '"'
    described = statements.fetch(connection, f"DESCRIBE SELECT * FROM {quoted}({nulls})")
    import pyarrow as pa

    return pa.table({"column": described["column_name"], "type": described["column_type"]})
