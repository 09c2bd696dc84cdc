from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
import pytest
from textual.app import App, ComposeResult

from browsers import lines
from circuitdb.tui.widgets.heatmap import Heatmap

pytestmark = pytest.mark.anyio
VALUES = np.array([[1.0, -0.55, np.nan], [0.0, 0.31, -0.04]])


class Bare(App[None]):
    """A heat map alone, and what it said."""

    def __init__(self, values: npt.NDArray[np.float64], rows: list[str], columns: list[str], *, cell: int = 2) -> None:
        super().__init__()
        self.given = (values, rows, columns)
        self.cell = cell
        self.said: list[tuple[str, int, int]] = []

    def compose(self) -> ComposeResult:
        yield Heatmap(cell=self.cell)

    def on_mount(self) -> None:
        self.map.draw(*self.given, limit=1)

    @property
    def map(self) -> Heatmap:
        return self.query_one(Heatmap)

    def on_heatmap_moved(self, message: Heatmap.Moved) -> None:
        self.said.append(("moved", message.row, message.column))

    def on_heatmap_picked(self, message: Heatmap.Picked) -> None:
        self.said.append(("picked", message.row, message.column))


async def test_values_in_letters_with_their_labels() -> None:
    app = Bare(VALUES, ["first", "2nd"], ["x", "1+2", "y"])
    async with app.run_test(size=(30, 8)) as pilot:
        await pilot.pause()
        assert lines(app)[:5] == [
            "         1",
            "         +",
            "       x 2 y",
            "first +9-5 ·",
            "2nd    0+3-0",
        ]  # fmt: skip
        assert app.said == [("moved", 0, 0)]


@pytest.mark.parametrize(("width", "seen"), [(9, "x  +9-5 ·"), (8, "x  +9-5"), (7, "x  +9-5"), (6, "x  +9")])
async def test_no_part_of_a_cell_is_read_as_a_number(width: int, seen: str) -> None:
    app = Bare(np.vstack([VALUES[:1]] * 2), ["x ", "y "], ["a", "b", "c"])
    async with app.run_test(size=(width, 8)) as pilot:
        await pilot.pause()
        assert lines(app)[1] == seen
        app.map.scroll_to(1, 0, animate=False)
        await pilot.pause()
        assert width == 9 or lines(app)[1][:6] == "x   -5"


async def test_odd_signs_in_labels_move_no_cell() -> None:
    app = Bare(VALUES, ["漢字", "a\tb\u0301\n"], ["x漢", "[b]", "y"])
    async with app.run_test(size=(30, 8)) as pilot:
        await pilot.pause()
        assert lines(app)[:5] == [
            "         [",
            "       x b",
            "      漢 ] y",
            "漢字  +9-5 ·",
            "a b?   0+3-0",
        ]  # fmt: skip


async def test_one_column_a_cell() -> None:
    app = Bare(VALUES, ["a", "b"], ["x", "y", "z"], cell=1)
    async with app.run_test(size=(30, 8)) as pilot:
        await pilot.pause()
        assert lines(app)[:3] == ["  xyz", "a 9f·", "b 03a"]


async def test_the_cursor_moves_stays_inside_and_picks() -> None:
    app = Bare(VALUES, ["a", "b"], ["x", "y", "z"])
    async with app.run_test(size=(30, 8)) as pilot:
        await pilot.press("down", "right", "enter")
        assert app.map.cursor == (1, 1)
        assert app.said[-2:] == [("moved", 1, 1), ("picked", 1, 1)]
        await pilot.press("down", "end", "right")
        assert app.map.cursor == (1, 2)
        await pilot.press("ctrl+home", "left", "up")
        assert app.map.cursor == (0, 0)
        await pilot.press("ctrl+end")
        assert app.map.cursor == (1, 2)
        await pilot.press("home")
        assert app.map.cursor == (1, 0)


async def test_a_click_moves_and_a_second_one_picks() -> None:
    app = Bare(VALUES, ["a", "b"], ["x", "y", "z"])
    async with app.run_test(size=(30, 8)) as pilot:
        await pilot.click(
            Heatmap, offset=(7, 2)
        )  # behind the label of 2 columns, the third cell; below one line of labels
        assert app.map.cursor == (1, 2)
        assert app.said[-1] == ("moved", 1, 2)
        await pilot.click(Heatmap, offset=(6, 2))
        assert app.said[-1] == ("picked", 1, 2)
        before = list(app.said)
        for beside in ((0, 1), (3, 0), (20, 1), (3, 7)):
            await pilot.click(Heatmap, offset=beside)
        assert app.said == before


async def test_labels_stay_while_the_cells_scroll() -> None:
    values = np.add.outer(np.arange(50), np.arange(50)) / 100
    app = Bare(values, [f"r{i}" for i in range(50)], [f"{i:02}" for i in range(50)])
    async with app.run_test(size=(24, 8)) as pilot:
        await pilot.press("ctrl+end")
        await pilot.pause()
        found = lines(app)
        # 24 columns: 4 of the label, 2 of the scroll bar, 9 cells; 8 lines: 2 of labels, 1 of the scroll bar, 5 rows.
        assert found[0][:22] == "     4 4 4 4 4 4 4 4 4"
        assert found[1][:22] == "     1 2 3 4 5 6 7 8 9"
        assert [line[:4].strip() for line in found[2:7]] == ["r45", "r46", "r47", "r48", "r49"]
        assert found[6][4:22] == "+9" * 9  # 0.90 to 0.98
        assert found[2][4:22] == "+8" * 4 + "+9" * 5  # 0.86 to 0.94


async def test_other_values_keep_the_cursor_if_it_is_still_there() -> None:
    app = Bare(VALUES, ["a", "b"], ["x", "y", "z"])
    async with app.run_test(size=(30, 8)) as pilot:
        await pilot.press("ctrl+end")
        app.map.draw(VALUES * 0.5, ["a", "b"], ["x", "y", "z"])
        await pilot.pause()
        assert app.map.cursor == (1, 2)
        assert app.map.limit == 0.5
        assert lines(app)[1] == "a +9-5 ·"
        app.map.draw(VALUES[:1, :1], ["a"], ["x"])
        await pilot.pause()
        assert app.map.cursor == (0, 0)
        app.map.draw(np.empty((0, 0)), [], [])
        await pilot.press("down", "enter")
        assert app.map.cursor == (0, 0)
        assert all(not line for line in lines(app))


async def test_labels_of_one_group_are_of_one_colour() -> None:
    app = Bare(VALUES, ["a", "b"], ["x", "y", "z"])
    async with app.run_test(size=(30, 8)) as pilot:
        app.map.draw(VALUES, ["a", "b"], ["x", "y", "z"], row_groups=[1, 0], column_groups=[0, 1, 0])
        app.map.cursor = (1, 1)
        await pilot.pause()
        strips = app.screen._compositor.render_strips()

        def colour(y: int, text: str) -> object:
            (found,) = [s.style.color for s in strips[y] if s.text.strip() == text and s.style is not None]
            return found

        assert colour(1, "a") == colour(0, "y")
        assert colour(2, "b") == colour(0, "x") == colour(0, "z")
        assert colour(1, "a") != colour(2, "b")


async def test_without_colour_the_cursor_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = Bare(VALUES, ["a", "b"], ["x", "y", "z"])
    async with app.run_test(size=(30, 8)) as pilot:
        await pilot.press("right")
        strips = app.screen._compositor.render_strips()
        grounds = {s.text: s.style for strip in strips for s in strip if s.text in ("+9", "-5", "+3")}
        assert grounds["+9"].bgcolor == grounds["+3"].bgcolor  # type: ignore[union-attr]
        assert grounds["-5"] != grounds["+9"]


async def test_two_hundred_by_two_hundred_are_drawn_within_a_tenth_of_a_second() -> None:
    """In seconds of the processor, which other processes of the machine do not change."""
    values = np.random.default_rng(0).uniform(-1, 1, (200, 200))
    labels = [f"{i // 10}+{i % 10}" for i in range(200)]
    app = Bare(values, labels, labels)
    async with app.run_test(size=(200, 60)) as pilot:
        await pilot.pause()
        times = []
        for _ in range(5):
            before = time.process_time()
            app.map.draw(values, labels, labels, row_groups=[i % 7 for i in range(200)])
            for y in range(60):
                app.map.render_line(y)
            times.append(time.process_time() - before)
        assert min(times) < 0.1
