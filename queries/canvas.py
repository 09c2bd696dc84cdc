"""What all figures are drawn with: a page as wide as a column, heat maps, names that fit, numbers as they are written.

Matplotlib comes with the extra `plot`; its global settings are not touched.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from circuitdb.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

WIDTH = 3.3  # inches
FONT, SMALL = 7.0, 6.0  # points
BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#666666"
MARKERS, COLOURS = "os^Dv<>P", (BLUE, ORANGE, "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#999999")
MOST_NUMBERS, MOST_LABELS, _LONGEST, _LINE = 10, 24, 14, 52
Matrix = npt.NDArray[np.float64]


def blank(height: float, rows: int, columns: int, **layout: object) -> tuple[Figure, list[Axes]]:
    """A figure that belongs to no window, and its axes, row by row. Raises UsageError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("matplotlib is not installed: `pip install 'transformer-circuitdb[plot]'`.") from error
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    share = bool(layout.pop("sharex", False))
    axes = figure.subplots(rows, columns, squeeze=False, sharex=share, gridspec_kw=layout)
    return figure, list(axes.ravel())


def heat(
    axes: Axes,
    values: Matrix,
    limit: float,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    signed: bool = True,
    numbers: bool = True,
) -> AxesImage:
    """Cells coloured by value, with their numbers, or where there are many a bar in those below zero."""
    image = axes.imshow(
        values if values.size else np.full((1, 1), np.nan), cmap=colours(signed=signed),
        vmin=-limit if signed else 0.0, vmax=limit, aspect="auto", interpolation="nearest",
    )  # fmt: skip
    ticks(axes, rows, columns)
    if numbers and 0 < max(values.shape) <= MOST_NUMBERS:
        for (i, j), value in np.ndenumerate(values):
            text = "" if np.isnan(value) else number(value)
            dark = abs(value) > 0.6 * limit
            axes.text(j, i, text, ha="center", va="center", fontsize=SMALL, color="white" if dark else "black")
    else:
        below, across = np.nonzero(values < 0)
        axes.plot(across, below, "_", color="black", markersize=3, markeredgewidth=0.6, linestyle="none")
    return image


def greys(axes: Axes, values: Matrix, rows: Sequence[str], columns: Sequence[str]) -> None:
    """A column or a row of shares of 0 to 1 as greys, with their numbers where there is room."""
    cells = values if values.size else np.full((1, 1), np.nan)
    axes.imshow(cells, cmap="Greys", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    ticks(axes, rows, columns)
    if values.size <= MOST_NUMBERS:
        for (i, j), value in np.ndenumerate(values):
            text = "?" if np.isnan(value) else number(value)
            colour = "white" if value > 0.6 else "black"
            turned = 0 if columns else 90
            axes.text(j, i, text, ha="center", va="center", fontsize=SMALL, color=colour, rotation=turned)


def colours(*, signed: bool) -> Colormap:
    """From orange over white to blue, or from white to blue; grey where there is no value."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = [ORANGE, "#ffffff", BLUE] if signed else ["#ffffff", BLUE]
    return LinearSegmentedColormap.from_list("circuitdb", colours).with_extremes(bad="#dddddd")


def ticks(axes: Axes, rows: Sequence[str], columns: Sequence[str]) -> None:
    """Names beside rows and below columns, every so many where all would not fit."""
    for put, names, turned in ((axes.set_yticks, rows, 0), (axes.set_xticks, columns, 90)):
        step = -(-len(names) // MOST_LABELS) or 1
        put(range(0, len(names), step), [short(name) for name in names[::step]], rotation=turned, fontsize=SMALL)
    axes.tick_params(length=1.5, width=0.5)


def short(name: str, longest: int = _LONGEST) -> str:
    """A name that fits beside a matrix, or a point, in one line: its beginning and its end."""
    name = " ".join(name.split())
    first = longest // 2 - 2
    return name if len(name) <= longest else f"{name[:first]}\u2026{name[first + 1 - longest :]}"


def wrapped(text: str) -> str:
    """In lines that fit into a column."""
    return "\n".join(line for part in text.split("\n") for line in textwrap.wrap(part, _LINE, break_on_hyphens=False))


def number(value: float) -> str:
    """With two decimals and a true minus sign."""
    return f"{value:.2f}".replace("-", "\u2212")


def limit(values: Matrix) -> float:
    """Where the colours of similarities end: at 1, or at the largest of corrected ones."""
    return float(np.nanmax(np.abs(values), initial=1.0))


def bar(figure: Figure, image: AxesImage, axes: Axes, label: str) -> None:
    """A scale above a heat map; without a label only its ends in one number."""
    from matplotlib.ticker import MaxNLocator

    bar = figure.colorbar(image, ax=axes, location="top", shrink=0.9, pad=0.02, aspect=30)
    bar.ax.tick_params(labelsize=SMALL, length=1.5, width=0.5)
    bar.set_label(wrapped(label), fontsize=FONT)
    if label:
        bar.locator = MaxNLocator(4)
        bar.update_ticks()
    else:  # too narrow for more than one
        bar.set_ticks([0.0], labels=[f"\u00b1{image.norm.vmax:.2g}"])


def dress(axes: Axes, *, xlabel: str = "", ylabel: str = "") -> None:
    """The names of the axes, and only the lower and left line."""
    axes.set_xlabel(wrapped(xlabel), fontsize=FONT)
    axes.set_ylabel(ylabel, fontsize=FONT)
    axes.tick_params(labelsize=SMALL, length=2, width=0.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def side(n: int) -> float:
    """Height of a square matrix of n rows with its labels, in inches."""
    return max(2.2, min(WIDTH + 0.6, 1.2 + 0.25 * n))
