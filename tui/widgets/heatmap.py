"""A matrix as coloured cells, each with its sign and tenths in letters, so that it reads without colour too."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from circuitdb.tui.widgets import shades

LABEL, _HEAD = 24, 8  # at most so many columns for the labels of rows, lines for those of columns


class Heatmap(ScrollView, can_focus=True):
    """Shows `values` [row, column] with a cursor; NaN is no value.

    A cell of two columns is a sign and the tenths of `limit` (+7 is 0.7 of it to under 0.8); one of one column is a
    digit, or a letter for negative values (a is 0, b is 0.1, ...). Labels of rows and columns stay when it is scrolled.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1,0)", "Up", show=False, tooltip="Move the cursor"),
        Binding("down", "move(1,0)", "Down", show=False, tooltip="Move the cursor"),
        Binding("left", "move(0,-1)", "Left", show=False, tooltip="Move the cursor"),
        Binding("right", "move(0,1)", "Right", show=False, tooltip="Move the cursor"),
        Binding("pageup", "move(-10,0)", "Up ten", show=False, tooltip="Move the cursor by ten rows"),
        Binding("pagedown", "move(10,0)", "Down ten", show=False, tooltip="Move the cursor by ten rows"),
        Binding("home", "move(0,-100000)", "First column", show=False, tooltip="First column"),
        Binding("end", "move(0,100000)", "Last column", show=False, tooltip="Last column"),
        Binding("ctrl+home", "move(-100000,-100000)", "First cell", show=False, tooltip="First cell"),
        Binding("ctrl+end", "move(100000,100000)", "Last cell", show=False, tooltip="Last cell"),
        Binding("enter", "pick", "Open", tooltip="Open the cell under the cursor"),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"heatmap--label", "heatmap--here"}
    DEFAULT_CSS = """
    Heatmap {
        height: 1fr;
        background: $background;
        & > .heatmap--label { color: $text-muted; }
        & > .heatmap--here { color: $text; text-style: bold; }
    }
    """

    cursor: reactive[tuple[int, int]] = reactive((0, 0), repaint=False)

    class Moved(Message):
        """The cursor came to another cell, or the values under it changed."""

        def __init__(self, row: int, column: int) -> None:
            super().__init__()
            self.row, self.column = row, column

        def can_replace(self, message: Message) -> bool:
            """Only the last of several counts."""
            return isinstance(message, Heatmap.Moved)

    class Picked(Message):
        """Enter or a second click on a cell."""

        def __init__(self, row: int, column: int) -> None:
            super().__init__()
            self.row, self.column = row, column

    def __init__(self, *, cell: int = 2, id: str | None = None) -> None:  # noqa: A002
        """`cell`: columns of the terminal that a value takes, 1 or 2."""
        super().__init__(id=id)
        self.cell = cell
        self.values: npt.NDArray[np.float64] = np.empty((0, 0))
        self.limit = 1.0
        self._rows: Sequence[str] = ()
        self._columns: Sequence[str] = ()
        self._groups: tuple[Sequence[int], Sequence[int]] = ((), ())
        self._steps: npt.NDArray[np.int8] = np.empty((0, 0), np.int8)
        self._wide = self._high = 0
        self._styles: list[Style] = []

    def draw(
        self,
        values: npt.ArrayLike,
        rows: Sequence[str],
        columns: Sequence[str],
        *,
        limit: float | None = None,
        row_groups: Sequence[int] = (),
        column_groups: Sequence[int] = (),
    ) -> None:
        """Show other values; the cursor stays where it is if it can.

        Args:
            values: [row, column].
            rows: a label for each row.
            columns: a label for each column.
            limit: the magnitude with the strongest colour; the largest there is if not given.
            row_groups: a number for each row, such as its family; labels of one number are of one colour.
            column_groups: the same for the columns.
        """
        self.values = np.asarray(values, np.float64)
        self.limit = shades.limit(self.values) if limit is None else limit
        self._steps = shades.steps(self.values, self.limit)
        self._rows, self._columns = [plain(label) for label in rows], [plain(label) for label in columns]
        self._groups = (row_groups, column_groups)
        self._wide = min(LABEL, max(map(cell_len, self._rows), default=0)) + 1
        self._high = min(_HEAD, max(map(len, columns), default=0))
        self.virtual_size = Size(self._wide + len(columns) * self.cell, self._high + len(rows))
        self.cursor = self._inside(*self.cursor)
        self.refresh()
        if self.values.size:
            self.post_message(self.Moved(*self.cursor))

    @property
    def legend(self) -> str:
        """What the signs in the cells mean."""
        digits = "+7 is" if self.cell == 2 else "7 is, and negative h is -,"
        return f"{digits} 0.7 to 0.8 of {self.limit:.3g}; · is no value"

    def texts(self, row: int, first: int, last: int) -> list[str]:
        """What stands in the cells of a row from column `first` to before `last`, `cell` columns each."""
        return shades.texts(self._steps[row, first:last], self.cell)

    def on_mount(self) -> None:
        """Take the colours of the theme."""
        self.app.theme_changed_signal.subscribe(self, lambda _: self._recolour())
        self._recolour()

    def watch_cursor(self, old: tuple[int, int], new: tuple[int, int]) -> None:
        """Keep the cursor in sight and tell where it is."""
        self._reveal(*new)
        width = self.size.width
        for row in {old[0], new[0]}:
            self.refresh(Region(0, self._high + row - self.scroll_offset.y, width, 1))
        self.refresh(Region(0, 0, width, self._high))
        if self.values.size:
            self.post_message(self.Moved(*new))

    def action_move(self, rows: int, columns: int) -> None:
        """Move the cursor."""
        self.cursor = self._inside(self.cursor[0] + rows, self.cursor[1] + columns)

    def action_pick(self) -> None:
        """Open the cell under the cursor."""
        if self.values.size:
            self.post_message(self.Picked(*self.cursor))

    def on_click(self, event: events.Click) -> None:
        """The cursor goes to the cell under the mouse; a second click opens it."""
        row = event.y - self._high + self.scroll_offset.y
        column = (event.x - self._wide + self.scroll_offset.x) // self.cell
        if event.y < self._high or event.x < self._wide or not self.values.size:
            return
        if self._inside(row, column) == (row, column):
            if self.cursor == (row, column):
                self.action_pick()
            self.cursor = (row, column)

    def render_line(self, y: int) -> Strip:
        """One line: the labels of the columns, or a row."""
        width = self.size.width
        if y < self._high:
            return self._head(y).crop_extend(0, width, self.rich_style)
        row = y - self._high + self.scroll_offset.y
        if row >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        return self._row(row).crop_extend(0, width, self.rich_style)

    def _row(self, row: int) -> Strip:
        first, last, skipped = self._seen()
        here = row == self.cursor[0]
        label = Segment(fitted(self._rows[row], self._wide - 1) + " ", self._label_style(0, row, here=here))
        segments: list[Segment] = []
        texts = self.texts(row, first, last)
        for place in self._cut(first, last, skipped):  # a part of a number would be read as another number
            texts[place] = " " * self.cell
        for column, (text, step) in enumerate(zip(texts, self._steps[row, first:last], strict=True), start=first):
            style = self._styles[step + shades.STRONGEST]
            if here and column == self.cursor[1]:
                style = style + Style(reverse=True, bold=True)
            segments.append(Segment(text, style))
        cells = Strip(segments).crop(skipped)
        return Strip.join([Strip([label]), cells])

    def _head(self, y: int) -> Strip:
        first, last, skipped = self._seen()
        segments = []
        for column in range(first, last):
            label = self._columns[column]
            sign = (label if len(label) <= self._high else f"…{label[1 - self._high :]}").rjust(self._high)[y]
            sign = sign if cell_len(sign) <= self.cell else "?"
            style = self._label_style(1, column, here=column == self.cursor[1])
            segments.append(Segment(" " * (self.cell - cell_len(sign)) + sign, style))
        return Strip.join([Strip([Segment(" " * self._wide, self.rich_style)]), Strip(segments).crop(skipped)])

    def _seen(self) -> tuple[int, int, int]:
        """First column in sight, the one behind the last, and how much of the first is out of sight."""
        first, skipped = divmod(self.scroll_offset.x, self.cell)
        room = self.scrollable_content_region.width - self._wide + skipped
        return first, min(len(self._columns), first + -(-max(0, room) // self.cell)), skipped

    def _cut(self, first: int, last: int, skipped: int) -> set[int]:
        """Which of the cells in sight are so in part only: the first, the last."""
        room = self.scrollable_content_region.width - self._wide
        ends = (last - first) * self.cell - skipped
        cut = ({0} if skipped else set()) | ({last - first - 1} if ends > room else set())
        return cut & set(range(last - first))

    def _label_style(self, side: int, place: int, *, here: bool) -> Style:
        style = self.get_component_rich_style("heatmap--here" if here else "heatmap--label")
        if self._groups[side]:
            style = style + Style(color=shades.group(self._groups[side][place], dark=self.app.current_theme.dark))
        return style

    def _recolour(self) -> None:
        base = Color.parse(self.app.theme_variables["background"])
        self._styles = shades.styles(base, dark=self.app.current_theme.dark)
        if self.app.no_color:  # greys would say nothing, and hide the cursor
            self._styles = [Style()] * len(self._styles)
        self.refresh()

    def _inside(self, row: int, column: int) -> tuple[int, int]:
        n_rows, n_columns = self.values.shape
        return max(0, min(row, n_rows - 1)), max(0, min(column, n_columns - 1))

    def _reveal(self, row: int, column: int) -> None:
        seen = self.scrollable_content_region
        rows, columns = seen.height - self._high, seen.width - self._wide
        if rows < 1 or columns < 1:
            return
        x, y = self.scroll_offset
        left, right = column * self.cell, (column + 1) * self.cell
        x = left if left < x else right - columns if right > x + columns else x
        y = row if row < y else row + 1 - rows if row >= y + rows else y
        self.scroll_to(x, y, animate=False)


def plain(label: str) -> str:
    """A label without what would move the rest of its line: line ends, tabs, signs that take no room."""
    signs = unicodedata.normalize("NFC", label)
    return "".join(sign if sign.isprintable() and cell_len(sign) else " " if sign.isspace() else "?" for sign in signs)


def fitted(label: str, room: int) -> str:
    """A `plain` label in so many columns: its end, which tells it from its neighbours, or spaces behind it."""
    if cell_len(label) <= room:
        return set_cell_size(label, room)
    end = label
    while cell_len(end) > room - 1:
        end = end[1:]
    return set_cell_size(f"…{end}", room)
