"""The notes: listed, written, changed, deleted, by keys and by mouse; what can't be saved is not lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from textual.pilot import Pilot
from textual.widgets import Input, TextArea

from browsers import LARGE, SMALL, lines, opened, press, settled, shown, until
from circuitdb import notes
from circuitdb.queries import Database
from circuitdb.store import Store
from circuitdb.tui.app import Browser
from circuitdb.tui.dialogs import Confirm
from circuitdb.tui.screens.notes import Notes
from circuitdb.tui.widgets.note_form import NoteForm
from circuitdb.tui.widgets.pages import Pages
from stores import SHAPE, circuit

pytestmark = pytest.mark.anyio


@pytest.fixture
def empty(shared_store: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(shared_store, tmp_path / "c.duckdb"))


@pytest.fixture
def path(empty: Path) -> Path:
    notes.add(empty, "copies the first digit", circuit=1, about="a0.h1")
    notes.add(empty, "weak:\nfew examples", circuit=5)
    notes.add(empty, "[red]in[/red] general 日本", about="m0->logits")
    return empty


def told(path: Path) -> list[tuple[object, ...]]:
    return [(r["note_id"], r["circuit_id"], r["node"], r["edge"], r["text"]) for r in Database(path).notes().rows()]


async def typed(pilot: Pilot[None], text: str) -> None:
    for letter in text:
        await pilot.press({" ": "space", "\n": "enter"}.get(letter, letter))


async def in_line(browser: Browser, pilot: Pilot[None], number: int) -> None:
    """Wait until the whole note of this number is shown."""
    await until(pilot, lambda: f"Note {number}  " in shown(browser))


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_the_notes_are_listed_and_the_one_in_the_line_is_whole(path: Path, size: tuple[int, int]) -> None:
    async with opened(path, "8", size=size) as (browser, pilot):
        await in_line(browser, pilot, 1)
        found = [" ".join(line.split()[:-1]) for line in lines(browser)[4:7]]
        assert found[0].startswith("1 1+1 a0.h1 copies the first d")
        assert found[1].startswith("2 2+2 weak: few examples")
        assert found[2].startswith("3 m0->logits [red]in[/red]")
        assert "a0.h1, tiny, addition, 1+1, eap-ig, circuit 1" in shown(browser)
        await press(browser, pilot, "down")
        await in_line(browser, pilot, 2)
        assert "weak:\n few examples" in shown(browser)
        assert isinstance(browser.screen, Notes)
        copied = browser.screen.text().splitlines()
        assert [line.split("\t")[:5] for line in copied[1:]] == [
            ["1", "1", "1+1", "a0.h1", "copies the first digit"],
            ["2", "5", "2+2", "", "weak: few examples"],
            ["3", "", "", "m0->logits", "[red]in[/red] general 日本"],
        ]


async def test_a_note_is_written_and_its_circuit_has_a_badge(empty: Path) -> None:
    async with opened(empty, "n", "down", "down", "space", "8") as (browser, pilot):
        assert "There is no note yet" in shown(browser)
        await press(browser, pilot, "n")
        assert isinstance(browser.screen, NoteForm)
        assert browser.screen.query_one("#circuit", Input).value == "1"
        await typed(pilot, "two q\nlines")
        await press(browser, pilot, "shift+tab")
        await typed(pilot, "a0.h1")
        await press(browser, pilot, "ctrl+s")
        assert told(empty) == [(1, 1, "a0.h1", None, "two q\nlines")]
        await in_line(browser, pilot, 1)
        await press(browser, pilot, "1")
        await until(pilot, lambda: "1+1 *1 " in shown(browser))  # no room for more
        await pilot.resize_terminal(*LARGE)
        await until(pilot, lambda: "1+1 (1 note)" in shown(browser))
        assert browser.catalogue.badge(1) == "(1 note)"
        assert browser.catalogue.badge(2) == browser.catalogue.badge(99) == ""


async def test_words_are_changed(path: Path) -> None:
    async with opened(path, "8") as (browser, pilot):
        await in_line(browser, pilot, 1)
        await press(browser, pilot, "down", "enter")
        assert isinstance(browser.screen, NoteForm)
        words = browser.screen.query_one(TextArea)
        assert words.text == "weak:\nfew examples"
        words.load_text("strong")
        await press(browser, pilot, "ctrl+s")
        assert told(path)[1] == (2, 5, None, None, "strong")
        await in_line(browser, pilot, 2)
        assert ", changed 20" in shown(browser)
        await press(browser, pilot, "w", "escape")
        assert told(path)[1] == (2, 5, None, None, "strong")


async def test_what_cannot_be_saved_is_shown_again_with_the_reason(empty: Path) -> None:
    async with opened(empty, "8", "n") as (browser, pilot):
        for circuit_, about, words, said in (
            ("99", "", "kept", "There is no circuit 99"),
            ("one", "", "kept", "A circuit is given by its number, such as 3, not as 'one'."),
            ("1", "a9.h1", "kept", "There is no node a9.h1 in circuit 1"),
            ("1", "", " ", "The note has no words"),
        ):
            form = browser.screen
            assert isinstance(form, NoteForm)
            form.query_one("#circuit", Input).value = circuit_
            form.query_one("#about", Input).value = about
            form.query_one(TextArea).load_text(words)
            await press(browser, pilot, "ctrl+s")
            again = browser.screen
            assert isinstance(again, NoteForm)
            assert again is not form
            assert again.refused.startswith(said)
            assert said in shown(browser).replace("\n", " ")
            assert again.query_one(TextArea).text == words
        await press(browser, pilot, "escape")
        assert isinstance(browser.screen, Notes)
        assert told(empty) == []


async def test_a_note_is_deleted_after_a_question(path: Path) -> None:
    async with opened(path, "8") as (browser, pilot):
        await in_line(browser, pilot, 1)
        await press(browser, pilot, "d")
        assert isinstance(browser.screen, Confirm)
        assert "Delete note 1?" in shown(browser)
        await press(browser, pilot, "escape")
        assert len(told(path)) == 3
        await press(browser, pilot, "d", "y")
        assert [row[0] for row in told(path)] == [2, 3]
        await in_line(browser, pilot, 2)


async def test_only_those_of_the_chosen_circuits(path: Path) -> None:
    async with opened(path, "n", "8") as (browser, pilot):
        await in_line(browser, pilot, 1)
        assert lines(browser)[2].strip() == "3 notes"
        await press(browser, pilot, "o")
        assert "Press o for all notes" in shown(browser)
        browser.selection = browser.selection.only((5, 6))
        await settled(browser, pilot)
        await in_line(browser, pilot, 2)
        assert lines(browser)[2].strip() == "1 note on the chosen circuits"
        browser.selection = browser.selection.only((6,))
        await settled(browser, pilot)
        assert "There is no note on the chosen circuits" in shown(browser)
        await press(browser, pilot, "o")
        assert lines(browser)[2].strip() == "3 notes"


async def test_a_note_written_elsewhere_appears(path: Path) -> None:
    async with opened(path, "8") as (browser, pilot):
        notes.add(path, "from the command line", circuit=9)
        await until(pilot, lambda: "4 notes" in lines(browser)[2])


async def test_the_circuit_of_a_note_is_looked_at_and_a_click_moves(path: Path) -> None:
    async with opened(path, "8") as (browser, pilot):
        await in_line(browser, pilot, 1)
        await pilot.click(Pages, offset=(4, 2))
        await in_line(browser, pilot, 2)
        await press(browser, pilot, "c")
        assert browser.selection.circuit == 5


async def test_a_dozen_notes_and_a_circuit_that_was_replaced(empty: Path) -> None:
    for number in range(12):
        notes.add(empty, f"note {number}", circuit=1 + number % 9)
    Store(empty).write(circuit("1+1", {"digits_a": 1, "digits_b": 1}), np.ones(SHAPE.n_edges, np.float32), replace=True)
    async with opened(empty, "8", "end") as (browser, pilot):
        await in_line(browser, pilot, 12)
        rows = {row[0]: row[1] for row in told(empty)}
        assert rows[1] == rows[10] == 10


async def test_every_key_has_a_help_text(path: Path) -> None:
    async with opened(path, "8", "question_mark") as (browser, _):
        text = shown(browser)
        for said in ("Write a note", "Delete the note in the line", "Look at the circuit of the note"):
            assert said in text
