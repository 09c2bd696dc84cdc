"""Lines, points and bars in text, by plotext; each series has a sign of its own, so that it reads without colour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt
from textual.color import Color
from textual_plotext import PlotextPlot

from circuitdb.tui.widgets import shades

_MARKED = 3  # the place of the red among the colours
_SIGNS = ("●", "+", "x", "o", "*", "#", "%", "@")


@dataclass(frozen=True)
class Series:
    """Points to draw; those that are not finite are left out.

    Attributes:
        x: where, from left to right.
        y: how high.
        name: in the legend; nothing for none there.
        kind: lines through the points, the points alone, or bars up to them.
        sign: the character of a point or a line; None gives each series another one, and lines finer dots.
    """

    x: npt.ArrayLike
    y: npt.ArrayLike
    name: str = ""
    kind: Literal["line", "points", "bars"] = "line"
    sign: str | None = None


class Plot(PlotextPlot):
    """Shows series on common axes; give it at least 6 lines."""

    _redraw: Callable[[], None] | None = None

    def on_mount(self) -> None:
        """Take the colours of the theme, now and when it changes."""
        super().on_mount()
        self.app.theme_changed_signal.subscribe(self, lambda _: self._redraw and self._redraw())

    def draw(
        self,
        series: Sequence[Series],
        *,
        title: str = "",
        x: str = "",
        y: str = "",
        at: float | None = None,
        x_range: tuple[float, float] | None = None,
        y_range: tuple[float, float] | None = None,
        y_ticks: Sequence[float] | None = None,
    ) -> None:
        """Show other series.

        Args:
            series: what to draw, in the order of their signs and colours.
            title: above.
            x: name of the axis below.
            y: name of the axis at the left.
            at: where a vertical line stands, such as the present alpha.
            x_range: the ends of the axis below; those of the points if not given.
            y_range: the ends of the axis at the left.
            y_ticks: what is written at it; chosen by plotext if not given.
        """
        self._redraw = partial(
            self.draw, series, title=title, x=x, y=y, at=at, x_range=x_range, y_range=y_range, y_ticks=y_ticks
        )
        plt = self.plt
        plt.clear_data()
        plt.clear_figure()
        for i, one in enumerate(series):
            xs, ys = np.asarray(one.x, np.float64), np.asarray(one.y, np.float64)
            finite = np.isfinite(xs) & np.isfinite(ys)
            if not finite.any():
                continue
            points, heights = xs[finite].tolist(), ys[finite].tolist()
            colour = self._colour(i)
            name = one.name or None
            if one.kind == "bars":
                plt.bar(points, heights, label=name, color=colour, marker=one.sign, width=0.6)
            elif one.kind == "points":
                plt.scatter(points, heights, label=name, color=colour, marker=one.sign or _SIGNS[i % len(_SIGNS)])
            else:
                several = sum(other.kind == "line" for other in series) > 1
                sign = one.sign or (_SIGNS[i % len(_SIGNS)] if several else "braille")
                plt.plot(points, heights, label=name, color=colour, marker=sign)
        if at is not None:
            plt.vline(at, self._colour(_MARKED))
        if x_range is not None:
            plt.xlim(*x_range)
        if y_range is not None:
            plt.ylim(*y_range)
        if y_ticks is not None:
            plt.yticks(list(y_ticks))
        plt.title(title)
        plt.xlabel(x)
        plt.ylabel(y)
        self.refresh()

    def _colour(self, place: int) -> tuple[int, int, int]:
        return Color.parse(shades.group(place, dark=self.app.current_theme.dark)).rgb
