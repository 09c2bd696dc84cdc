"""Copies of a database file: under their name they are whole, or not there.

The caller sees to it that nobody writes to the file meanwhile. Killed at any moment, a copy leaves at most a file whose
name ends with `.new`.
"""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from pathlib import Path

import duckdb

from circuitdb.errors import StoreError

_CHUNK = 16 << 20
# What must stay free on a disk beside what is written.
_MARGIN = 32 << 20


def copy(source: str, target: str, *, replace: bool = False) -> int:
    """Copy a database file with what a killed writer left in its log; returns the bytes of the copy.

    Raises FileExistsError where there is a file of that name, unless `replace`; StoreError for no room.
    """
    log = f"{source}.wal"
    sizes = [os.path.getsize(path) for path in (source, log) if os.path.exists(path)]
    require_room(target, sum(sizes))
    fresh = f"{target}.{os.getpid()}.new"
    try:
        # Both are opened before either is closed: with the first that is, the process's lock of the file is gone.
        with ExitStack() as stack:
            pairs = [(stack.enter_context(open(source, "rb")), fresh)]
            if os.path.exists(log):
                pairs.append((stack.enter_context(open(log, "rb")), f"{fresh}.wal"))
            for read, path in pairs:
                with open(path, "xb") as written:
                    shutil.copyfileobj(read, written, _CHUNK)
        # Opening it folds the log in, and sees that the copy can be read.
        duckdb.connect(fresh).close()
        flush(fresh)
        shutil.copymode(source, fresh)
        if replace:
            os.replace(fresh, target)
        else:
            put(fresh, target)
        flush(os.path.dirname(target))
    except FileExistsError:
        raise
    except (duckdb.Error, OSError) as error:
        raise StoreError(f"{source} can't be copied to {target}: {str(error).splitlines()[0]}") from error
    finally:
        for path in (fresh, f"{fresh}.wal"):
            Path(path).unlink(missing_ok=True)
    return os.path.getsize(target)


def put(fresh: str, final: str) -> None:
    """Give the file its name unless there is one of that name. Raises FileExistsError."""
    try:
        os.link(fresh, final)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.exists(final):
            raise FileExistsError(final) from None
        os.rename(fresh, final)


def flush(path: str) -> None:
    """See that a file, or the names in a folder, would outlast a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def require_room(target: str, n_bytes: int) -> None:
    """Raise StoreError, before any work is done, if the disk of `target` has no room for so many bytes more."""
    folder = os.path.dirname(os.path.realpath(target))
    free = shutil.disk_usage(folder).free
    if free < n_bytes + _MARGIN:
        raise StoreError(
            f"{target} would take {n_bytes / 1e6:,.0f} MB, and its disk has {free / 1e6:,.0f} MB free, of which "
            f"{_MARGIN / 1e6:,.0f} MB are to stay free; make room first."
        )


def runs(pid: int) -> bool:
    """Whether there is a process of this number, so that a file named by it may still be at work."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True
