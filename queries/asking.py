"""What every question shares: the file, opened, asked and closed, with the file free for a writer meanwhile."""

from __future__ import annotations

import os

import duckdb
import pyarrow as pa

from circuitdb.connection import reading
from circuitdb.errors import UsageError
from circuitdb.queries import arguments
from circuitdb.queries.columns import texts
from circuitdb.queries.models import model_names
from circuitdb.queries.selection import Selection, select


class Asking:
    """A database file that questions are asked of."""

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 10.0, cache: bool = True) -> None:
        """See `circuitdb.open`."""
        self.path = os.fspath(path)
        self.timeout = arguments.patience(timeout)
        self.keeps = cache
        with reading(self.path, timeout=self.timeout):
            pass

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r})"


def the_circuit(connection: duckdb.DuckDBPyConnection, circuit: int) -> Selection:
    """The circuit of this number. Raises UsageError where there is none."""
    chosen = select(connection, {"circuits": circuit})
    if not chosen.members:
        raise UsageError(f"There is no circuit {circuit}; the database holds none yet.")
    return chosen


def with_models(connection: duckdb.DuckDBPyConnection, table: pa.Table) -> pa.Table:
    """The table with its models named so that no two look alike, and without their ids."""
    names = model_names(connection)
    keys, given = table["model_id"].to_pylist(), table["model"].to_pylist()
    shown = texts(name if key is None else names[key].shown for key, name in zip(keys, given, strict=True))
    return table.set_column(table.column_names.index("model"), "model", shown).drop_columns(["model_id"])
