"""Results kept in the database file: found by the digest of all that they depend on, kept only where that costs nobody.

A reader writes here, so it does not insist: a file that is read-only, or in use by anybody, is left as it is.
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import duckdb

from circuitdb.connection import transaction, writing
from circuitdb.errors import CircuitdbError

_MOST, _LARGEST = 200, 64 << 20  # entries, and bytes of one


def find(connection: duckdb.DuckDBPyConnection, key: str) -> bytes | None:
    """The content of this key, or None."""
    with closing(connection.cursor()) as cursor:
        row = cursor.execute("SELECT content FROM cache WHERE key = ?", [key]).fetchone()
    return None if row is None else bytes(row[0])


def keep(path: str, key: str, content: bytes) -> bool:
    """Put content into the file, the oldest making room for it; whether that could be done at once."""
    folder = Path(os.path.realpath(path)).parent
    if len(content) > _LARGEST or not (os.access(path, os.R_OK | os.W_OK) and os.access(folder, os.W_OK)):
        return False
    try:
        with writing(path, timeout=0) as connection:
            with transaction(connection):
                connection.execute("DELETE FROM cache WHERE key = ?", [key])
                connection.execute("INSERT INTO cache (key, content) VALUES (?, ?)", [key, content])
                connection.execute(
                    "DELETE FROM cache WHERE key IN (SELECT key FROM cache ORDER BY made_at DESC, key OFFSET ?)",
                    [_MOST],
                )
            connection.execute("CHECKPOINT")
    except (CircuitdbError, duckdb.Error, OSError):
        return False
    return True
