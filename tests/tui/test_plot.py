from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from browsers import lines, shown
from circuitdb.tui.widgets.plot import Plot, Series

pytestmark = pytest.mark.anyio


class Bare(App[None]):
    """A plot alone."""

    def compose(self) -> ComposeResult:
        yield Plot()

    @property
    def plot(self) -> Plot:
        return self.query_one(Plot)


async def test_points_lie_where_they_should() -> None:
    app = Bare()
    async with app.run_test(size=(60, 20)) as pilot:
        app.plot.draw(
            [Series([0, 1, float("nan")], [0, 10, 3], kind="points", sign="A")],
            title="title",
            x="below",
            y="left",
        )
        await pilot.pause()
        found = lines(app)
        assert "title" in found[0]
        assert "below" in found[-1]
        assert "left" in found[-1]
        places = [(y, line.index("A")) for y, line in enumerate(found) if "A" in line]
        assert len(places) == 2
        (top, right), (bottom, left) = places
        assert top < bottom
        assert left < right
        assert "10.0" in found[top]
        assert "0.0" in found[bottom]


async def test_what_is_written_at_the_left() -> None:
    app = Bare()
    async with app.run_test(size=(60, 20)) as pilot:
        app.plot.draw([Series([0, 1], [1, 9])], y_range=(0, 10), y_ticks=[1, 5, 9])
        for _ in range(2):
            await pilot.pause()
            assert [line.split("┤")[0].strip() for line in lines(app) if "┤" in line] == ["9", "5", "1"]
            app.theme = "textual-light"


async def test_each_series_has_a_sign_of_its_own() -> None:
    app = Bare()
    async with app.run_test(size=(60, 20)) as pilot:
        app.plot.draw([Series([0, 1], [0, 1], "up"), Series([0, 1], [1, 0], "down")])
        await pilot.pause()
        text = shown(app)
        assert "●● up" in text or "●●up" in text
        assert "++ down" in text or "++down" in text


async def test_another_drawing_takes_the_place_of_the_first() -> None:
    app = Bare()
    async with app.run_test(size=(60, 20)) as pilot:
        app.plot.draw([Series([0, 1], [0, 1], "first", kind="points", sign="A")])
        app.plot.draw([Series([5, 6], [7, 8], "second", kind="bars", sign="B")], at=5.5, x_range=(4, 7), y_range=(0, 9))
        await pilot.pause()
        text = shown(app)
        assert "A" not in text
        assert "first" not in text
        assert "B" in text
        assert lines(app)[-1].split() == ["5.0", "6.0"]
        app.theme = "textual-light"
        await pilot.pause()
        assert "B" in shown(app)


async def test_nothing_to_draw_is_no_failure() -> None:
    app = Bare()
    async with app.run_test(size=(60, 20)) as pilot:
        app.plot.draw([Series([], [], "none"), Series([float("nan")], [1.0], "none")])
        await pilot.pause()
        assert "none" not in shown(app)
