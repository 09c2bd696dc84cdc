"""Writes the database anew, in large row groups, and puts the new file in the place of the old one.

An ingest stores each circuit in a transaction of its own, and each leaves row groups of its own; what is deleted leaves
holes. The steps:

1. Hold the file, so that nobody writes to it; readers go on.
2. Copy all of it into a file beside it, rows in their order, in row groups of ten times DuckDB's size.
3. Compare: every table has the same rows, and the catalogue the same entries.
4. See that the new file would outlast a power cut, then give it the old one's name.

Killed at any moment, the name belongs to the old file or to the new one, and either is whole.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from circuitdb import copies, sqlfiles
from circuitdb.connection import STORAGE_VERSION, file_name, holding, writing
from circuitdb.errors import LockedDatabase, StoreError

# DuckDB packs a row group's columns into blocks of their own; of larger ones less is left empty. More than this saves
# nothing more, and a scan by many cores wants several of them.
ROW_GROUP = 10 * 122_880


@dataclass(frozen=True)
class Compacted:
    """What a compaction did: bytes of the file before and after, and the scores of whole circuits in it."""

    before: int
    after: int
    n_scores: int


def compact(path: str | os.PathLike[str], *, timeout: float = 60.0) -> Compacted:
    """Write the file anew, as small as it gets. An older schema is brought to this version's first.

    Waits up to `timeout` seconds for a writer. Raises StoreError where there is no room for a second file or the copy
    is not equal to the file, LockedDatabase where another process writes or compacts, MissingDatabase.
    """
    final = os.path.realpath(file_name(path))
    with _alone(final):
        _discard(final)
        while True:
            if os.path.exists(f"{final}.wal"):  # of a killed writer; whoever writes next folds it in
                with writing(path, timeout=timeout):
                    pass
            with holding(path, timeout=timeout) as connection:
                if not os.path.exists(f"{final}.wal"):
                    return _compact(connection, str(path), final)


def fresh_name(final: str) -> str:
    """Where the new file is while it is being written."""
    return f"{final}.compacting"


def _compact(connection: duckdb.DuckDBPyConnection, name: str, final: str) -> Compacted:
    fresh, before = fresh_name(final), os.path.getsize(final)
    copies.require_room(fresh, before)
    quoted = fresh.replace("'", "''")
    try:
        connection.execute(
            f"ATTACH '{quoted}' AS fresh (STORAGE_VERSION '{STORAGE_VERSION}', ROW_GROUP_SIZE {ROW_GROUP})"
        )
        connection.execute("COPY FROM DATABASE source TO fresh")
        connection.execute("DETACH fresh")  # with a checkpoint
        connection.execute(f"ATTACH '{quoted}' AS fresh (READ_ONLY)")
        _require_equal(connection, name)
        rows = connection.execute("SELECT count(*) FROM fresh.edge_score").fetchall()
        connection.execute("DETACH fresh")
        shutil.copymode(final, fresh)
        copies.flush(fresh)
        os.replace(fresh, final)
        copies.flush(os.path.dirname(final))
    except (duckdb.IOException, OSError) as error:
        raise StoreError(f"{name} can't be compacted, and is as it was: {str(error).splitlines()[0]}") from error
    finally:
        _discard(final)
    return Compacted(before, os.path.getsize(final), int(rows[0][0]))


def _require_equal(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Raise StoreError unless both files have the same rows in each table, and the same catalogue."""
    entries = connection.execute(sqlfiles.load("circuitdb.sql", "catalogue_difference")).fetchall()
    differing = [str(entry) for (entry,) in entries]
    for table, _ in connection.execute(sqlfiles.load("circuitdb.sql", "tables_of_source")).fetchall():
        sums = [
            connection.execute(f"SELECT count(*), sum(hash(t)) FROM {database}.{table} AS t").fetchall()
            for database in ("source", "fresh")
        ]
        if sums[0] != sums[1]:
            differing.append(str(table))
    if differing:
        raise StoreError(f"{name} is as it was: its copy is not equal in {', '.join(differing)}; please report it.")


@contextmanager
def _alone(final: str) -> Iterator[None]:
    """One compaction in a folder at a time: two that read the same file would put their copies over each other's."""
    handle = os.open(os.path.dirname(final), os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LockedDatabase(
                f"A file in {os.path.dirname(final)} is being compacted; wait for that to finish, then try again."
            ) from error
        yield
    finally:
        os.close(handle)


def _discard(final: str) -> None:
    """Remove a new file that was not put in place; only a compaction makes these, and none other is running."""
    for path in (fresh_name(final), f"{fresh_name(final)}.wal"):
        Path(path).unlink(missing_ok=True)
