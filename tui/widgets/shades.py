"""Diverging shades for signed values, with texts that say the same without colour; colours for groups."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
from rich.style import Style
from textual.color import Color

STRONGEST = 10  # steps are -10..10, in tenths with the zeros of either sign apart: +-1 is under a tenth
_MIDDLE = 0.179  # the luminance on which black and white ink stand out alike
NONE = STRONGEST + 1  # the step of no value
# Blue and orange: told apart with every common colour blindness.
_NEGATIVE, _POSITIVE = {True: "#2f8dff", False: "#1f5fbf"}, {True: "#ff8c1a", False: "#c65a00"}
_GROUPS = {
    True: ("#ffd166", "#7ee081", "#6ec6ff", "#ff8fa3", "#c9a0ff", "#5eead4", "#ffb074", "#d0d0d0"),
    False: ("#7a5c00", "#1b7a1f", "#005a9e", "#a3123a", "#6a35b0", "#0b6e63", "#a34700", "#404040"),
}


def limit(values: npt.NDArray[np.float64]) -> float:
    """The largest finite magnitude; 1 if there is none over 0."""
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max()) if finite.size and finite.max() > 0 else 1.0


def steps(values: npt.NDArray[np.float64], strongest: float) -> npt.NDArray[np.int8]:
    """A step for each value: 0 for zero, +-1 under a tenth of `strongest`, +-10 from nine tenths on, NONE for NaN."""
    shares = np.abs(values) / strongest
    # A value like 0.3 / 1.0 must not fall under its tenth by rounding.
    tenths = np.floor(np.nan_to_num(shares, posinf=9.0) * 10 + 1e-9)
    found = np.sign(np.nan_to_num(values)) * (1 + np.clip(tenths, 0, STRONGEST - 1))
    return cast("npt.NDArray[np.int8]", np.where(np.isnan(values), NONE, found).astype(np.int8))


def texts(row: npt.NDArray[np.int8], cell: int) -> list[str]:
    """The text of each step: in two columns its sign and tenths, in one a digit, for negative values a letter."""
    return [(_PAIRS if cell == 2 else _SINGLES)[step + STRONGEST] for step in row.tolist()]


def styles(base: Color, *, dark: bool) -> list[Style]:
    """The style of each step from -10 to NONE, on the theme's background."""
    found = []
    for step in range(-STRONGEST, NONE + 1):
        if step == NONE:
            shade = base
        else:
            end = Color.parse((_NEGATIVE if step < 0 else _POSITIVE)[dark])
            shade = base.blend(end, (abs(step) / STRONGEST) ** 0.8)
        ink = Color.parse("#000000" if _luminance(shade) > _MIDDLE else "#ffffff")
        found.append(Style(color=ink.rich_color, bgcolor=shade.rich_color))
    return found


def _luminance(colour: Color) -> float:
    """Relative luminance, 0 to 1, as WCAG defines it."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour.normalized)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def group(number: int, *, dark: bool) -> str:
    """A colour for a group; after eight they come again, which is why groups have letters too."""
    return _GROUPS[dark][number % len(_GROUPS[dark])]


_TENTHS = range(STRONGEST)
_PAIRS = [*(f"-{d}" for d in reversed(_TENTHS)), " 0", *(f"+{d}" for d in _TENTHS), " ·"]
_SINGLES = [*(chr(ord("a") + d) for d in reversed(_TENTHS)), "0", *(str(d) for d in _TENTHS), "·"]
