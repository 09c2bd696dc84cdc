"""A table of any length: only the rows in sight are fetched, page by page, in the background."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

Fetch: TypeAlias = "Callable[[int, int], Awaitable[pa.Table]]"
Row: TypeAlias = "dict[str, Any]"
PAGE = 200
_KEPT = 64  # pages
_REST_S = 0.02  # a scroll that goes on does not fetch what it passes
_GAP = 2


@dataclass(frozen=True)
class Column:
    """A column: its name in the table, its heading, its width, and how a value is written."""

    name: str
    title: str
    width: int
    right: bool = False
    form: Callable[[Any], str] = str

    def text(self, value: object) -> str:
        """The cell, cut to the width; nothing for NULL."""
        found = "" if value is None else self.form(value)
        return _fit(found, self.width, right=self.right)


class Pages(ScrollView, can_focus=True):
    """Shows `n_rows` rows that `fetch(offset, limit)` gives as Arrow tables; the heading stays at the top."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "Up", show=False, tooltip="Move by a row"),
        Binding("down", "move(1)", "Down", show=False, tooltip="Move by a row"),
        Binding("pageup", "screen(-1)", "Page up", show=False, tooltip="Move by a page"),
        Binding("pagedown", "screen(1)", "Page down", show=False, tooltip="Move by a page"),
        Binding("home", "edge(0)", "First", show=False, tooltip="First row"),
        Binding("end", "edge(1)", "Last", show=False, tooltip="Last row"),
        Binding("enter", "pick", "Open", tooltip="Open the row under the cursor"),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {"pages--head", "pages--cursor"}
    DEFAULT_CSS = """
    Pages {
        height: 1fr;
        background: $background;
        & > .pages--head { text-style: bold underline; color: $text; }
        & > .pages--cursor { background: $block-cursor-blurred-background; text-style: bold; }
        &:focus > .pages--cursor { background: $block-cursor-background; color: $block-cursor-foreground; }
        &:nocolor > .pages--cursor { text-style: reverse; }
    }
    """

    cursor: reactive[int] = reactive(0, repaint=False)

    class Moved(Message):
        """The cursor came to another row; its values are None until they are fetched."""

        def __init__(self, place: int, row: Row | None) -> None:
            super().__init__()
            self.place, self.row = place, row

        def can_replace(self, message: Message) -> bool:
            """Only the last of several counts."""
            return isinstance(message, Pages.Moved)

    class Picked(Message):
        """Enter or a second click on a row."""

        def __init__(self, place: int, row: Row) -> None:
            super().__init__()
            self.place, self.row = place, row

    class HeadPicked(Message):
        """A click on a heading: the screen may sort by it."""

        def __init__(self, column: str) -> None:
            super().__init__()
            self.column = column

    class Failed(Message):
        """Rows could not be fetched."""

        def __init__(self, error: Exception) -> None:
            super().__init__()
            self.error = error

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.n_rows = 0
        self._columns: tuple[Column, ...] = ()
        self._fetch: Fetch | None = None
        self._pages: OrderedDict[int, list[Row]] = OrderedDict()

    def show(self, columns: Sequence[Column], n_rows: int, fetch: Fetch) -> None:
        """Show another table, from its first row.

        Args:
            columns: what is shown of it.
            n_rows: how many rows it has.
            fetch: gives the rows from an offset on, at most so many; awaited on the event loop, so it must hand the
                work to a thread, as `Access.ask` does.
        """
        self._columns, self.n_rows, self._fetch = tuple(columns), n_rows, fetch
        self._pages.clear()
        width = sum(column.width + _GAP for column in columns)
        self.virtual_size = Size(width, n_rows + 1)
        self.scroll_to(0, 0, animate=False)
        self.set_reactive(Pages.cursor, 0)
        self._want()
        self.refresh()

    def row(self, place: int) -> Row | None:
        """The values of a row by name, if they are fetched."""
        page, within = divmod(place, PAGE)
        rows = self._pages.get(page)
        return rows[within] if rows is not None and within < len(rows) else None

    def text(self) -> str:
        """The rows in sight, headings first, columns parted by tabs."""
        first = self.scroll_offset.y
        places = range(first, min(self.n_rows, first + self._room))
        rows = [row for place in places if (row := self.row(place)) is not None]
        lines = ["\t".join(c.title for c in self._columns)]
        lines += ["\t".join(c.text(row[c.name]).strip() for c in self._columns) for row in rows]
        return "\n".join(lines)

    def validate_cursor(self, place: int) -> int:
        """A row that there is."""
        return max(0, min(place, self.n_rows - 1))

    def watch_cursor(self, old: int, new: int) -> None:
        """Keep the cursor in sight and tell where it is."""
        room = self._room
        top = self.scroll_offset.y
        self.scroll_to(y=new if new < top else new + 1 - room if new >= top + room else top, animate=False)
        for place in {old, new}:
            self.refresh(Region(0, 1 + place - self.scroll_offset.y, self.size.width, 1))
        if self.n_rows:
            self.post_message(self.Moved(new, self.row(new)))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Fetch what comes into sight."""
        super().watch_scroll_y(old_value, new_value)
        self._want()

    def on_resize(self) -> None:
        """Fetch what comes into sight."""
        self._want()

    def action_move(self, rows: int) -> None:
        """Move the cursor."""
        self.cursor += rows

    def action_screen(self, pages: int) -> None:
        """Move by as many rows as are in sight."""
        self.cursor += pages * self._room

    def action_edge(self, which: int) -> None:
        """Go to the first or the last row."""
        self.cursor = self.n_rows - 1 if which else 0

    def action_pick(self) -> None:
        """Open the row under the cursor."""
        if (row := self.row(self.cursor)) is not None:
            self.post_message(self.Picked(self.cursor, row))

    def on_click(self, event: events.Click) -> None:
        """The cursor goes to the row under the mouse; a second click opens it. A heading is told to the screen."""
        if event.y == 0:
            end = -self.scroll_offset.x
            for column in self._columns:
                end += column.width + _GAP
                if event.x < end:
                    self.post_message(self.HeadPicked(column.name))
                    return
            return
        place = event.y - 1 + self.scroll_offset.y
        if place < self.n_rows:
            if place == self.cursor:
                self.action_pick()
            self.cursor = place

    def render_line(self, y: int) -> Strip:
        """The heading, or a row."""
        x, width = self.scroll_offset.x, self.size.width
        if y == 0:
            text = "".join(_fit(c.title, c.width, right=c.right) + " " * _GAP for c in self._columns)
            style = self.get_component_rich_style("pages--head")
        else:
            place = y - 1 + self.scroll_offset.y
            if place >= self.n_rows:
                return Strip.blank(width, self.rich_style)
            row = self.row(place)
            cells = "..." if row is None else None
            text = cells or "".join(c.text(row[c.name]) + " " * _GAP for c in self._columns if row is not None)
            style = self.get_component_rich_style("pages--cursor") if place == self.cursor else Style()
        return Strip([Segment(text, self.rich_style + style)]).crop_extend(x, x + width, self.rich_style + style)

    @property
    def _room(self) -> int:
        """Rows in sight."""
        return max(1, self.scrollable_content_region.height - 1)

    def _want(self) -> None:
        """Fetch the pages in sight that are not there yet; what was wanted before is dropped."""
        if self._fetch is not None and self.n_rows and self.is_mounted:
            # As a function: a coroutine that is cancelled before it begins would be warned of.
            self.run_worker(self._fill, group="pages", exclusive=True)  # type: ignore[arg-type]

    async def _fill(self) -> None:
        await asyncio.sleep(_REST_S)
        fetch = self._fetch
        if fetch is None:
            return
        first = self.scroll_offset.y // PAGE
        last = min(self.n_rows - 1, self.scroll_offset.y + self.size.height) // PAGE
        for page in range(first, last + 1):
            if page in self._pages:
                self._pages.move_to_end(page)
                continue
            try:
                found = await fetch(page * PAGE, PAGE)
            except Exception as error:
                self.post_message(self.Failed(error))
                return
            self._pages[page] = found.to_pylist()
            if len(self._pages) > _KEPT:
                self._pages.popitem(last=False)
            self.refresh()
            if page == self.cursor // PAGE:
                self.post_message(self.Moved(self.cursor, self.row(self.cursor)))


def _fit(text: str, width: int, *, right: bool) -> str:
    """Exactly so many columns of the terminal, of which some characters take two."""
    text = "".join(c if c.isprintable() else " " for c in text)
    wide = cell_len(text)
    if wide > width:
        return set_cell_size(text, max(0, width - 1)) + "…"
    return " " * (width - wide) + text if right else text + " " * (width - wide)
