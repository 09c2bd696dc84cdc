"""The only way to a DuckDB connection: opened for one question or one transaction, with a bounded wait for the lock.

DuckDB lets one process write and then nobody else read. So nobody here keeps the file open: a reader opens it,
asks and closes it, a writer opens it for the transaction that stores one circuit.
"""

from __future__ import annotations

import os
import re
import threading
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import pyarrow as pa

from circuitdb import copies, migrations, stopping
from circuitdb.errors import LockedDatabase, MissingDatabase, SchemaMismatch, SchemaUpgraded, StoreError, UsageError

# The oldest DuckDB whose shell can open our files.
STORAGE_VERSION = "v1.2.0"
_MEMORY = "60%"
# Guard rails for the user's own SQL, not a sandbox: DuckDB itself calls untrusted SQL unsafe.
_READER: dict[str, str | bool | int | float | list[str]] = {
    "memory_limit": _MEMORY,
    "enable_external_access": "false",
    "python_enable_replacements": "false",  # a Python variable is no table
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
}
# What DuckDB raises when the file or its disk fails it, whatever the statement was.
_DISK = (duckdb.IOException, duckdb.FatalException, duckdb.InternalException, duckdb.SerializationException)
_WRITER: dict[str, str | bool | int | float | list[str]] = {"memory_limit": _MEMORY}
_HOLDER = re.compile(r"held in (?P<program>.+?) \(PID (?P<pid>\d+)\)(?: by user (?P<user>\S+?))?[.\s]")


class _Turns:
    """Readers and a writer of one process: it can't hold a file with two configurations at a time."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers, self._writing = 0, False

    @contextmanager
    def take(self, name: str, *, to_write: bool, deadline: float) -> Iterator[None]:
        """Wait for one's turn until `deadline` (of the monotonic clock), then raise LockedDatabase."""
        with self._changed:
            free = self._changed.wait_for(
                lambda: not self._writing and not (to_write and self._readers), max(0.0, deadline - time.monotonic())
            )
            if not free:
                raise LockedDatabase(
                    f"{name} is in use by another thread of this process; wait for it to finish, then try again."
                )
            self._writing = to_write
            self._readers += not to_write
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._readers -= not to_write
                self._changed.notify_all()


_turns: defaultdict[str, _Turns] = defaultdict(_Turns)


def file_name(path: str | os.PathLike[str]) -> str:
    """The path of a database file as text. Raises UsageError for what is none."""
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str) or not os.fspath(path):
        raise UsageError(f"{path!r} is no path of a database file.")
    return os.fspath(path)


@contextmanager
def reading(path: str | os.PathLike[str], *, timeout: float = 10.0) -> Iterator[duckdb.DuckDBPyConnection]:
    """A read-only connection that can touch nothing but the file, closed on leaving.

    A file of an older schema is brought to this version's first, as `writing` does, if it can be written to. Raises
    MissingDatabase, SchemaMismatch or LockedDatabase; `timeout` is in seconds.
    """
    name = _existing(path)
    deadline = time.monotonic() + timeout
    while True:
        with _turns[os.path.realpath(name)].take(name, to_write=False, deadline=deadline):
            connection = _connect(name, read_only=True, timeout=timeout, deadline=deadline)
            try:
                if not (migrations.is_older(connection, name) and _can_be_written(name)):
                    migrations.require_current(connection, name)
                    yield connection
                    return
            except duckdb.Error as error:
                if not _of_disk(error):
                    raise
                raise _explain(name, error) from error
            finally:
                connection.close()
        with writing(name, timeout=timeout):
            pass


@contextmanager
def holding(path: str | os.PathLike[str], *, timeout: float = 60.0) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection to nothing but the file as `source`, of any schema: others may read it meanwhile, and none write.

    Raises MissingDatabase, SchemaMismatch (no DuckDB file) or LockedDatabase; `timeout` is in seconds.
    """
    name = _existing(path)
    deadline = time.monotonic() + timeout
    # Within this process not even others may read: a lock of the system's is lost with the first file that is closed.
    with (
        _turns[os.path.realpath(name)].take(name, to_write=True, deadline=deadline),
        _held(name, timeout=timeout, deadline=deadline) as connection,
    ):
        try:
            yield connection
        except duckdb.Error as error:
            if not _of_disk(error):
                raise
            raise _explain(name, error) from error


@contextmanager
def writing(path: str | os.PathLike[str], *, timeout: float = 60.0) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that may write, the file created and migrated if need be; closed on leaving.

    Before it is migrated it is copied, and a SchemaUpgraded warning tells where to. Raises StoreError, SchemaMismatch
    or LockedDatabase; `timeout` is in seconds.
    """
    name = file_name(path)
    folder = Path(os.path.realpath(name)).parent
    if not folder.is_dir():
        raise StoreError(f"The folder {folder} does not exist; make it, or name another file with --db.")
    if Path(name).is_dir():
        raise StoreError(f"{name} is a folder; name a file with --db.")
    deadline = time.monotonic() + timeout
    with _turns[os.path.realpath(name)].take(name, to_write=True, deadline=deadline):
        if not Path(name).exists() or Path(name).stat().st_size == 0:
            _create(name)
        connection = _connect(name, read_only=False, timeout=timeout, deadline=deadline)
        try:
            upgraded = ""
            if migrations.is_older(connection, name):
                connection.close()
                upgraded = _keep_older(name, timeout=timeout, deadline=deadline)
                connection = _connect(name, read_only=False, timeout=timeout, deadline=deadline)
            migrations.migrate(connection, name)
            if upgraded:
                warnings.warn(upgraded, SchemaUpgraded, stacklevel=3)
            yield connection
        except duckdb.Error as error:
            if not _of_disk(error):
                raise
            raise _explain(name, error) from error
        finally:
            connection.close()


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """All or nothing: commits on leaving, rolls back on any exception."""
    connection.execute("BEGIN")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def registered(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, pa.Table]) -> Iterator[None]:
    """Statements find these tables by their names, before those of the database, until one leaves."""
    there: list[str] = []
    try:
        for name, table in tables.items():
            connection.register(name, table)
            there.append(name)
        yield
    finally:
        for name in there:
            connection.unregister(name)


def append(connection: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    """Add rows to a table, column by column of the same name."""
    if rows.num_rows:
        with registered(connection, {"arriving": rows}):
            connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM arriving")


def _create(name: str) -> None:
    """Make an empty file of a fixed storage version, so that older DuckDB shells can read it.

    Made beside and then put in place, so that a file of this name is always whole.
    """
    final = os.path.realpath(name)
    fresh = f"{final}.{os.getpid()}.new"
    try:
        with duckdb.connect(config=_WRITER) as memory:
            memory.execute(f"ATTACH {_quoted(fresh)} AS fresh (STORAGE_VERSION '{STORAGE_VERSION}')")
        if os.path.exists(final):  # an empty file, which DuckDB would refuse
            os.replace(fresh, final)
        else:
            copies.put(fresh, final)
    except FileExistsError:
        pass  # another process was quicker
    except (duckdb.Error, OSError) as error:
        raise StoreError(f"{name} can't be created: {_first_line(error)}") from error
    finally:
        Path(fresh).unlink(missing_ok=True)


def _existing(path: str | os.PathLike[str]) -> str:
    """The name of a database file that is there. Raises StoreError or MissingDatabase."""
    name = file_name(path)
    if Path(name).is_dir():
        raise StoreError(f"{name} is a folder; name a file with --db.")
    if not Path(name).is_file():
        raise MissingDatabase(f"There is no database {name}; make one with `circuitdb ingest`, or name it with --db.")
    return name


def _can_be_written(name: str) -> bool:
    final = os.path.realpath(name)
    return os.access(final, os.R_OK | os.W_OK) and os.access(os.path.dirname(final), os.W_OK)


def _keep_older(name: str, *, timeout: float, deadline: float) -> str:
    """Copy a file of an older schema to beside it; what to tell of it, nothing if another process was quicker."""
    with _held(name, timeout=timeout, deadline=deadline) as connection:
        connection.execute("USE source")
        found = migrations.version_of(connection, name)
        if not 0 < found < migrations.latest():
            return ""
        kept = f"{os.path.realpath(name)}.schema-{found}"
        if not os.path.exists(kept):
            with suppress(FileExistsError):  # another process, which is about to do the same, was quicker
                copies.copy(os.path.realpath(name), kept)
    return f"{name} was brought from schema {found} to {migrations.latest()}; as it was before it is kept in {kept}."


@contextmanager
def _held(name: str, *, timeout: float, deadline: float) -> Iterator[duckdb.DuckDBPyConnection]:
    def attach() -> duckdb.DuckDBPyConnection:
        # By default a database in memory would spill to a folder where the user happens to be.
        connection = duckdb.connect(config={**_WRITER, "temp_directory": f"{os.path.realpath(name)}.tmp"})
        try:
            connection.execute(f"ATTACH {_quoted(os.path.realpath(name))} AS source (READ_ONLY)")
        except BaseException:
            connection.close()
            raise
        return connection

    connection = _patiently(name, attach, timeout=timeout, deadline=deadline)
    try:
        yield connection
    finally:
        connection.close()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _connect(name: str, *, read_only: bool, timeout: float, deadline: float) -> duckdb.DuckDBPyConnection:
    def connect() -> duckdb.DuckDBPyConnection:
        # Its full path: `:memory:` or `sqlite:x` would mean something else to DuckDB.
        return duckdb.connect(os.path.realpath(name), read_only=read_only, config=_READER if read_only else _WRITER)

    return _patiently(name, connect, timeout=timeout, deadline=deadline)


def _patiently(
    name: str, connect: Callable[[], duckdb.DuckDBPyConnection], *, timeout: float, deadline: float
) -> duckdb.DuckDBPyConnection:
    """Connect as soon as nobody holds the file. Raises LockedDatabase if that is not before the deadline."""
    pause = 0.01
    while True:
        before = _identity(name)
        try:
            connection = connect()
        except (duckdb.IOException, duckdb.ConnectionException, duckdb.BinderException) as error:
            text = str(error)
            if not _is_lock(text):
                raise _explain(name, error) from error
            if time.monotonic() >= deadline or stopping.wanted():
                raise LockedDatabase(
                    f"{name} is held by {_holder(text)} and was not free within {timeout:g} s; "
                    "wait for it to finish or stop it, then try again."
                ) from error
        except duckdb.Error as error:
            raise _explain(name, error) from error
        else:
            if _identity(name) == before:
                return connection
            connection.close()  # `compact` put another file in its place meanwhile, and this one is lost
            continue
        time.sleep(pause)
        pause = min(pause * 2, 0.25)


def _identity(name: str) -> tuple[int, int] | None:
    try:
        found = os.stat(name)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _is_lock(text: str) -> bool:
    return "lock on file" in text.lower() or "different configuration" in text or "already attached" in text


def _holder(text: str) -> str:
    found = _HOLDER.search(text)
    if not found:
        return "another connection of this process"
    user = f", user {found['user']}" if found["user"] else ""
    return f"process {found['pid']} ({found['program']}{user})"


def _of_disk(error: duckdb.Error) -> bool:
    """Whether the file or its disk is at fault, and not the statement."""
    # A block whose checksum is wrong raises the plain root of DuckDB's errors.
    return isinstance(error, _DISK) or type(error) is duckdb.Error


def _explain(name: str, error: duckdb.Error) -> StoreError:
    text = str(error)
    if "not a valid DuckDB database file" in text or "magic" in text.lower():
        return SchemaMismatch(f"{name} is no DuckDB file; name another one with --db.")
    if "version number" in text:
        return SchemaMismatch(f"{name} was written by a DuckDB that this one ({duckdb.__version__}) can't read: {text}")
    if "No space left" in text:
        return StoreError(f"{name} can't be written: no space is left on its disk; make room and run it again.")
    if "attempted to read" in text or "Corrupt" in text or "checksum" in text.lower():
        return StoreError(f"{name} is damaged or cut short; take a copy of it from a backup: {_first_line(error)}")
    if "ermission denied" in text:
        return StoreError(f"{name} can't be opened: permission denied.")
    return StoreError(f"{name} can't be opened: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
