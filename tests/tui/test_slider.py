from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from browsers import lines
from circuitdb.tui.widgets.slider import Slider

pytestmark = pytest.mark.anyio


class Bare(App[None]):
    """A slider alone, and the values it told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[float] = []

    def compose(self) -> ComposeResult:
        yield Slider("alpha", -1, 1, 0.1, 0.5)

    @property
    def slider(self) -> Slider:
        return self.query_one(Slider)

    def on_slider_changed(self, message: Slider.Changed) -> None:
        self.told.append(message.value)


async def test_it_is_drawn_and_moved_by_keys() -> None:
    app = Bare()
    async with app.run_test(size=(33, 3)) as pilot:
        # 33 columns less 'alpha  0.50 ' and the knob leave 20, of which three quarters are full.
        assert lines(app)[0] == "alpha  0.50 " + "━" * 15 + "●" + "─" * 5
        assert app.told == []
        for keys, value in (
            (["right"], 0.6), (["left", "left"], 0.4), (["pageup"], 1.0), (["right"], 1.0), (["home"], -1.0),
            (["shift+right"], 0.0), (["minus"], -0.1), (["end"], 1.0),
        ):  # fmt: skip
            await pilot.press(*keys)
            assert app.slider.value == pytest.approx(value)
        assert app.told[-1] == 1.0
        assert lines(app)[0].startswith("alpha  1.00 ")


async def test_steps_do_not_drift() -> None:
    app = Bare()
    async with app.run_test(size=(33, 3)) as pilot:
        await pilot.press("home", *["right"] * 13)
        assert app.slider.value == pytest.approx(0.3, abs=1e-12)


async def test_the_mouse() -> None:
    app = Bare()
    async with app.run_test(size=(33, 3)) as pilot:
        await pilot.click(Slider, offset=(12, 0))
        assert app.slider.value == pytest.approx(-1.0)
        await pilot.click(Slider, offset=(22, 0))
        assert app.slider.value == pytest.approx(0.0)
        await pilot.click(Slider, offset=(32, 0))
        assert app.slider.value == pytest.approx(1.0)
        await pilot.click(Slider, offset=(2, 0))
        assert app.slider.value == pytest.approx(-1.0)


async def test_other_ends() -> None:
    app = Bare()
    async with app.run_test(size=(33, 3)) as pilot:
        app.slider.span(0.6, 0.9, 0.1)
        await pilot.pause()
        assert app.slider.value == 0.6
        assert app.told == [0.6]
        app.slider.span(2, 2, 1)
        await pilot.pause()
        assert lines(app)[0].startswith("alpha 2.00 ●")
