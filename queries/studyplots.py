"""Figures that studies have beside those of `plots`: a grid of subtasks, conditions with intervals, training.

Each takes the numbers themselves. What has no value is grey, or not drawn; a family has its letter beside its colour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from circuitdb.queries import canvas
from circuitdb.queries.canvas import Matrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PALE = ("#b3d4e8", "#f6cfae", "#a8dccb", "#ecd0e0", "#f7e0b3", "#cfc8ea", "#dfe8a8", "#e3cdb8")


def grid(
    values: Matrix, rows: Sequence[object], columns: Sequence[object], names: tuple[str, str], what: str
) -> Figure:
    """Shares of 0 to 1 on a grid, [row, column], as a heat map with their percents; NaN is grey."""
    figure, (axes,) = canvas.blank(canvas.side(len(rows)), 1, 1)
    image = axes.imshow(
        values, cmap=canvas.colours(signed=False), vmin=0, vmax=1, aspect="auto", interpolation="nearest"
    )
    canvas.ticks(axes, [str(row) for row in rows], [str(column) for column in columns])
    axes.tick_params(axis="x", rotation=0)
    if max(values.shape, default=0) <= canvas.MOST_NUMBERS:
        for (i, j), value in np.ndenumerate(values):
            text = "" if np.isnan(value) else f"{value:.0%}"
            axes.text(j, i, text, ha="center", va="center", fontsize=canvas.SMALL,
                      color="white" if value > 0.6 else "black")  # fmt: skip
    canvas.bar(figure, image, axes, what)
    axes.set_ylabel(names[0], fontsize=canvas.FONT)
    axes.set_xlabel(names[1], fontsize=canvas.FONT)
    return figure


def family_map(
    families: Sequence[Sequence[str]], rows: Sequence[object], columns: Sequence[object], names: tuple[str, str]
) -> Figure:
    """The family of each cell of a grid by its letter, and a colour where it has several; an empty name is no cell."""
    often = Counter(name for row in families for name in row if name)
    several = sorted((name for name, n in often.items() if n > 1), key=lambda name: (len(name), name))
    colour = {name: i % len(_PALE) for i, name in enumerate(several)}
    places = np.array([[colour.get(name, np.nan) for name in row] for row in families], np.float64)
    figure, (axes,) = canvas.blank(canvas.side(len(rows)) - 0.4, 1, 1)
    from matplotlib.colors import ListedColormap

    axes.imshow(
        places, cmap=ListedColormap(list(_PALE)).with_extremes(bad="#ffffff"), vmin=-0.5, vmax=len(_PALE) - 0.5,
        aspect="auto", interpolation="nearest",
    )  # fmt: skip
    canvas.ticks(axes, [str(row) for row in rows], [str(column) for column in columns])
    axes.tick_params(axis="x", rotation=0)
    for i, row in enumerate(families):
        for j, name in enumerate(row):
            axes.text(j, i, name, ha="center", va="center", fontsize=canvas.FONT, color="black")
    axes.set_ylabel(names[0], fontsize=canvas.FONT)
    axes.set_xlabel(names[1], fontsize=canvas.FONT)
    return figure


def intervals(
    labels: Sequence[str], values: Matrix, low: Matrix, high: Matrix, what: str, *, limits: Matrix | None = None,
    line: float | None = None,
) -> Figure:  # fmt: skip
    """Values as dots with their intervals, one line each from above; `limits` are ceilings, drawn as bars."""
    figure, (axes,) = canvas.blank(max(1.3, min(7.0, 0.7 + 0.2 * len(labels))), 1, 1)
    heights = np.arange(len(labels))
    if line is not None:
        axes.axvline(line, color=canvas.GREY, linestyle=":", linewidth=0.8)
    known = ~np.isnan(low)
    axes.hlines(heights[known], low[known], high[known], color=canvas.BLUE, linewidth=1.2)
    axes.plot(values, heights, "o", color=canvas.BLUE, markersize=4, linestyle="none")
    if limits is not None:
        axes.plot(limits, heights, "|", color=canvas.ORANGE, markersize=9, markeredgewidth=1.4, linestyle="none")
    axes.set_yticks(heights, [canvas.short(label, 30) for label in labels])
    axes.set_ylim(len(labels) - 0.4, -0.6)
    canvas.dress(axes, xlabel=what)
    return figure


def by_distance(distance: Matrix, similarity: Matrix, what: str) -> Figure:
    """Similarity of pairs against their distance on a grid: a dot a pair, and the mean at each distance as a line."""
    figure, (axes,) = canvas.blank(2.3, 1, 1)
    known = ~np.isnan(similarity)
    far, near = distance[known], similarity[known]
    axes.plot(far, near, "o", color=canvas.BLUE, markersize=2.5, alpha=0.35, linestyle="none", markeredgewidth=0)
    steps = np.unique(far)
    axes.plot(steps, [near[far == step].mean() for step in steps], "-", color=canvas.ORANGE, linewidth=1.4)
    canvas.dress(axes, xlabel="distance on the grid, in digits (line: mean)", ylabel=what)
    return figure


def training(
    labels: Sequence[str], stability: Matrix, low: Matrix, high: Matrix, ceiling: Matrix, accuracy: Matrix, what: str
) -> Figure:
    """Stability with its interval and ceiling above accuracy, model by model or checkpoint by checkpoint."""
    figure, (above, below) = canvas.blank(3.4, 2, 1, height_ratios=[3, 2], sharex=True)
    places = np.arange(len(labels))
    known = ~np.isnan(low)
    above.vlines(places[known], low[known], high[known], color=canvas.BLUE, linewidth=1.2)
    above.plot(places, stability, "o-", color=canvas.BLUE, markersize=4, linewidth=1, label="stability")
    if not np.isnan(ceiling).all():
        above.plot(places, ceiling, "_", color=canvas.ORANGE, markersize=10, markeredgewidth=1.4, label="its ceiling")
    below.plot(places, accuracy, "s-", color=canvas.COLOURS[2], markersize=4, linewidth=1)
    below.set_ylim(-0.05, 1.05)
    canvas.dress(above, ylabel=what)
    canvas.dress(below, ylabel="accuracy")
    above.legend(fontsize=canvas.SMALL, frameon=False)
    step = -(-len(labels) // canvas.MOST_LABELS) or 1
    below.set_xticks(places[::step], [canvas.short(label, 22) for label in labels[::step]], rotation=90)
    return figure
