from __future__ import annotations

import asyncio
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import pytest

from browsers import LARGE, SMALL, lines, opened, press, settled, shown, until
from circuitdb.store import Store
from circuitdb.tui import themes
from circuitdb.tui.app import Browser
from circuitdb.tui.help import Help
from circuitdb.tui.screens import SCREENS
from circuitdb.tui.widgets.tabs import fitted
from stores import addition_store

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_tabs_status_and_footer(shared_store: Path, size: tuple[int, int]) -> None:
    async with opened(shared_store, size=size) as (browser, _):
        found = lines(browser)
        assert found[0].split()[:2] == ["1", "Library"]
        assert found[1].endswith("9 of 9 chosen")
        assert "? Help" in " ".join(found[-1].split())
        assert "q Quit" in " ".join(found[-1].split())


@pytest.mark.parametrize("entry", SCREENS, ids=lambda entry: entry.mode)
async def test_each_screen_opens_by_its_key(shared_store: Path, entry: object) -> None:
    key, mode = entry.key, entry.mode  # type: ignore[attr-defined]
    async with opened(shared_store, key) as (browser, _):
        assert browser.current_mode == mode
        assert mode == browser.screen.MODE  # type: ignore[attr-defined]


def test_tabs_in_little_room() -> None:
    eight = [(str(i), name.lower(), name) for i, name in enumerate(
        ["Library", "Similarity", "Circuit", "Compare", "Containment", "SQL", "Evals", "Notes"], 1
    )]  # fmt: skip

    def at(width: int) -> str:
        return "".join(fitted(eight, "circuit", width))

    assert at(120).rstrip() == " 1 Library  2 Similarity  3 Circuit  4 Compare  5 Containment  6 SQL  7 Evals  8 Notes"
    assert at(80) == "1 Library 2 Similarity 3 Circuit 4 Compare 5 Containment 6 SQL 7 Evals 8 Notes"
    assert at(60) == " 1  2  3 Circuit  4  5  6  7  8 "


async def test_help_lists_every_key_of_the_screen(shared_store: Path) -> None:
    async with opened(shared_store, size=(100, 70)) as (browser, pilot):
        wanted = {
            active.binding.key for active in browser.screen.active_bindings.values() if active.binding.description
        }
        await press(browser, pilot, "question_mark")
        helper = browser.screen
        assert isinstance(helper, Help)
        keys = {what: key for key, what in helper.keys}
        assert keys["Choose or drop all circuits below the line"] == "space"
        assert keys["List the keys of this screen"] == "?, f1"
        assert sum(len(key.split(", ")) for key in keys.values()) >= len(wanted)
        text = shown(browser)
        assert "Keys of Library" in text
        for what in keys:
            assert what in text
        await press(browser, pilot, "escape")
        assert not isinstance(browser.screen, Help)


async def test_themes_go_round(shared_store: Path) -> None:
    async with opened(shared_store) as (browser, pilot):
        seen = []
        for _ in range(4):
            await press(browser, pilot, "t")
            seen.append(browser.theme)
        assert seen == [themes.LIGHT, "high-contrast", themes.DARK, themes.LIGHT]
        assert themes.after("nord") == themes.DARK


async def test_without_colour_everything_is_still_said(shared_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(shared_store) as (browser, _):
        assert browser.no_color
        styles = {segment.style for strip in browser.screen._compositor.render_strips() for segment in strip}
        colours = {style.color.triplet for style in styles if style is not None and style.color is not None}
        assert all(triplet is None or len(set(triplet)) == 1 for triplet in colours)  # greys
        assert "[x] tiny" in shown(browser)


@pytest.mark.parametrize("size", [(59, 24), (80, 14), (30, 5)])
async def test_a_terminal_that_is_too_small(shared_store: Path, size: tuple[int, int]) -> None:
    async with opened(shared_store, size=size) as (browser, pilot):
        told = " ".join(shown(browser).split())
        assert told == "circuitdb needs a terminal of 60 columns and 15 lines or more."
        await pilot.resize_terminal(60, 15)
        await settled(browser, pilot)
        assert "[x] tiny" in shown(browser)


async def test_a_missing_file_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "c.duckdb"
    async with opened(path) as (browser, pilot):
        assert "Waiting for the database" in shown(browser)
        assert "make one with `circuitdb ingest`" in " ".join(shown(browser).split())
        assert lines(browser)[-1].split() == ["?", "Help", "q", "Quit"]
        Store(path).create()
        await until(pilot, lambda: browser.problem is not None and "no circuit yet" in browser.problem[0])
        await settled(browser, pilot)
        assert "circuitdb ingest --db" in shown(browser)
        addition_store(path, digits=1)
        await until(pilot, lambda: browser.problem is None)
        await settled(browser, pilot)
        assert "[x] tiny" in shown(browser)
        await press(browser, pilot, "space")  # the tree has the focus
        assert browser.selection.circuits == ()
        path.unlink()
        await until(pilot, lambda: browser.problem is not None)
        await settled(browser, pilot)
        assert "Waiting for the database" in shown(browser)


async def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "c.duckdb"
    path.write_text("not a database\n" * 1000)
    async with opened(path) as (browser, _):
        assert "This file can't be read" in shown(browser)
        assert "is no DuckDB file" in " ".join(shown(browser).split())


async def test_a_newer_schema(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "c.duckdb", digits=1)
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO schema_version (version, name) VALUES (999, 'later')")
    async with opened(path) as (browser, _):
        assert "written by a newer circuitdb" in " ".join(shown(browser).split())
        assert "upgrade circuitdb to read it" in " ".join(shown(browser).split())


async def test_a_locked_file_is_told_and_opens_by_itself(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "c.duckdb", digits=1)
    holder = duckdb.connect(str(path))
    async with opened(path, timeout=0.1) as (browser, pilot):
        assert "The database is in use" in shown(browser)
        holder.close()
        await until(pilot, lambda: browser.problem is None)
        await settled(browser, pilot)
        assert "[x] tiny" in shown(browser)


async def test_what_is_shown_stays_while_somebody_writes(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "c.duckdb", digits=1)
    async with opened(path, timeout=0.1) as (browser, pilot):
        path.touch()
        with duckdb.connect(str(path)):
            await asyncio.sleep(1.5)
            await pilot.pause()
            assert browser.problem is None
            assert "[x] tiny" in shown(browser)
            await press(browser, pilot, "space", "space")  # asks, and is told
            assert "The database is in use" in shown(browser)
        await until(pilot, lambda: browser.problem is None)
        await settled(browser, pilot)
        assert "1 circuit chosen" in shown(browser)


async def test_the_event_loop_is_never_held_up(shared_store: Path) -> None:
    import time

    async with opened(shared_store) as (browser, pilot):
        answers: list[str] = []

        def slow(_: object) -> str:
            time.sleep(0.5)
            return "done"

        browser.screen.ask(slow, answers.append, group="slow")  # type: ignore[attr-defined]
        await pilot.pause(0.05)
        assert "reading ..." in shown(browser)
        before = time.monotonic()
        await pilot.press("down")
        assert time.monotonic() - before < 0.4
        assert answers == []
        await settled(browser, pilot)
        assert answers == ["done"]


async def test_only_the_last_question_of_a_group_is_answered(shared_store: Path) -> None:
    async with opened(shared_store) as (browser, pilot):
        answers: list[int] = []
        for i in range(5):
            browser.screen.ask(lambda _, i=i: i, answers.append, group="same")  # type: ignore[attr-defined]
        await settled(browser, pilot)
        assert answers == [4]


async def test_a_question_that_fails_pops_up(shared_store: Path) -> None:
    async with opened(shared_store) as (browser, pilot):
        browser.screen.ask(lambda db: db.circuits(task="algebra"), print, group="bad")  # type: ignore[attr-defined]
        await until(pilot, lambda: "There is no task algebra" in " ".join(shown(browser).split()))


async def test_export_of_a_view(shared_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(shared_store, "e") as (browser, pilot):
        (file,) = tmp_path.glob("circuitdb-library-*.svg")
        text = "".join(ElementTree.parse(file).getroot().itertext())
        assert "addition" in text
        await until(pilot, lambda: "Saved as" in shown(browser))


async def test_copy_goes_into_a_file_where_the_terminal_can_not(
    shared_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "linux")
    async with opened(shared_store, "y") as (browser, _):
        (file,) = tmp_path.glob("circuitdb-library-*.tsv")
        assert len(file.read_text().splitlines()) == 10
        assert browser.clipboard == ""


async def test_a_folder_that_can_not_be_written_to(
    shared_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    async with opened(shared_store, "e") as (browser, pilot):
        await until(pilot, lambda: "can't be written" in " ".join(shown(browser).split()))


async def test_the_palette_offers_the_keys_of_the_screen(shared_store: Path) -> None:
    async with opened(shared_store, "n", "ctrl+p") as (browser, pilot):
        await pilot.press(*("space" if c == " " else c for c in "choose all circuits"))
        await pilot.pause(0.5)
        assert "Choose all circuits that are shown" in shown(browser)
        await pilot.press("enter")
        await pilot.pause(0.5)
        await pilot.press("enter")
        await settled(browser, pilot)
        assert len(browser.selection.circuits) == 9


async def test_quit(shared_store: Path) -> None:
    async with opened(shared_store, "slash", "q") as (browser, pilot):
        assert browser.is_running  # typed into the filter
        await pilot.press("escape", "q")
        await pilot.pause()
        assert browser._exit


def test_the_file_is_named_from_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert Browser("/home/someone/a/c.duckdb").shown_path == "~/a/c.duckdb"
    assert Browser("/tmp/c.duckdb").shown_path == "/tmp/c.duckdb"
