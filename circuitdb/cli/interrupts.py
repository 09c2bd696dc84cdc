"""Ctrl-C that works: a question ends soon after it, even while DuckDB is deep in a task and does not look up.

1. Python notes a signal at once, but raises KeyboardInterrupt only when the main thread is back from C.
2. It also writes to the wake-up file descriptor at once, and a thread reads there.
3. If the question has not ended a second later, the thread ends the process. A question only reads: nothing is lost.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from circuitdb.cli.diagnostics import INTERRUPTED

_GRACE_S = 1.0


@contextmanager
def heeded() -> Iterator[None]:
    """Within it, Ctrl-C ends the process within a second or so, with the exit code of an interrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(reader, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        os.close(writer)
        watcher.join()


def _watch(reader: int, over: threading.Event) -> None:
    while signals := os.read(reader, 1):
        if signals[0] == signal.SIGINT and not over.wait(_GRACE_S):
            os._exit(INTERRUPTED)
    os.close(reader)
