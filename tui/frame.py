"""What every screen has around it: tabs, status line, footer, a notice in the place of the content, copy and export."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import Footer, Static

from circuitdb.errors import CircuitdbError
from circuitdb.tui.widgets.notice import Notice
from circuitdb.tui.widgets.tabs import ScreenTabs, StatusLine

if TYPE_CHECKING:
    from circuitdb.queries.database import Database
    from circuitdb.tui.app import Browser
    from circuitdb.tui.catalogue import Catalogue
    from circuitdb.tui.selection import Selection

T = TypeVar("T")
LEAST = (60, 15)  # columns and lines below which no screen can be read
ROOMY = 110  # columns from which a screen may show more side by side
_MOST_COPIED = 70_000  # bytes: terminals drop an OSC 52 that is longer than 100,000 characters in base64


class Frame(Screen[None]):
    """A screen of the browser. A subclass gives `MODE`, `content` and `text`; the rest is here."""

    MODE: ClassVar[str]
    AUTO_FOCUS = ""  # the content takes it when there is something to see
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (LEAST[0], "-wide"), (ROOMY, "-roomy")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (LEAST[1], "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "copy", "Copy", tooltip="Copy what the screen shows, as text"),
        Binding("e", "export", "Export", tooltip="Save a picture of the screen as an SVG file", show=False),
    ]

    _offering: bool | None = None  # whether the keys of the screen are offered

    def compose(self) -> ComposeResult:
        """Tabs, status, notice, content, footer."""
        yield Static(f"circuitdb needs a terminal of {LEAST[0]} columns and {LEAST[1]} lines or more.", id="too-small")
        yield ScreenTabs(self.browser.tabs, self.MODE)
        yield StatusLine(id="status")
        yield Notice(id="notice")
        with Container(id="content"):
            yield from self.content()
        yield Footer(show_command_palette=False)

    @abstractmethod
    def content(self) -> ComposeResult:
        """The widgets of the screen itself."""

    @abstractmethod
    def text(self) -> str:
        """What is shown, as text to copy, columns parted by tabs; nothing where there is nothing."""

    @property
    def browser(self) -> Browser:
        """The app."""
        return cast("Browser", self.app)

    @property
    def selection(self) -> Selection:
        """What all screens share."""
        return self.browser.selection

    @property
    def catalogue(self) -> Catalogue:
        """The circuits of the database."""
        return self.browser.catalogue

    def on_mount(self) -> None:
        """Follow what the app holds."""
        for name in ("selection", "catalogue", "extent", "problem", "busy"):
            self.watch(self.app, name, self.renew, init=False)
        self.renew()

    def on_screen_resume(self) -> None:
        """Take in what changed while another screen was open."""
        if self.is_mounted:
            self.renew()

    def on_screen_tabs_chosen(self, message: ScreenTabs.Chosen) -> None:
        """Open the clicked screen."""
        self.browser.action_open(message.mode)

    def renew(self) -> None:
        """Say how things stand; called when anything that the app holds has changed. Nothing is drawn unseen."""
        if not self.is_current:
            return
        chosen, total = len(self.selection.circuits), len(self.catalogue.entries)
        busy = "reading ... " if self.browser.busy else ""
        self.query_one(StatusLine).say(f"circuitdb  {self.browser.shown_path}", f"{busy}{chosen} of {total} chosen")
        self.settle()

    def settle(self) -> None:
        """Show the content, or the notice in its place if there is something to say."""
        said = self.browser.problem or self.remark()
        if said is not None:
            self.query_one(Notice).say(*said)
        hidden = self.has_class("-notice")
        if self._offering != (self.browser.problem is None):  # the footer is built anew, which every key would wait for
            self._offering = self.browser.problem is None
            self.refresh_bindings()
        self.set_class(said is not None, "-notice")
        if hidden and said is None and self.focused is None:
            self.call_after_refresh(self.focus_content)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The screen's own keys do nothing while nothing can be shown."""
        return self.browser.problem is None or not hasattr(self, f"action_{action}") or action == "export"

    def focus_content(self) -> None:
        """Put the focus into the content."""
        for widget in self.query("#content *"):
            if widget.focusable:
                widget.focus()
                return

    def remark(self) -> tuple[str, str] | None:
        """Heading and text of what stands in the place of the content; None to show the content."""
        return None

    def ask(
        self,
        question: Callable[[Database], T],
        then: Callable[[T], None],
        *,
        group: str,
        otherwise: Callable[[str], None] | None = None,
        delay: float = 0.0,
    ) -> None:
        """Ask the database in the background and hand what it answers to `then`.

        Args:
            question: what to ask, run in a thread: it must touch no widget.
            then: gets the answer, on the event loop.
            group: what it is about; the screen's earlier question about the same is dropped, answer and all.
            otherwise: gets the sentence of a question that failed; without it the sentence pops up.
            delay: seconds to wait before, for a question that keys change quickly.
        """

        async def work() -> None:
            await self.browser.asking(question, then, otherwise, delay)

        self.run_worker(work, group=group, exclusive=True)  # type: ignore[arg-type]  # mypy solves its union to Never

    def action_copy(self) -> None:
        """Copy the text to the terminal's clipboard (OSC 52), or into a file where that can't be."""
        text = self.text()
        if not text:
            self.notify("There is nothing to copy here yet.", severity="warning")
        elif len(text.encode()) > _MOST_COPIED or os.environ.get("TERM") in ("linux", "dumb", "vt100"):
            self._save(text, ".tsv")
        else:
            self.app.copy_to_clipboard(text)
            self.notify(f"Copied {text.count(chr(10)) + 1} lines.")

    def action_export(self) -> None:
        """Save a picture of the screen into the folder that the browser was started in."""
        self._save(self.app.export_screenshot(title=f"circuitdb: {self.MODE}"), ".svg")

    def _save(self, text: str, suffix: str) -> None:
        name = f"circuitdb-{self.MODE}-{datetime.now():%Y%m%d-%H%M%S}{suffix}"
        try:
            with Path(name).open("x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            self.notify(f"{name} can't be written: {error.strerror}.", severity="error", markup=False)
        else:
            self.notify(f"Saved as {Path(name).resolve()}.", markup=False)


def sentence(error: BaseException) -> str:
    """What went wrong, for the person at the terminal."""
    if isinstance(error, CircuitdbError):
        return str(error)
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}."


def heading(error: BaseException) -> str:
    """The kind of trouble with the file, in a few words."""
    return {
        "MissingDatabase": "Waiting for the database",
        "LockedDatabase": "The database is in use",
        "SchemaMismatch": "This file can't be read",
    }.get(type(error).__name__, "The database can't be read")
