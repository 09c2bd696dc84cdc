"""The app: what all screens share, and the watch over the file; screens are in `screens`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from textual.app import App
from textual.binding import Binding, BindingType
from textual.reactive import var

from circuitdb.errors import LockedDatabase, StoreError
from circuitdb.tui import themes
from circuitdb.tui.access import Access
from circuitdb.tui.catalogue import Catalogue
from circuitdb.tui.commands import Commands
from circuitdb.tui.frame import Frame, heading, sentence
from circuitdb.tui.help import Help
from circuitdb.tui.screens import SCREENS
from circuitdb.tui.selection import Selection

if TYPE_CHECKING:
    from circuitdb.queries.database import Database
    from circuitdb.queries.extent import Extent

T = TypeVar("T")
_EVERY_S = 1.0  # between two looks at the file


class Browser(App[None]):
    """The circuit browser.

    Attributes:
        selection: the circuits and settings that all screens share.
        catalogue: all circuits of the database, read anew when the file has changed.
        extent: how much the database held when it was last read; None before.
        problem: heading and text of what keeps every screen from showing anything; None if nothing does.
        busy: how many questions wait for their answers.
    """

    TITLE = "circuitdb"
    CSS_PATH = "app.tcss"
    MODES = cast("ClassVar[dict[str, Callable[[], Frame]]]", {entry.mode: entry.make for entry in SCREENS})  # type: ignore[assignment]
    DEFAULT_MODE = SCREENS[0].mode
    COMMANDS = App.COMMANDS | {Commands}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "Help", key_display="?", tooltip="List the keys of this screen"),
        Binding("f1", "help", "Help", show=False, tooltip="List the keys of this screen"),
        Binding("ctrl+p", "command_palette", "Commands", show=False, tooltip="Find a command by its name"),
        Binding("t", "next_theme", "Theme", show=False, tooltip="Dark, light or high contrast"),
        Binding("q", "quit", "Quit", tooltip="Leave the browser"),
        Binding("ctrl+q", "quit", "Quit", show=False, priority=True, tooltip="Leave the browser"),
        *(
            Binding(entry.key, f"open('{entry.mode}')", entry.title, show=False, tooltip=f"Open {entry.title}")
            for entry in SCREENS
        ),
    ]

    selection: var[Selection] = var(Selection())
    catalogue: var[Catalogue] = var(Catalogue())
    extent: var[Extent | None] = var["Extent | None"](None)
    problem: var[tuple[str, str] | None] = var[tuple[str, str] | None](("Reading ...", ""))
    busy: var[int] = var(0)

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 10.0) -> None:
        """`path`: the database file, which need not be there yet; `timeout`: seconds to wait for one that writes."""
        super().__init__()
        self.access = Access(path, timeout=timeout)
        self.register_theme(themes.HIGH_CONTRAST)
        self._fresh = True

    @property
    def tabs(self) -> list[tuple[str, str, str]]:
        """(key, mode, title) of each screen."""
        return [(entry.key, entry.mode, entry.title) for entry in SCREENS]

    @property
    def shown_path(self) -> str:
        """The file, from the home folder if it is there."""
        path = Path(self.access.path)
        home = Path.home()
        return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)

    def on_mount(self) -> None:
        """Begin to watch the file."""
        self.run_worker(self._watch_file(), group="watch")

    async def _watch_file(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(_EVERY_S)

    async def look(self) -> None:
        """See whether the file has changed, and read its circuits if so."""
        try:
            found = await self.access.news()
            if found is None:
                return
            self.catalogue = await self.access.ask(lambda db: Catalogue.of(db.circuits()))
        except Exception as error:
            self.access.forget()
            # While somebody writes, what is shown stays; a question that waited in vain says so itself.
            if not isinstance(error, LockedDatabase) or not self.catalogue.entries:
                self.problem = heading(error), sentence(error)
        else:
            self.extent = found
            self._take_in()

    def _take_in(self) -> None:
        """Keep of the selection what is still there; the first time, choose the first group of circuits."""
        known = self.catalogue.entries
        if self._fresh and known:
            self._fresh = False
            first = known[0].path
            group = [e.circuit_id for e in known if (e.path[:2], e.path[3]) == (first[:2], first[3])]
            self.selection = self.selection.adding(group)
        self.selection = self.selection.among(self.catalogue.ids)
        self.problem = None if known else (
            "The database holds no circuit yet",
            f"Fill it in another terminal: circuitdb ingest --db {self.access.path} --model NAME --task addition\n"
            "Its circuits appear here by themselves.",
        )  # fmt: skip

    async def asking(
        self,
        question: Callable[[Database], T],
        then: Callable[[T], None],
        otherwise: Callable[[str], None] | None,
        delay: float,
    ) -> None:
        """Ask the database and hand on what it answers: see `Frame.ask`."""
        if delay:
            await asyncio.sleep(delay)
        self.busy += 1
        try:
            answer = await self.access.ask(question)
        except Exception as error:
            if isinstance(error, StoreError):
                self.problem = heading(error), sentence(error)
                self.access.forget()
            if otherwise is not None:
                otherwise(sentence(error))
            elif not isinstance(error, StoreError):
                self.notify(sentence(error), severity="error", markup=False)
        else:
            then(answer)
        finally:
            self.busy -= 1

    def action_open(self, mode: str) -> None:
        """Open a screen."""
        if mode in self.MODES:
            self.switch_mode(mode)

    def look_at(self, circuit: int) -> None:
        """Open the screen of one circuit."""
        self.selection = self.selection.looking_at(circuit)
        self.action_open("circuit")

    def compare(self, first: int, second: int) -> None:
        """Open the screen that compares two circuits."""
        self.selection = self.selection.comparing(first, second)
        self.action_open("compare")

    def action_help(self) -> None:
        """List the keys of this screen."""
        if not isinstance(self.screen, Help):
            titles = {entry.mode: entry.title for entry in SCREENS}
            mode = self.current_mode
            self.push_screen(Help(titles.get(mode, mode.capitalize()), self.screen.active_bindings))

    def action_next_theme(self) -> None:
        """The next of dark, light and high contrast."""
        self.theme = themes.after(self.theme)
