"""The screens' only way to the database: a question at a time, each in a thread of its own.

1. `Access.ask` is awaited on the event loop; a daemon thread opens the file, asks, closes it. Nothing holds it open.
2. A locked file is tried again until the time-out of `circuitdb.connection` is over, in that thread.
3. Who no longer wants an answer cancels the wait (Textual's exclusive workers do). A question that waits for its turn
   is then never asked; what one runs in DuckDB is interrupted, and its answer, if it still gives one, dropped.
4. What asks the database, DuckDB above all, is imported there too, so that the first screen stands before it is loaded.
5. `Access.news` looks at the file's time first, and asks what the file holds only if that has changed.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from circuitdb.stopping import Stop

if TYPE_CHECKING:
    from circuitdb.queries.database import Database
    from circuitdb.queries.extent import Extent

T = TypeVar("T")
AT_ONCE = 3  # more would only make each other slow
_AGAIN_S = 0.2  # between two tries to interrupt a question
_GLANCE_S = 2.0  # how long a look for news may wait for the lock; the next look is soon


class Access:
    """A database file that screens ask."""

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 10.0) -> None:
        """`timeout`: seconds that a question waits for a process that writes."""
        self.path = os.fspath(path)
        self.timeout = timeout
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._running = 0
        self._seen: tuple[tuple[int, int], Extent] | None = None

    @property
    def busy(self) -> bool:
        """Whether a thread still asks, for an answer that is wanted or not."""
        return self._running > 0

    async def ask(self, question: Callable[[Database], T]) -> T:
        """What `question` returns of the database, which it is handed in a thread; it raises what that raises."""
        await self._turns.acquire()
        return await self._in_thread(lambda: question(self._open()), self._turns.release)

    async def news(self) -> Extent | None:
        """What the file holds, if that is not what it held at the last call; None otherwise.

        Raises StoreError while the file can't be read; the next call then looks anew.
        """
        return await self._in_thread(self._look, lambda: None)

    def forget(self) -> None:
        """Take the file for changed: the next call of `news` tells what it holds."""
        self._seen = None

    def _open(self) -> Database:
        from circuitdb.queries.database import Database

        return Database(self.path, timeout=self.timeout)

    def _look(self) -> Extent | None:
        from circuitdb.queries.extent import extent

        times = _times(self.path)
        if self._seen is not None and self._seen[0] == times:
            return None
        before, self._seen = None if self._seen is None else self._seen[1], None
        now = extent(self.path, timeout=min(_GLANCE_S, self.timeout))
        self._seen = (times, now)
        return None if now == before else now

    async def _in_thread(self, work: Callable[[], T], after: Callable[[], None]) -> T:
        """Await `work` in a daemon thread: one that runs on must not keep the program from ending."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        ended = False
        stop = Stop()

        def end(settle: Callable[[], None]) -> None:
            nonlocal ended
            ended = True
            self._running -= 1
            after()
            if not answer.done():
                settle()

        def give_up() -> None:
            if not ended:
                stop.now()
                loop.call_later(_AGAIN_S, give_up)

        def run() -> None:
            settle: Callable[[], None]
            try:
                with stop.heeded():
                    found = work()
                settle = lambda: answer.set_result(found)  # noqa: E731
            except BaseException as error:  # the thread hands it over, whatever it is
                failure = error
                settle = lambda: answer.set_exception(failure)  # noqa: E731
            with suppress(RuntimeError):  # the loop is closed: nobody is left to tell
                loop.call_soon_threadsafe(end, settle)

        self._running += 1
        threading.Thread(target=run, name="circuitdb question", daemon=True).start()
        try:
            return await answer
        except asyncio.CancelledError:
            give_up()
            raise


def _times(path: str) -> tuple[int, int]:
    """What changes when a file is written to: its time and its size; zeros for none."""
    try:
        found = Path(path).stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)
