from __future__ import annotations

import math

import pytest
from textual.app import App, ComposeResult

from browsers import lines
from circuitdb.tui.widgets.barcode import Barcode, Line

pytestmark = pytest.mark.anyio
NAN = math.nan


class Bare(App[None]):
    """A barcode alone."""

    def compose(self) -> ComposeResult:
        yield Barcode()


async def test_bars_end_where_they_join() -> None:
    app = Bare()
    async with app.run_test(size=(28, 6)) as pilot:
        bars = [Line(NAN, "A", 0, "x"), Line(0.2, "B", 1, "yy"), Line(0.6, "A", 0, "z")]
        bar = app.query_one(Barcode)
        bar.draw(bars, span=(0.0, 1.0), alpha=0.5, ceiling=0.8)
        await pilot.pause()
        # Behind letter and name are 23 columns: 0 to 22. Alpha is at 11, the ceiling at 18, 0.2 at 4, 0.6 at 13.
        assert lines(app)[:4] == [
            "2 of 3 bars cross alpha",
            "A x  " + "━" * 11 + "┿" + "━" * 6 + "┊" + "━" * 4,
            "B yy " + " " * 4 + "╺" + "━" * 6 + "┿" + "━" * 6 + "┊" + "━" * 4,
            "A z  " + " " * 11 + "│" + " ╶" + "─" * 4 + "┊" + "─" * 4,
        ]  # fmt: skip
        assert bar.crossing == 2
        # At the very alpha of a join the two are joined; a bar that joins over 1 is a mark at the right end.
        bar.draw([Line(0.5, "A", 0, "x"), Line(1.2, "A", 0, "y")], span=(0.0, 1.0), alpha=0.5, ceiling=NAN)
        await pilot.pause()
        assert bar.crossing == 0
        assert lines(app)[2].endswith("╶")


async def test_many_bars_scroll_below_the_heading() -> None:
    app = Bare()
    async with app.run_test(size=(40, 5)) as pilot:
        bar = app.query_one(Barcode)
        bar.draw([Line(i / 50, "A", 0, f"c{i}") for i in range(50)], span=(0.0, 1.0), alpha=0.0, ceiling=NAN)
        bar.focus()
        await pilot.pause()
        await pilot.press("end")
        await pilot.pause(0.5)
        assert lines(app)[0].startswith("H0 barcode: 0 of 50")
        assert [line.split()[1] for line in lines(app)[1:]] == ["c46", "c47", "c48", "c49"]
