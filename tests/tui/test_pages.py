from __future__ import annotations

import asyncio

import numpy as np
import pyarrow as pa
import pytest
from textual.app import App, ComposeResult

from browsers import lines, until
from circuitdb.tui.widgets.pages import PAGE, Column, Pages

pytestmark = pytest.mark.anyio
COLUMNS = [Column("edge", "edge", 8), Column("score", "score", 7, right=True, form="{:+.2f}".format)]


class Bare(App[None]):
    """Pages alone over `n` rows made on demand; what was fetched, and what was said."""

    def __init__(self, n: int = 1_600_000) -> None:
        super().__init__()
        self.n = n
        self.fetched: list[tuple[int, int]] = []
        self.said: list[list[object]] = []
        self.failing = False

    def compose(self) -> ComposeResult:
        yield Pages()

    def on_mount(self) -> None:
        self.pages.show(COLUMNS, self.n, self.fetch)

    async def fetch(self, offset: int, limit: int) -> pa.Table:
        self.fetched.append((offset, limit))
        await asyncio.sleep(0.01)
        if self.failing:
            raise ValueError("no more")
        places = np.arange(offset, min(self.n, offset + limit))
        return pa.table({"edge": [f"e{i}" for i in places], "score": [None if i == 1 else i / 4 for i in places]})

    @property
    def pages(self) -> Pages:
        return self.query_one(Pages)

    def on_pages_moved(self, message: Pages.Moved) -> None:
        self.said.append(["moved", message.place, message.row and message.row["edge"]])

    def on_pages_picked(self, message: Pages.Picked) -> None:
        self.said.append(["picked", message.place, message.row["edge"]])

    def on_pages_head_picked(self, message: Pages.HeadPicked) -> None:
        self.said.append(["head", message.column])

    def on_pages_failed(self, message: Pages.Failed) -> None:
        self.said.append(["failed", str(message.error)])


async def test_rows_in_sight_are_fetched_and_no_others() -> None:
    app = Bare()
    async with app.run_test(size=(30, 10)) as pilot:
        await until(pilot, lambda: app.pages.row(0) is not None)
        await pilot.pause()
        assert lines(app)[:4] == ["edge        score", "e0          +0.00", "e1", "e2          +0.50"]
        assert app.fetched == [(0, PAGE)]
        await pilot.press("end")
        await until(pilot, lambda: app.pages.row(app.n - 1) is not None)
        await pilot.pause()
        assert app.pages.cursor == app.n - 1
        assert lines(app)[9].split()[:2] == ["e1599999", "+39999…"]
        assert len(app.fetched) == 2


async def test_a_page_is_asked_once_and_again_when_it_has_been_dropped() -> None:
    app = Bare()
    async with app.run_test(size=(30, 10)) as pilot:
        for _ in range(3):
            await pilot.press("down", "pagedown", "up", "pageup", "home")
            await pilot.pause(0.1)
        assert app.fetched == [(0, PAGE)]
        for page in range(1, 70):
            app.pages.cursor = page * PAGE + 5
            await until(pilot, lambda: app.pages.row(app.pages.cursor) is not None)
        await pilot.press("home")
        await until(pilot, lambda: app.pages.row(0) is not None)
        assert app.fetched.count((0, PAGE)) == 2


async def test_what_a_quick_scroll_passes_is_not_fetched() -> None:
    app = Bare()
    async with app.run_test(size=(30, 10)) as pilot:
        await until(pilot, lambda: app.pages.row(0) is not None)
        for page in range(1, 50):
            app.pages.cursor = page * 1000
        await until(pilot, lambda: app.pages.row(49_000) is not None)
        assert len(app.fetched) <= 3


async def test_the_cursor_tells_its_row() -> None:
    app = Bare(n=30)
    async with app.run_test(size=(30, 10)) as pilot:
        await until(pilot, lambda: app.pages.row(0) is not None)
        await pilot.press("down", "down", "enter")
        assert app.said[-2:] == [["moved", 2, "e2"], ["picked", 2, "e2"]]
        await pilot.press("up", "up", "up", "up")
        assert app.pages.cursor == 0
        await pilot.press("pagedown")
        assert app.pages.cursor == 9
        await pilot.press("end", "down")
        assert app.pages.cursor == 29
        assert lines(app)[9].startswith("e29")


async def test_the_mouse() -> None:
    app = Bare(n=30)
    async with app.run_test(size=(30, 10)) as pilot:
        await until(pilot, lambda: app.pages.row(0) is not None)
        await pilot.click(Pages, offset=(2, 4))
        assert app.said[-1] == ["moved", 3, "e3"]
        await pilot.click(Pages, offset=(2, 4))
        assert app.said[-1] == ["picked", 3, "e3"]
        await pilot.click(Pages, offset=(11, 0))
        assert app.said[-1] == ["head", "score"]


async def test_a_failure_is_told() -> None:
    app = Bare()
    app.failing = True
    async with app.run_test(size=(30, 10)) as pilot:
        await until(pilot, lambda: bool(app.said))
        assert app.said == [["failed", "no more"]]
        assert lines(app)[1] == "..."


async def test_the_text_of_what_is_in_sight() -> None:
    app = Bare(n=3)
    async with app.run_test(size=(30, 10)) as pilot:
        await until(pilot, lambda: app.pages.row(0) is not None)
        assert app.pages.text() == "edge\tscore\ne0\t+0.00\ne1\t\ne2\t+0.50"
        app.pages.show(COLUMNS, 0, app.fetch)
        await pilot.press("down", "enter", "end")
        assert app.pages.text() == "edge\tscore"


def test_cells_keep_their_width() -> None:
    column = Column("a", "a", 5)
    assert column.text("a\nb") == "a b  "
    assert column.text("abcdefg") == "abcd…"
    assert Column("a", "a", 5, right=True).text(None) == "     "


@pytest.mark.parametrize(
    ("text", "right", "cell"),
    [
        ("abc", False, "abc     "),
        ("abc", True, "     abc"),
        ("abcdefghi", False, "abcdefg…"),
        ("日本", False, "日本    "),  # each takes two columns
        ("日本語文字", False, "日本語 …"),
        ("日本語文字", True, "日本語 …"),
        ("a\x1b[1m\n\tb", False, "a [1m  b"),
    ],
)
def test_a_cell_takes_its_columns_and_no_more(text: str, right: bool, cell: str) -> None:
    assert Column("x", "x", 8, right=right).text(text) == cell
