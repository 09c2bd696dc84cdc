"""Finds, binds and runs the SQL files of `queries/sql/`: file name = query name, values bound and never formatted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TypeAlias

import duckdb
import pyarrow as pa

from circuitdb import sqlfiles, stopping
from circuitdb.evals.attached import Attached

PACKAGE = "circuitdb.queries.sql"
NOTHING_ATTACHED = Attached()
Parameter: TypeAlias = "bool | int | float | str | Sequence[int] | Sequence[str] | None"


def names() -> tuple[str, ...]:
    """Names of all queries."""
    return sqlfiles.names(PACKAGE)


def text(name: str) -> str:
    """The SQL of a query, with the comment that explains it. Raises UsageError if there is none of that name."""
    return sqlfiles.load(PACKAGE, name)


def run(
    connection: duckdb.DuckDBPyConnection, name: str, attached: Attached = NOTHING_ATTACHED, /, **parameters: Parameter
) -> pa.Table:
    """Run query `name` with its `$parameters` bound, beside what is `attached`, and return all of its rows."""
    bound = {key: list(value) if isinstance(value, tuple) else value for key, value in parameters.items()}
    # A cursor of its own: an unread result of an earlier statement would be in the way. Left open it would keep the
    # file locked after the connection is closed.
    with closing(connection.cursor()) as cursor, stopping.running(cursor):
        attached.register(cursor)
        return cursor.sql(text(name), params=bound).to_arrow_table()
