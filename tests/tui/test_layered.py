from __future__ import annotations

import numpy as np
import pytest
from textual.app import App, ComposeResult

from browsers import lines
from circuitdb.tui.widgets.layered import Graph, Layered

pytestmark = pytest.mark.anyio
NAMES = ["input", "a0.h0", "m0", "logits"]


def graph(scores: tuple[float, ...] = (1.0, -1.0)) -> Graph:
    """input -> m0 -> logits, both in the middle."""
    return Graph(
        [("input", [0]), ("L0", [2]), ("logits", [3])],
        NAMES,
        [0.5, 0.0, 0.5, 0.5],
        np.array([0, 2], np.int64),
        np.array([2, 3], np.int64),
        np.array(scores),
    )


class Bare(App[None]):
    """A graph alone, and the nodes it told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[int | None] = []
        self.picked: list[int] = []

    def compose(self) -> ComposeResult:
        yield Layered()

    def on_layered_moved(self, message: Layered.Moved) -> None:
        self.told.append(message.node)

    def on_layered_picked(self, message: Layered.Picked) -> None:
        self.picked.append(message.node)


def dots(text: str) -> int:
    return sum(bin(ord(sign) - 0x2800).count("1") for sign in text if 0x2800 <= ord(sign) <= 0x28FF)


async def test_layers_names_and_lines() -> None:
    app = Bare()
    async with app.run_test(size=(40, 11)) as pilot:
        app.query_one(Layered).draw(graph())
        await pilot.pause()
        text = lines(app)
        # Ten lines between the first and the last of three layers: gaps of four.
        assert [i for i, line in enumerate(text) if (line and line[0].isalpha()) or line[:1] == "L"] == [0, 5, 10]
        assert [line.split() for line in (text[0], text[5], text[10])] == [
            ["input", "input"], ["L0", "m0"], ["logits", "logits"],
        ]  # fmt: skip
        whole, dashed = (sum(map(dots, text[start : start + 4])) for start in (1, 6))
        assert whole >= 14  # 16 dots down, without a gap
        assert 4 <= dashed < whole - 3
        app.query_one(Layered).draw(graph((1.0, 1.0)))
        await pilot.pause()
        assert sum(map(dots, lines(app)[6:10])) == pytest.approx(whole, abs=1)


async def test_keys_and_mouse_move_from_node_to_node() -> None:
    app = Bare()
    async with app.run_test(size=(40, 11)) as pilot:
        widget = app.query_one(Layered)
        widget.focus()
        widget.draw(graph())
        await pilot.pause()
        await pilot.press("down")
        assert widget.cursor == 2
        await pilot.press("left", "right", "up", "up")
        assert widget.cursor == 0
        await pilot.press("end", "enter")
        assert (widget.cursor, app.picked) == (3, [3])
        column = lines(app)[5].index("m0")
        await pilot.click(Layered, offset=(column, 5))
        assert widget.cursor == 2
        await pilot.click(Layered, offset=(column, 5))
        await pilot.pause()
        assert app.picked == [3, 2]
        assert app.told[-1] == 2


async def test_a_crowd_is_scrolled_and_no_name_is_cut() -> None:
    """Two layers of 40 nodes in 30 columns; every node is an end of an edge."""
    names = [f"a{layer}.h{head}" for layer in range(2) for head in range(40)]
    app = Bare()
    async with app.run_test(size=(30, 8)) as pilot:
        widget = app.query_one(Layered)
        widget.focus()
        crowd = Graph(
            [("L0", range(40)), ("L1", range(40, 80))], names, [i % 40 / 39 for i in range(80)],
            np.arange(40), np.arange(40, 80), np.ones(40),
        )  # fmt: skip
        widget.draw(crowd)
        await pilot.pause()
        seen: set[str] = set()
        for _ in range(40):
            seen |= set(lines(app)[0].split())
            await pilot.press("right")
            await pilot.pause()
        assert widget.cursor == 39
        assert set(names[:40]) <= seen
        await pilot.press("down")
        assert widget.cursor == 79


async def test_an_empty_graph_takes_keys() -> None:
    app = Bare()
    async with app.run_test(size=(40, 11)) as pilot:
        widget = app.query_one(Layered)
        widget.focus()
        none = np.zeros(0, np.int64)
        widget.draw(Graph([], NAMES, [0.0] * 4, none, none, np.zeros(0)))
        await pilot.press("up", "down", "left", "right", "home", "end", "enter")
        assert widget.cursor is None
        assert app.told[-1] is None
        assert not any(lines(app))
