"""A long answer of the user's own SQL: kept on disk while it is looked at, so that memory holds only what is seen.

1. The answer is written batch by batch into an Arrow file, and the database is closed.
2. The file is mapped into memory and loses its name at once: it is gone when nobody looks at it any more.
3. Past `MOST_BYTES` the rest is left out, with a note.
"""

from __future__ import annotations

import os
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.ipc

from circuitdb.connection import reading
from circuitdb.errors import StoreError
from circuitdb.queries import statement as statements
from circuitdb.queries.result import Result, count

MOST_BYTES = 1 << 30
_BATCH = 10_000  # rows
# What DuckDB raises while rows are streamed comes as Arrow's OSError, with the kind at its head.
_KINDS: dict[str, type[duckdb.Error]] = {
    "INTERRUPT": duckdb.InterruptException,
    "IO": duckdb.IOException,
    "Out of Memory": duckdb.OutOfMemoryException,
}


class Spool:
    """An answer on disk.

    Attributes:
        schema: names and types of the columns.
        n_rows: how many rows it has.
        notes: what must be said of it.
    """

    def __init__(self, path: str, notes: tuple[str, ...]) -> None:
        """`path`: an Arrow file, which loses its name."""
        self._file = pa.memory_map(path)
        self._reader = pa.ipc.open_file(self._file)
        os.unlink(path)
        lengths = [self._reader.get_batch(i).num_rows for i in range(self._reader.num_record_batches)]
        self._starts = [0, *accumulate(lengths)]
        self.schema: pa.Schema = self._reader.schema
        self.n_rows = self._starts[-1]
        self.notes = notes

    @property
    def title(self) -> str:
        """How many rows there are."""
        return count(self.n_rows, "row")

    def rows(self, offset: int, limit: int) -> pa.Table:
        """The rows from an offset on, at most so many."""
        end = min(self.n_rows, offset + limit)
        batches = []
        place = max(0, bisect_right(self._starts, offset) - 1)
        while offset < end:
            batch = self._reader.get_batch(place)
            within = offset - self._starts[place]
            batches.append(batch.slice(within, end - offset))
            offset = self._starts[place + 1]
            place += 1
        return pa.Table.from_batches(batches, self.schema)

    def parts(self) -> Iterator[Result]:
        """All rows, part by part; at least one part, which may have no rows."""
        for offset in range(0, max(1, self.n_rows), _BATCH):
            yield Result(self.rows(offset, _BATCH), self.title)

    def close(self) -> None:
        """Let go of it."""
        self._file.close()


def spool(
    path: str | os.PathLike[str], statement: str, *, timeout: float = 10.0, told: Callable[[int], None] = lambda _: None
) -> Spool:
    """Ask one statement that only reads, and keep its answer on disk; `told` hears how many rows there are so far.

    Raises UsageError where the statement is refused or wrong, StoreError where the disk has no room,
    duckdb.InterruptException where it was stopped (see `circuitdb.stopping`).
    """
    handle, name = tempfile.mkstemp(prefix="circuitdb-", suffix=".arrow")
    os.close(handle)
    try:
        with reading(path, timeout=timeout) as connection, statements.asked(connection, statement) as question:
            notes = _write(question, name, told)
        return Spool(name, notes)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _write(question: statements.Asked, name: str, told: Callable[[int], None]) -> tuple[str, ...]:
    """Write the rows into a file; what must be said of them."""
    with _streamed():
        reader = question.relation.to_arrow_reader(_BATCH)
    names, notes = question.columns(reader.schema.names)
    schema = pa.schema([field.with_name(name) for field, name in zip(reader.schema, names, strict=True)])
    n_rows = 0
    try:
        with pa.OSFile(name, "wb") as file, pa.ipc.new_file(file, schema) as writer:
            while True:
                with _streamed():
                    batch = next(reader, None)
                if batch is None:
                    return notes
                writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
                n_rows += batch.num_rows
                told(n_rows)
                if file.tell() > MOST_BYTES:
                    return (
                        *notes,
                        f"These are the first {n_rows:,} rows, as many as {MOST_BYTES >> 20:,} MB hold; ask for fewer, "
                        "or let `circuitdb sql ... -o FILE` write them all.",
                    )
    except OSError as error:
        raise StoreError(f"The answer can't be kept in {Path(name).parent}: {error.strerror or error}.") from error


@contextmanager
def _streamed() -> Iterator[None]:
    """DuckDB's own errors, where Arrow passes them on as its own."""
    try:
        yield
    except OSError as error:
        text = str(error)
        raise _KINDS.get(text.partition(" Error: ")[0], duckdb.Error)(text) from error
