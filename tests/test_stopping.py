from __future__ import annotations

import threading
from pathlib import Path

import duckdb
import pytest

import circuitdb
from circuitdb.stopping import Stop, running, wanted

ENDLESS = "SELECT count(*) FROM range(1000000000) AS a, range(1000000) AS b WHERE (a.range * b.range) % 7 = 3"


def test_a_statement_is_interrupted_from_another_thread(shared_store: Path) -> None:
    stop, raised = Stop(), threading.Event()

    def ask() -> None:
        with stop.heeded(), pytest.raises(duckdb.InterruptException):
            circuitdb.open(shared_store).sql(ENDLESS)
        raised.set()

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    for _ in range(200):
        stop.now()
        if raised.wait(0.1):
            break
    assert raised.is_set()
    thread.join(10)


def test_no_statement_begins_after_it(shared_store: Path) -> None:
    stop = Stop()
    stop.now()
    with stop.heeded():
        assert wanted()
        with pytest.raises(duckdb.InterruptException):
            circuitdb.open(shared_store).circuits()
    assert not wanted()
    assert len(circuitdb.open(shared_store).circuits()) == 9


def test_without_a_stop_nothing_is_held() -> None:
    with duckdb.connect() as connection, running(connection):
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_what_has_ended_is_not_interrupted() -> None:
    stop = Stop()
    with duckdb.connect() as connection:
        with stop.heeded(), running(connection):
            pass
        stop.now()
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
        assert not stop._connections
