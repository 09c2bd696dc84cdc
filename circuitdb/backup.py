"""A copy of the database as it is at one moment, while others may be reading it and an ingest writing to it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from circuitdb import copies, migrations
from circuitdb.connection import file_name, holding
from circuitdb.errors import StoreError, UsageError


@dataclass(frozen=True)
class Backup:
    """A copy that was made: its file, its bytes and how many circuits it holds."""

    path: str
    n_bytes: int
    n_circuits: int


def back_up(
    path: str | os.PathLike[str], target: str | os.PathLike[str], *, replace: bool = False, timeout: float = 60.0
) -> Backup:
    """Copy the file to `target`, a file or a folder, where it gets the file's name and the time.

    Waits up to `timeout` seconds for a writer to be done with its circuit. Raises UsageError for a target that can't
    be, StoreError for one that is there already (unless `replace`) or has no room, LockedDatabase, MissingDatabase.
    """
    source, final = os.path.realpath(file_name(path)), os.path.realpath(file_name(target))
    if os.path.isdir(final):
        name = Path(source)
        final = os.path.join(final, f"{name.stem}-{datetime.now():%Y-%m-%d-%H%M%S}{name.suffix}")
    if not os.path.isdir(os.path.dirname(final)):
        raise UsageError(f"The folder of {target} does not exist; make it, or name another file.")
    if final == source:
        raise UsageError(f"{target} is the database itself; name another file.")
    taken = StoreError(f"{final} exists already; name another file, or replace it with --force.")
    if os.path.exists(final) and not replace:
        raise taken
    with holding(path, timeout=timeout) as connection:
        connection.execute("USE source")
        is_empty = not migrations.version_of(connection, file_name(path))
        rows = [(0,)] if is_empty else connection.execute("SELECT count(*) FROM circuit").fetchall()
        try:
            n_bytes = copies.copy(source, final, replace=replace)
        except FileExistsError as error:  # by now
            raise taken from error
    return Backup(final, n_bytes, int(rows[0][0]))
