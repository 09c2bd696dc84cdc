"""The H0 barcode in text: a line a bar, from alpha = 1 at the right to where its family joins another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from circuitdb.tui.widgets import shades
from circuitdb.tui.widgets.heatmap import fitted, plain

_NAME = 14  # at most so many columns for the names


@dataclass(frozen=True)
class Line:
    """One bar: where it ends (NaN: nowhere), the family that its circuit is of, as name and number, and the circuit."""

    joins: float
    family: str
    number: int
    circuit: str


class Barcode(ScrollView, can_focus=True):
    """Shows bars with a line at alpha: a bar that crosses it is a family there, and is drawn thick.

    The first line tells how many those are. The line at alpha is │, that at the ceiling ┊.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"barcode--head", "barcode--faint"}
    DEFAULT_CSS = """
    Barcode {
        background: $background;
        & > .barcode--head { color: $text-muted; }
        & > .barcode--faint { color: $text-muted; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._lines: Sequence[Line] = ()
        self._ends = (0.0, 1.0)
        self._alpha = 0.0
        self._ceiling = float("nan")
        self._names = self._letters = 0

    def draw(self, lines: Sequence[Line], *, span: tuple[float, float], alpha: float, ceiling: float) -> None:
        """Show bars between the alphas of `span`; a `ceiling` of NaN is none."""
        self._lines = [replace(line, circuit=plain(line.circuit)) for line in lines]
        self._ends, self._alpha, self._ceiling = span, alpha, ceiling
        self._letters = max((len(line.family) for line in lines), default=0) + 1
        self._names = min(_NAME, max((cell_len(line.circuit) for line in self._lines), default=0)) + 1
        self.virtual_size = Size(0, len(lines) + 1)
        self.refresh()

    @property
    def crossing(self) -> int:
        """How many bars cross alpha, which is the number of families there."""
        return sum(not line.joins >= self._alpha for line in self._lines)

    def on_mount(self) -> None:
        """Take the colours of the theme."""
        self.app.theme_changed_signal.subscribe(self, lambda _: self.refresh())

    def render_line(self, y: int) -> Strip:
        """The heading, or a bar."""
        width = self.scrollable_content_region.width
        if y == 0:
            told = f"{self.crossing} of {len(self._lines)} bars cross alpha"
            head = f"H0 barcode: {told}" if width >= len(told) + 12 else told
            return self._whole([Segment(head, self.get_component_rich_style("barcode--head"))])
        place = y - 1 + self.scroll_offset.y
        if place >= len(self._lines):
            return self._whole([])
        line = self._lines[place]
        crosses = not line.joins >= self._alpha
        ink = Style(color=shades.group(line.number, dark=self.app.current_theme.dark)) if crosses else Style()
        faint = self.get_component_rich_style("barcode--faint")
        style = self.rich_style + ink if crosses else faint
        name = f"{line.family:{self._letters}}{fitted(line.circuit, self._names - 1)} "
        bar = self._bar(line.joins, "━" if crosses else "─", max(1, width - self._letters - self._names))
        return self._whole([Segment(name, style), Segment(bar, style)])

    def _whole(self, segments: list[Segment]) -> Strip:
        return Strip(segments).crop_extend(0, self.size.width, self.rich_style)

    def _bar(self, joins: float, sign: str, width: int) -> str:
        low, high = self._ends

        def column(alpha: float) -> int:
            return round((min(high, max(low, alpha)) - low) / (high - low) * (width - 1))

        start, end = column(low if joins != joins else joins), column(1.0)
        signs = [sign if start <= i <= end else " " for i in range(width)]
        if joins == joins:
            signs[start] = "╺" if sign == "━" else "╶"
        if self._ceiling == self._ceiling:
            signs[column(self._ceiling)] = "┊"
        place = column(self._alpha)
        signs[place] = "┿" if sign == "━" else "│"
        return "".join(signs)
