"""Stopping a question from another thread: what it runs in DuckDB is interrupted, a lock it waits for is given up.

1. Who asks calls the question within `Stop.heeded`.
2. What runs statements for it does so within `running`, and what waits for a lock looks at `wanted`.
3. `Stop.now`, from any thread, interrupts that statement, and the question's later ones before they begin.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


class Stop:
    """The wish that a question end, which it may be given at any moment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connections: list[duckdb.DuckDBPyConnection] = []
        self.wanted = False

    def now(self) -> None:
        """Wish it. DuckDB forgets an interrupt that comes just before a statement: say it again if need be."""
        with self._lock:
            self.wanted = True
            for connection in self._connections:
                connection.interrupt()

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """What this thread does within can be stopped."""
        token = _heeded.set(self)
        try:
            yield
        finally:
            _heeded.reset(token)

    @contextmanager
    def over(self, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Statements of this connection can be stopped; see `running`."""
        import duckdb  # whoever has a connection has loaded it

        with self._lock:
            if self.wanted:
                raise duckdb.InterruptException("The question was stopped.")
            self._connections.append(connection)
        try:
            yield
        finally:
            with self._lock:
                self._connections.remove(connection)


_heeded: ContextVar[Stop | None] = ContextVar("_heeded", default=None)


def wanted() -> bool:
    """Whether the question that this thread works on was stopped."""
    stop = _heeded.get()
    return stop is not None and stop.wanted


@contextmanager
def running(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Statements of this connection end when the question is stopped. Raises duckdb.InterruptException then."""
    stop = _heeded.get()
    if stop is None:
        yield
    else:
        with stop.over(connection):
            yield
