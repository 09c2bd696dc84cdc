from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from textual.widgets import Input

from browsers import LARGE, SMALL, lines, opened, press, settled, shown, until
from circuitdb.store import Store
from circuitdb.tui.app import Browser
from circuitdb.tui.screens.library import Library
from circuitdb.tui.widgets.circuit_tree import CircuitTree
from stores import SHAPE, addition_store, circuit, model

pytestmark = pytest.mark.anyio


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """addition_store with 2 x 2 circuits of tiny (1..4), and 1+1 of another model (5)."""
    path = addition_store(tmp_path / "c.duckdb", digits=2)
    Store(path).write(circuit("1+1", of=model("other")), np.linspace(0, 1, SHAPE.n_edges, dtype=np.float32))
    return path


def library(browser: Browser) -> Library:
    assert isinstance(browser.screen, Library)
    return browser.screen


def chosen(browser: Browser) -> tuple[int, ...]:
    return browser.selection.circuits


def tree_lines(browser: Browser) -> list[str]:
    """The lines of the tree, without guides."""
    region = browser.screen.query_one(CircuitTree).region
    found = [line[region.x : region.right] for line in lines(browser)[region.y : region.bottom]]
    return [" ".join(line.strip(" │├└─▼▶").split()) for line in found if line.strip()]


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_the_tree_and_the_summary(shared_store: Path, size: tuple[int, int]) -> None:
    async with opened(shared_store, size=size) as (browser, _):
        date = browser.catalogue.entries[0].started_at
        assert date is not None
        day = f"{date:%Y-%m-%d}"
        assert tree_lines(browser)[:3] == [f"[x] tiny 9 {day}", f"[x] addition 9 {day}", f"[x] 1+1 1 {day}"]
        text = shown(browser)
        assert "9 of 9 chosen" in text
        for part in (
            "9 circuits chosen",
            "Stability",
            "0.12 [-0.11, 0.34] over 36",
            "ceiling 0.88",
            "Families",
            "7 families",
        ):
            assert part in text
        assert "0.28, 0.17 to 0.50, of 9 circuits" in text.replace("\n", " ") or size == SMALL


async def test_the_first_group_is_chosen_at_first(two: Path) -> None:
    async with opened(two) as (browser, _):
        assert chosen(browser) == (5,)
        assert [line[:9] for line in tree_lines(browser)] == [
            "[x] other", "[x] addit", "[x] 1+1 1", "[ ] tiny ", "[ ] addit", "[ ] 1+1 1", "[ ] 1+2 1", "[ ] 2+1 1",
            "[ ] 2+2 1",
        ]  # fmt: skip


async def test_space_chooses_and_drops_what_is_below(two: Path) -> None:
    async with opened(two) as (browser, pilot):
        await press(browser, pilot, *["down"] * 3, "space")
        assert chosen(browser) == (5, 1, 2, 3, 4)
        await press(browser, pilot, "down", "down", "space")
        assert chosen(browser) == (5, 2, 3, 4)
        assert [line[:3] for line in tree_lines(browser)] == ["[x]"] * 3 + ["[-]"] * 2 + ["[ ]"] + ["[x]"] * 3
        await press(browser, pilot, "n")
        assert chosen(browser) == ()
        assert "Nothing is chosen" in shown(browser)
        assert library(browser).summary is None
        await press(browser, pilot, "o")
        assert chosen(browser) == (1,)
        await press(browser, pilot, "a")
        assert chosen(browser) == (5, 1, 2, 3, 4)


async def test_the_filter_leaves_what_has_every_word(two: Path) -> None:
    async with opened(two, "n", "slash", "T", "i", "n", "y", "space", "1", "+", "1") as (browser, pilot):
        assert [line.rpartition(" ")[0] for line in tree_lines(browser)] == [
            "[ ] tiny 1", "[ ] addition 1", "[ ] 1+1 1", "[ ] eap-ig 1",
        ]  # fmt: skip
        assert "1 of 5 circuits shown" in shown(browser)
        await press(browser, pilot, "enter", "a")
        assert chosen(browser) == (1,)
        await press(browser, pilot, "escape")
        assert browser.screen.query_one(Input).value == ""
        assert len(tree_lines(browser)) >= 9
        assert chosen(browser) == (1,)


async def test_branches_open_and_close(two: Path) -> None:
    async with opened(two, "down", "down") as (browser, pilot):
        await press(browser, pilot, "right")
        assert tree_lines(browser)[3].startswith("[x] eap-ig 1")
        await press(browser, pilot, "left")
        assert tree_lines(browser)[3].startswith("[ ] tiny")
        await press(browser, pilot, "left", "left")
        assert [line[:8] for line in tree_lines(browser)[:3]] == ["[x] othe", "[x] addi", "[ ] tiny"]
        await press(browser, pilot, "enter")
        assert tree_lines(browser)[2].startswith("[x] 1+1")
        tree = browser.screen.query_one(CircuitTree)
        await press(browser, pilot, "end")
        assert tree.cursor_node is not None
        assert tree.cursor_node.data is not None
        assert tree.cursor_node.data.path == ("tiny", "addition", "2+2")
        await press(browser, pilot, "home")
        assert tree.cursor_line == 0


async def test_alpha_by_keys(shared_store: Path) -> None:
    async with opened(shared_store) as (browser, pilot):
        found = library(browser).summary
        assert found is not None
        await press(browser, pilot, "left_square_bracket")
        assert browser.selection.alpha == pytest.approx(round(found.useful / 0.05) * 0.05 - 0.05)
        for _ in range(20):
            await pilot.press("right_square_bracket")
        await settled(browser, pilot)
        assert browser.selection.alpha == 1.0
        assert "9 families at alpha = 1.00" in shown(browser)
        await press(browser, pilot, "backslash")
        assert f"7 families at alpha = {found.useful:.2f}" in shown(browser)
        assert library(browser).summary is found  # the database was not asked again


async def test_circuits_of_different_shapes_are_told(two: Path) -> None:
    from circuitdb.graph import GraphShape

    shape = GraphShape(n_layers=3, n_heads=2)
    Store(two).write(circuit("1+1", of=model("third", shape)), np.ones(shape.n_edges, np.float32))
    async with opened(two, "a", size=LARGE) as (browser, _):
        assert "These circuits are of different graph shapes" in shown(browser)


async def test_a_new_circuit_appears_and_a_replaced_one_goes(two: Path) -> None:
    async with opened(two, "down", "down", "down", "space") as (browser, pilot):
        assert chosen(browser) == (5, 1, 2, 3, 4)
        scores = np.ones(SHAPE.n_edges, np.float32)
        Store(two).write(circuit("9+9"), scores)
        await until(pilot, lambda: len(browser.catalogue.entries) == 6)
        await settled(browser, pilot)
        assert any(line.startswith("[ ] 9+9 1") for line in tree_lines(browser))
        assert "5 of 6 chosen" in shown(browser)
        cursor = browser.screen.query_one(CircuitTree).cursor_node
        assert cursor is not None
        assert cursor.data is not None
        assert cursor.data.path == ("tiny",)
        Store(two).write(circuit("1+1", {"digits_a": 1, "digits_b": 1}), scores, replace=True)  # 1 becomes 7
        await until(pilot, lambda: 7 in browser.catalogue.ids)
        assert chosen(browser) == (5, 2, 3, 4)


async def test_copied_text(two: Path) -> None:
    async with opened(two, "y") as (browser, _):
        head, row = browser.clipboard.splitlines()
        assert head.split("\t")[:6] == ["circuit_id", "model", "task", "subtask", "method", "accuracy"]
        assert row.split("\t")[:6] == ["5", "other", "addition", "1+1", "eap-ig", ""]


async def test_in_little_room_the_dates_go(shared_store: Path) -> None:
    async with opened(shared_store, size=(60, 15)) as (browser, _):
        assert tree_lines(browser)[:3] == ["[x] tiny 9", "[x] addition 9", "[x] 1+1 1"]
        assert browser.screen.query_one(CircuitTree).max_scroll_x == 0
