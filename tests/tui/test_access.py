from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import duckdb
import numpy as np
import pytest

from circuitdb.errors import LockedDatabase, MissingDatabase, UsageError
from circuitdb.queries.extent import Extent
from circuitdb.store import Store
from circuitdb.tui.access import AT_ONCE, Access
from stores import SHAPE, addition_store, circuit

pytestmark = pytest.mark.anyio


async def test_a_question_is_asked_in_another_thread(shared_store: Path) -> None:
    access = Access(shared_store)
    rows, thread = await access.ask(lambda db: (len(db.circuits()), threading.get_ident()))
    assert rows == 9
    assert thread != threading.get_ident()
    assert not access.busy


async def test_errors_arrive_where_it_was_asked(shared_store: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no task algebra"):
        await Access(shared_store).ask(lambda db: db.circuits(task="algebra"))
    with pytest.raises(MissingDatabase):
        await Access(tmp_path / "none.duckdb").ask(lambda db: db.circuits())


async def test_a_locked_file_is_waited_for(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "c.duckdb", digits=1)
    holder = duckdb.connect(str(path))
    with pytest.raises(LockedDatabase):
        await Access(path, timeout=0.1).ask(lambda db: db.circuits())
    asked = asyncio.ensure_future(Access(path, timeout=20).ask(lambda db: len(db.circuits())))
    await asyncio.sleep(0.2)
    assert not asked.done()
    holder.close()
    assert await asked == 1


async def test_few_at_once_and_none_that_nobody_wants(shared_store: Path) -> None:
    access, gate, begun = Access(shared_store), threading.Event(), []

    def slow(number: int) -> int:
        begun.append(number)
        gate.wait(20)
        return number

    asked = [asyncio.ensure_future(access.ask(lambda _, i=i: slow(i))) for i in range(AT_ONCE + 2)]  # type: ignore[misc]
    while len(begun) < AT_ONCE:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    assert sorted(begun) == list(range(AT_ONCE))
    asked[0].cancel()  # it runs on, and its answer is dropped
    asked[AT_ONCE].cancel()  # it never runs
    await asyncio.sleep(0)
    assert access.busy
    gate.set()
    assert await asyncio.gather(*asked[1:AT_ONCE], asked[-1]) == [*range(1, AT_ONCE), AT_ONCE + 1]
    assert AT_ONCE not in begun


async def test_a_statement_that_nobody_waits_for_is_interrupted(shared_store: Path) -> None:
    access = Access(shared_store)
    endless = "SELECT count(*) FROM range(1000000000) AS a, range(1000000) AS b WHERE (a.range * b.range) % 7 = 3"
    asked = asyncio.ensure_future(access.ask(lambda db: db.sql(endless)))
    await asyncio.sleep(0.5)
    assert access.busy
    asked.cancel()
    async with asyncio.timeout(20):
        while access.busy:
            await asyncio.sleep(0.01)
    assert await access.ask(lambda db: len(db.circuits())) == 9


async def test_a_wait_for_the_lock_is_given_up(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "c.duckdb", digits=1)
    access = Access(path, timeout=600)
    with duckdb.connect(str(path)):
        asked = asyncio.ensure_future(access.ask(lambda db: db.circuits()))
        await asyncio.sleep(0.3)
        asked.cancel()
        async with asyncio.timeout(20):
            while access.busy:
                await asyncio.sleep(0.01)


async def test_news_are_told_once(tmp_path: Path) -> None:
    path = tmp_path / "c.duckdb"
    access = Access(path)
    with pytest.raises(MissingDatabase):
        await access.news()
    addition_store(path, digits=1)
    assert await access.news() == Extent(1, 1, 1, 0, 0)
    assert await access.news() is None
    Store(path).write(circuit("9+9"), np.ones(SHAPE.n_edges, np.float32))
    assert await access.news() == Extent(2, 2, 1, 0, 0)
    path.touch()
    assert await access.news() is None
    access.forget()
    assert await access.news() == Extent(2, 2, 1, 0, 0)
    path.rename(tmp_path / "away")
    with pytest.raises(MissingDatabase):
        await access.news()
    (tmp_path / "away").rename(path)
    assert await access.news() == Extent(2, 2, 1, 0, 0)  # the same file, after a time without
