from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.app import ComposeResult
from textual.pilot import Pilot
from textual.widgets import Input, Static

from browsers import opened, press, settled, shown
from circuitdb.errors import UsageError
from circuitdb.queries.database import Database
from circuitdb.tui.app import Browser
from circuitdb.tui.help import Help
from circuitdb.tui.screen import View

pytestmark = pytest.mark.anyio


class Probe(View[int]):
    """Counts the chosen circuits by asking the database, and refuses exactly two."""

    MODE = "probe"
    asked = 0

    def content(self) -> ComposeResult:
        yield Static(id="found")
        yield Input()

    def question(self) -> Callable[[Database], int] | None:
        chosen = self.selection.circuits
        if not chosen:
            return None

        def ask(db: Database) -> int:
            self.asked += 1
            if len(chosen) == 2:
                raise UsageError("Two are too few; choose three.")
            return len(db.circuits(circuits=chosen))

        return ask

    def show(self, answer: int) -> None:
        self.query_one("#found", Static).update(f"found {answer}")

    def text(self) -> str:
        return "" if self.answer is None else f"found\t{self.answer}"


@asynccontextmanager
async def probed(store: Path) -> AsyncIterator[tuple[Browser, Pilot[None], Probe]]:
    async with opened(store) as (browser, pilot):
        probe = Probe()
        browser.add_mode("probe", lambda: probe)
        await browser.switch_mode("probe")
        await settled(browser, pilot)
        yield browser, pilot, probe


async def test_it_asks_about_the_selection_and_shows_the_answer(shared_store: Path) -> None:
    async with probed(shared_store) as (browser, pilot, probe):
        assert "found 9" in shown(browser)
        assert isinstance(browser.focused, Input)
        browser.selection = browser.selection.only([1, 2, 3])
        await settled(browser, pilot)
        assert "found 3" in shown(browser)
        assert probe.asked == 2
        browser.selection = browser.selection.at(0.5)  # it does not depend on alpha
        await settled(browser, pilot)
        assert probe.asked == 2


async def test_nothing_chosen_and_a_failure_are_told(shared_store: Path) -> None:
    async with probed(shared_store) as (browser, pilot, probe):
        browser.selection = browser.selection.only([])
        await settled(browser, pilot)
        assert "Nothing is chosen" in shown(browser)
        assert "Press 1 for the library" in shown(browser)
        assert "found" not in shown(browser)
        browser.selection = browser.selection.only([1, 2])
        await settled(browser, pilot)
        assert "Two are too few; choose three." in shown(browser)
        browser.selection = browser.selection.only([1])
        await settled(browser, pilot)
        assert "found 1" in shown(browser)
        assert probe.failure is None


async def test_unseen_it_asks_nothing(shared_store: Path) -> None:
    async with probed(shared_store) as (browser, pilot, probe):
        browser.action_open("library")
        await settled(browser, pilot)
        browser.selection = browser.selection.only([1])
        await settled(browser, pilot)
        browser.selection = browser.selection.only([1, 2, 3, 4])
        await settled(browser, pilot)
        assert probe.asked == 1
        await browser.switch_mode("probe")
        await settled(browser, pilot)
        assert probe.asked == 2
        assert "found 4" in shown(browser)


async def test_quick_changes_are_asked_about_once(shared_store: Path) -> None:
    async with probed(shared_store) as (browser, pilot, probe):
        for n in (3, 4, 5, 6, 7):
            browser.selection = browser.selection.only(range(1, n + 1))
            await pilot.pause()
        await settled(browser, pilot)
        assert "found 7" in shown(browser)
        assert probe.asked <= 3


async def test_copy_and_help(shared_store: Path) -> None:
    async with probed(shared_store) as (browser, pilot, probe):
        probe.action_copy()
        assert browser.clipboard == "found\t9"
        await press(browser, pilot, "f1")  # from within the field, where letters are text
        assert isinstance(browser.screen, Help)
        assert ("f1", "List the keys of this screen") in browser.screen.keys
        assert "Probe" in shown(browser)
