"""Runs the SQL files of the command line itself: what `show` and `schema` ask beyond the methods of `Database`."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from circuitdb import sqlfiles

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

PACKAGE = "circuitdb.cli"


def run(connection: duckdb.DuckDBPyConnection, name: str, /, **parameters: int | str) -> pa.Table:
    """All rows of statement `name`, its `$parameters` bound."""
    return fetch(connection, sqlfiles.load(PACKAGE, name), **parameters)


def fetch(connection: duckdb.DuckDBPyConnection, statement: str, /, **parameters: int | str) -> pa.Table:
    """All rows of a statement, asked on a cursor of its own so that no unread result is in the way."""
    with closing(connection.cursor()) as cursor:
        return cursor.sql(statement, params=parameters or None).to_arrow_table()
