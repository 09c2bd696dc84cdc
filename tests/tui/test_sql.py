"""SQL: run, stopped, paged, wrong, completed, remembered, saved, written into files."""

from __future__ import annotations

import csv
from pathlib import Path

import duckdb
import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from browsers import LARGE, SMALL, lines, opened, press, settled, shown, until
from circuitdb.tui.app import Browser
from circuitdb.tui.dialogs import Choice, Line
from circuitdb.tui.help import Help
from circuitdb.tui.screens.sql import SQL
from circuitdb.tui.shelf import Shelf
from circuitdb.tui.widgets.pages import Pages
from circuitdb.tui.widgets.sql_editor import SqlEditor

pytestmark = pytest.mark.anyio
ENDLESS = "SELECT sum(a.i * b.i) FROM range(10000000) AS a(i), range(10000000) AS b(i)"


def screen(browser: Browser) -> SQL:
    assert isinstance(browser.screen, SQL)
    return browser.screen


def editor(browser: Browser) -> SqlEditor:
    return screen(browser).query_one(SqlEditor)


def said(browser: Browser) -> str:
    return str(screen(browser).query_one("#told", Static).content)


async def run(browser: Browser, pilot: Pilot[None], statement: str) -> None:
    editor(browser).load_text(statement)
    await press(browser, pilot, "f5")


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_the_first_statement_runs(shared_store: Path, size: tuple[int, int]) -> None:
    async with opened(shared_store, "6", "f5", size=size) as (browser, pilot):
        await until(pilot, lambda: "3+3" in shown(browser))
        assert said(browser).startswith("9 rows in ")
        place = next(i for i, line in enumerate(lines(browser)) if line.split() == ["subtask", "accuracy"])
        cells = [line.split() for line in lines(browser)[place + 1 : place + 10]]
        assert cells[:2] == [["1+1", "0.5"], ["1+2", "0.333333"]]
        assert cells[8] == ["3+3", "0.166667"]
        assert screen(browser).text().splitlines()[:2] == ["subtask\taccuracy", "1+1\t0.5"]
        assert editor(browser).has_focus


async def test_escape_leaves_the_text_before_there_are_rows(shared_store: Path) -> None:
    async with opened(shared_store, "6", "escape", "1") as (browser, pilot):
        assert browser.current_mode == "library"
        await press(browser, pilot, "6", "escape")
        assert editor(browser).has_focus
        assert "1" not in editor(browser).text


async def test_odd_cells(shared_store: Path) -> None:
    statement = (
        "SELECT NULL AS n, 'nan'::DOUBLE AS f, '' AS e, '[red]x' || chr(10) || chr(27) AS t, [1, NULL] AS l,"
        " true AS b, 1.5::FLOAT AS f, DATE '2026-01-02' AS d, 170141183460469231731687303715884105727 AS h"
    )
    async with opened(shared_store, "6", size=LARGE) as (browser, pilot):
        await run(browser, pilot, statement)
        await until(pilot, lambda: "2026-01-02" in shown(browser))
        assert "[red]x\\n\\x1b" in shown(browser)
        assert "170141183460469231731687303715884105727" in shown(browser)
        await press(browser, pilot, "escape", "enter")
        assert said(browser).splitlines() == [
            "Row 1", "n: NULL", "f: nan", "e: ", "t: [red]x\\n\\x1b", "l: [1, null]", "b: true", "f_1: 1.5",
            "d: 2026-01-02", "h: 170141183460469231731687303715884105727",
        ]  # fmt: skip


async def test_millions_of_rows_are_paged(shared_store: Path) -> None:
    async with opened(shared_store, "6") as (browser, pilot):
        await run(browser, pilot, "SELECT i, i * 2 AS twice FROM range(2000000) AS r(i)")
        assert said(browser).startswith("2,000,000 rows in ")
        await press(browser, pilot, "escape", "end")
        await until(pilot, lambda: "1999999  3999998" in shown(browser))
        assert screen(browser).query_one(Pages).cursor == 1_999_999
        with duckdb.connect(str(shared_store)) as writer:  # refused while anybody reads
            assert writer.execute("SELECT 1").fetchone() == (1,)


async def test_a_long_statement_is_stopped(shared_store: Path) -> None:
    async with opened(shared_store, "6") as (browser, pilot):
        editor(browser).load_text(ENDLESS)
        await pilot.press("f5")
        await until(pilot, lambda: said(browser).startswith("Running for ") and " 0.0 s" not in said(browser))
        await pilot.press("escape")
        assert said(browser) == "Stopped."
        await until(pilot, lambda: not browser.access.busy)  # DuckDB has really ended
        await run(browser, pilot, "SELECT 42 AS answer")
        assert said(browser).startswith("1 row in ")


@pytest.mark.parametrize(
    ("statement", "words", "place"),
    [
        ("SELECT 1,\n  subtak\nFROM circuits", 'Referenced column "subtak" not found', (1, 2)),
        ("SELECT *\nFROM circuitz", 'Did you mean "circuit"?', (1, 5)),
        ("DELETE FROM note", "DELETE is refused", (0, 16)),
        ("SELECT * FROM 'x.csv'", "it names a file", (0, 21)),
        ("SELECT 'open", "close it", (0, 12)),
        ("", "There is no statement to run", (0, 0)),
    ],
)
async def test_what_is_wrong_is_told_with_its_place(
    shared_store: Path, statement: str, words: str, place: tuple[int, int]
) -> None:
    async with opened(shared_store, "6") as (browser, pilot):
        editor(browser).load_text(statement)
        editor(browser).move_cursor(editor(browser).document.end)
        await press(browser, pilot, "f5")
        assert words in said(browser)
        assert words.split()[0] in shown(browser)
        assert editor(browser).cursor_location == place
        assert browser.problem is None


async def test_the_statement_under_the_cursor_runs_or_what_is_marked(shared_store: Path) -> None:
    async with opened(shared_store, "6") as (browser, pilot):
        editor(browser).load_text("SELECT 1 AS first;\nSELECT 2 AS second;")
        editor(browser).move_cursor((1, 3))
        await press(browser, pilot, "f5")
        await until(pilot, lambda: " second" in "\n".join(lines(browser)[-13:]))
        found = screen(browser).spool
        assert found is not None
        assert found.schema.names == ["second"]
        editor(browser).selection = type(editor(browser).selection)((0, 0), (0, 17))
        await press(browser, pilot, "ctrl+j")
        found = screen(browser).spool
        assert found is not None
        assert found.schema.names == ["first"]


async def test_words_are_offered_and_taken(shared_store: Path) -> None:
    async with opened(shared_store, "6") as (browser, pilot):
        editor(browser).load_text("")
        await press(browser, pilot, *"FRO")
        assert editor(browser).offered[0].text == "from"
        assert "> from  keyword" in shown(browser)
        await press(browser, pilot, "tab", "space", *"circ")
        assert editor(browser).text == "FROM circ"
        words = [word.text for word in editor(browser).offered]
        assert words[:2] == ["circuit", "circuits"]
        await press(browser, pilot, "down", "enter")
        assert editor(browser).text == "FROM circuits"
        assert editor(browser).offered == []
        await press(browser, pilot, "space", *"as c where c.acc".replace(" ", "_"))
        editor(browser).load_text("FROM circuits AS c WHERE c")
        editor(browser).move_cursor((0, 26))
        await press(browser, pilot, "full_stop", *"acc")
        assert editor(browser).offered[0].text == "accuracy"
        await press(browser, pilot, "escape")
        assert editor(browser).offered == []
        assert editor(browser).has_focus
        await press(browser, pilot, "ctrl+@", "tab")
        assert editor(browser).text == "FROM circuits AS c WHERE c.accuracy"
        await press(browser, pilot, "enter")
        assert editor(browser).text.endswith("accuracy\n")


async def test_a_word_is_taken_by_the_mouse(shared_store: Path) -> None:
    async with opened(shared_store, "6") as (browser, pilot):
        editor(browser).load_text("")
        await press(browser, pilot, *"circ")
        await pilot.click("#offered", offset=(4, 1))
        assert editor(browser).text == "circuits"


async def test_keywords_and_tables_are_coloured(shared_store: Path) -> None:
    async with opened(shared_store, "6") as (browser, _):
        editor(browser).load_text("SELECT 'a' -- b\nFROM circuits")
        styles = {
            span: str(style.style)
            for line in (0, 1)
            for style in editor(browser).get_line(line).spans
            for span in [editor(browser).get_line(line).plain[style.start : style.end]]
        }
        assert set(styles) == {"SELECT", "'a'", "-- b", "FROM", "circuits"}
        assert styles["SELECT"] == styles["FROM"]
        assert "bold" in styles["SELECT"]
        assert "underline" in styles["circuits"]
        assert "italic" in styles["-- b"]


async def test_the_history_is_kept_across_runs(shared_store: Path) -> None:
    async with opened(shared_store, "6") as (browser, pilot):
        await run(browser, pilot, "SELECT 1 AS one")
        await run(browser, pilot, "SELECT 2 AS two")
        await run(browser, pilot, "SELECT wrong")
    assert Shelf().history == ["SELECT 1 AS one", "SELECT 2 AS two", "SELECT wrong"]
    async with opened(shared_store, "6") as (browser, pilot):
        assert editor(browser).text == "SELECT wrong"
        await press(browser, pilot, "ctrl+up")
        assert editor(browser).text == "SELECT 2 AS two"
        await press(browser, pilot, "ctrl+up", "ctrl+up", "ctrl+up")
        assert editor(browser).text == "SELECT 1 AS one"
        await press(browser, pilot, "ctrl+down", "ctrl+down", "ctrl+down", "ctrl+down")
        assert editor(browser).text == "SELECT wrong"
        await press(browser, pilot, "f4")
        assert isinstance(browser.screen, Choice)
        await press(browser, pilot, *"two", "enter")
        assert editor(browser).text == "SELECT 2 AS two"


async def test_statements_are_saved_and_taken_again(shared_store: Path) -> None:
    async with opened(shared_store, "6") as (browser, pilot):
        await press(browser, pilot, "f3")
        assert "No statement is saved yet" in said(browser)
        editor(browser).load_text("SELECT 7 AS seven")
        await press(browser, pilot, "f2")
        assert isinstance(browser.screen, Line)
        await press(browser, pilot, *"lucky", "enter")
        assert "lucky.sql; F3 takes it again." in said(browser)
        editor(browser).load_text("")
        await press(browser, pilot, "f3", "enter")
        assert editor(browser).text == "SELECT 7 AS seven\n"
        await press(browser, pilot, "f2", "slash", "enter")
        assert "'/' is no name for a statement" in said(browser)


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
async def test_rows_are_written_into_a_file(
    shared_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened(shared_store, "6") as (browser, pilot):
        await press(browser, pilot, "f8")
        assert "There are no rows to write yet" in said(browser)
        await run(browser, pilot, "SELECT i, 'a,b' AS t FROM range(12000) AS r(i)")
        await press(browser, pilot, "f8")
        browser.screen.query_one(Input).value = f"out.{ending}"
        await press(browser, pilot, "enter")
        assert said(browser) == f"Written into out.{ending}."
        rows = duckdb.execute(f"FROM 'out.{ending}'").fetchall() if ending != "json" else None
        if rows is not None:
            assert rows == [(i, "a,b") for i in range(12_000)]
        await press(browser, pilot, "f8")
        browser.screen.query_one(Input).value = f"out.{ending}"
        await press(browser, pilot, "enter")
        assert said(browser) == f"out.{ending} exists already; name another file."
    if ending == "csv":
        with open("out.csv", newline="") as file:
            assert list(csv.reader(file))[12_000] == ["11999", "a,b"]


async def test_a_history_that_cannot_be_written_keeps_nothing_from_running(
    shared_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    async with opened(shared_store, "6", "f5") as (browser, pilot):
        assert said(browser).startswith("9 rows in ")
        await press(browser, pilot, "f2", *"a", "enter")
        assert "can't be written" in said(browser)


async def test_the_theme_and_the_help(shared_store: Path) -> None:
    async with opened(shared_store, "6", "f1") as (browser, pilot):
        assert isinstance(browser.screen, Help)
        text = dict(browser.screen.keys).values()
        for words in ("Run the statement under the cursor, or what is marked", "Take a saved statement", "Offer words"):
            assert words in text
        await press(browser, pilot, "escape")
        dark = str(editor(browser).get_line(0).spans[0].style)
        browser.theme = "textual-light"
        await settled(browser, pilot)
        assert str(editor(browser).get_line(0).spans[0].style) != dark
