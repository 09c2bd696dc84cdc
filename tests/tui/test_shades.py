from __future__ import annotations

import numpy as np
import pytest
from textual.color import Color

from circuitdb.tui.widgets import shades

NAN = float("nan")


@pytest.mark.parametrize(
    ("value", "strongest", "pair", "single"),
    [
        (0.0, 1.0, " 0", "0"),
        (-0.0, 1.0, " 0", "0"),
        (0.05, 1.0, "+0", "0"),
        (-0.05, 1.0, "-0", "a"),
        (0.1, 1.0, "+1", "1"),
        (0.3, 1.0, "+3", "3"),
        (0.7, 1.0, "+7", "7"),
        (0.6, 0.75, "+8", "8"),  # 0.6 / 0.75 is a hair less than 0.8
        (-0.79, 1.0, "-7", "h"),
        (1.0, 1.0, "+9", "9"),
        (-1.0, 1.0, "-9", "j"),
        (5.0, 1.0, "+9", "9"),
        (-3.0, 4.0, "-7", "h"),
        (float("inf"), 1.0, "+9", "9"),
        (-float("inf"), 1.0, "-9", "j"),
        (NAN, 1.0, " ·", "·"),
    ],
)
def test_a_value_in_letters(value: float, strongest: float, pair: str, single: str) -> None:
    step = shades.steps(np.array([value]), strongest)
    assert shades.texts(step, 2) == [pair]
    assert shades.texts(step, 1) == [single]


@pytest.mark.parametrize(
    ("values", "found"), [([1.0, -3.0, NAN], 3.0), ([NAN], 1.0), ([0.0, 0.0], 1.0), ([], 1.0), ([np.inf, 2.0], 2.0)]
)
def test_the_limit(values: list[float], found: float) -> None:
    assert shades.limit(np.array(values)) == found


@pytest.mark.parametrize(("base", "dark"), [("#121212", True), ("#e0e0e0", False), ("#000000", True)])
def test_every_shade_can_be_read(base: str, dark: bool) -> None:
    """Contrast by WCAG: (lighter + 0.05) / (darker + 0.05) of the relative luminances; 4.5 is its level for text."""

    def luminance(colour: Color) -> float:
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour.normalized]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    styles = shades.styles(Color.parse(base), dark=dark)
    assert len(styles) == 2 * shades.STRONGEST + 2
    for style in styles:
        assert style.color is not None
        assert style.bgcolor is not None
        dim, bright = sorted(luminance(Color.from_rich_color(c)) for c in (style.color, style.bgcolor))
        assert (bright + 0.05) / (dim + 0.05) >= 4.5


def test_signs_differ_and_grow_apart() -> None:
    styles = shades.styles(Color.parse("#121212"), dark=True)
    grounds = [style.bgcolor for style in styles]
    assert len(set(grounds[:-1])) == 21
    assert grounds[-1] == grounds[shades.STRONGEST]  # no value, and zero: the background
