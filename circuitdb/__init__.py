"""circuitdb: a database of transformer circuits. Ingest once, then query.

    import circuitdb
    db = circuitdb.open("circuits.duckdb")
    db.stability(task="addition").df()

Nothing here imports torch: `circuitdb.ingest` does, and only when it is imported by name.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from circuitdb.errors import CircuitdbError
from circuitdb.graph import GraphShape

if TYPE_CHECKING:
    from circuitdb.queries.database import Database

__version__ = "0.1.0"
__all__ = ["CircuitdbError", "GraphShape", "__version__", "open"]


def open(path: str | os.PathLike[str], *, timeout: float = 10.0, cache: bool = True) -> Database:
    """Open a circuit database for questions.

    The file itself is opened for each question and closed after it, so an ingest can go on writing.

    Args:
        path: the DuckDB file that `circuitdb ingest` wrote.
        timeout: seconds to wait for another process that is writing.
        cache: whether what took long to compute may be kept in the file, for the next time it is asked. It is kept only
            if the file can be written to at once.

    Raises:
        MissingDatabase: there is no such file.
        SchemaMismatch: the file is no circuitdb database, or of another version.
        LockedDatabase: another process held the file for longer than `timeout`.

    >>> db = circuitdb.open("circuits.duckdb")
    >>> db
    Database('circuits.duckdb')
    >>> db.stability(task="addition").title
    'Stability of 1 group of circuits: mean rho over pairs of distinct subtasks, signed scores, with 95% intervals ...'
    """
    from circuitdb.queries.database import Database

    return Database(path, timeout=timeout, cache=cache)
