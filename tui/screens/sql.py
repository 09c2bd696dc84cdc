"""SQL: a statement of the user's own, read only as in `circuitdb sql`, its answer paged from disk."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from circuitdb.errors import CircuitdbError
from circuitdb.queries import export, spool
from circuitdb.queries.spool import Spool
from circuitdb.tui import grid, sqltext
from circuitdb.tui.dialogs import Choice, Line
from circuitdb.tui.frame import Frame
from circuitdb.tui.shelf import Shelf
from circuitdb.tui.sqltext import Vocabulary
from circuitdb.tui.widgets.pages import Pages
from circuitdb.tui.widgets.sql_editor import SqlEditor
from circuitdb.words import count

if TYPE_CHECKING:
    from circuitdb.queries.database import Database

_FIRST = "SELECT subtask, accuracy\nFROM circuits\nORDER BY accuracy DESC\n"
_WORDS = 6  # that are listed at a time
_TICK_S = 0.25


class SQL(Frame):
    """Editor, what is to be said, rows.

    Attributes:
        spool: the rows of the last answer; None before the first.
        running: when the statement that runs was begun; None while none does.
    """

    MODE = "sql"
    CSS_PATH = "sql.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f5,ctrl+j", "run", "Run", tooltip="Run the statement under the cursor, or what is marked"),
        Binding("escape", "leave", "Stop", show=False, tooltip="Stop the statement; to the rows, and back to the text"),
        Binding("f2", "keep", "Save", tooltip="Save the statement under a name"),
        Binding("f3", "saved", "Saved", tooltip="Take a saved statement"),
        Binding("f4", "history", "History", tooltip="Take a statement that was run before"),
        Binding("ctrl+up", "step(-1)", "Earlier", show=False, tooltip="The statement that was run before this one"),
        Binding("ctrl+down", "step(1)", "Later", show=False, tooltip="The statement that was run after this one"),
        Binding("f8", "write", "Write rows", tooltip="Write all rows into a CSV, JSON or Parquet file"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.shelf = Shelf()
        self.spool: Spool | None = None
        self.running: float | None = None
        self._statement = ""
        self._n_rows = 0
        self._place: int | None = None
        self._draft = ""
        self._knows: object = None

    def content(self) -> ComposeResult:
        """Editor, words offered, message, rows."""
        history = self.shelf.history
        yield SqlEditor(history[-1] if history else _FIRST, id="editing")
        yield Static(id="offered")
        yield Static("F5 runs it, Escape leaves it, F1 lists the keys. It can only read.", id="told", markup=False)
        yield Pages(id="rows")

    def on_mount(self) -> None:
        """Show how long a statement runs."""
        super().on_mount()
        self.set_interval(_TICK_S, self._tick)
        editor = self.query_one(SqlEditor)
        editor.move_cursor(editor.document.end)
        # There is something to write in at once, with no notice before it that would hand the focus on.
        self.call_after_refresh(self.focus_content)

    def text(self) -> str:
        """The rows in sight."""
        return self.query_one(Pages).text() if self.spool is not None else ""

    def renew(self) -> None:
        """Learn the words of the file, when it can be read."""
        super().renew()
        known = self.browser.extent and self.browser.extent.evaluations  # added tables have names of their own
        if self.is_current and self.browser.problem is None and known != self._knows:
            self._knows = known
            self.ask(_words, self._learn, group="words")

    def focus_content(self) -> None:
        """To the text."""
        self.query_one(SqlEditor).focus()

    def on_sql_editor_offered(self, message: SqlEditor.Offered) -> None:
        """List the words around the one in the line."""
        words, here = message.words, message.here
        first = max(0, min(here - _WORDS // 2, len(words) - _WORDS))
        lines = []
        for i, word in enumerate(words[first : first + _WORDS], start=first):
            of = f" of {word.of}" if word.kind == "column" and word.of else f"({word.of})" if word.of else ""
            mark = ">" if i == here else " "
            lines.append(Content.assemble((f"{mark} {word.text}", "bold" if i == here else ""), f"  {word.kind}{of}"))
        listed = self.query_one("#offered", Static)
        listed.update(Content("\n").join(lines))
        listed.set_class(bool(words), "-some")

    def on_click(self, event: events.Click) -> None:
        """A click on a word takes it."""
        listed = self.query_one("#offered", Static)
        editor = self.query_one(SqlEditor)
        if event.widget is listed and editor.offered:
            first = max(0, min(editor.here - _WORDS // 2, len(editor.offered) - _WORDS))
            editor.take(min(len(editor.offered) - 1, first + event.y))
            editor.focus()

    def action_run(self) -> None:
        """Run what is marked, or the statement under the cursor."""
        editor = self.query_one(SqlEditor)
        editor.action_no_word()
        statement = editor.selected_text.strip() or sqltext.statement_at(editor.text, editor.place)
        if not statement:
            self._say("There is no statement to run; write one, or take one by F3 or F4.", wrong=True)
            return
        with suppress(CircuitdbError):  # a history that can't be written keeps nothing from running
            self.shelf.remember(statement)
        self._place, self._statement = None, statement
        self.running, self._n_rows = time.monotonic(), 0
        question = partial(_asked, statement=statement, told=self._count)
        self.ask(question, self._answered, group="sql", otherwise=self._failed)
        self._tick()

    def action_leave(self) -> None:
        """Stop what runs; else from the text to the rows, and back."""
        if self.running is not None:
            self.workers.cancel_group(self, "sql")
            self.running = None
            self._say("Stopped.")
        elif self.query_one(SqlEditor).has_focus and self.spool is not None:
            self.query_one(Pages).focus()
        elif self.query_one(SqlEditor).has_focus:  # there are no rows; without this no digit would open a screen
            self.set_focus(None)
        else:
            self.query_one(SqlEditor).focus()

    def action_keep(self) -> None:
        """Save the statement under a name."""
        editor = self.query_one(SqlEditor)
        statement = editor.selected_text.strip() or sqltext.statement_at(editor.text, editor.place)

        def answered(name: str | None) -> None:
            if name is not None:
                try:
                    self.shelf.save(name, statement)
                except CircuitdbError as error:
                    self._say(str(error), wrong=True)
                else:
                    self._say(f"Saved as {self.shelf.folder / 'sql' / name}.sql; F3 takes it again.")

        if statement:
            self.app.push_screen(
                Line("Save the statement as", below="A name; one that is there is replaced."), answered
            )

    def action_saved(self) -> None:
        """Take a saved statement."""
        names = self.shelf.names

        def answered(place: int | None) -> None:
            if place is not None:
                try:
                    self._put(self.shelf.read(names[place]))
                except CircuitdbError as error:
                    self._say(str(error), wrong=True)

        if names:
            self.app.push_screen(Choice("Saved statements", names), answered)
        else:
            self._say("No statement is saved yet; F2 saves the one under the cursor.")

    def action_history(self) -> None:
        """Take a statement that was run before."""
        past = self.shelf.history[::-1]

        def answered(place: int | None) -> None:
            if place is not None:
                self._put(past[place])

        if past:
            self.app.push_screen(Choice("History, the last one first", past), answered)
        else:
            self._say("No statement was run yet.")

    def action_step(self, step: int) -> None:
        """One back or forth in the history; behind the newest is what was being written."""
        past = self.shelf.history
        editor = self.query_one(SqlEditor)
        if self._place is None:
            self._draft = editor.text
        here = len(past) if self._place is None else self._place
        if self._place is None and step < 0 and past and past[-1] == editor.text.strip():
            here -= 1  # it is shown already
        here = max(0, min(len(past), here + step))
        if not past or here == self._place:
            return
        self._put(past[here] if here < len(past) else self._draft)
        self._place = here if here < len(past) else None

    def action_write(self) -> None:
        """Write all rows into a file."""
        rows = self.spool
        if rows is None:
            self._say("There are no rows to write yet; F5 runs the statement.")
            return

        def answered(name: str | None) -> None:
            if name is not None:
                self.ask(lambda _: export.save(rows, name), partial(self._wrote, name), group="write", otherwise=failed)

        def failed(failure: str) -> None:
            self._say(failure, wrong=True)

        total = count(rows.n_rows, "row")
        below = f"{total}; the name ends in .csv, .json or .parquet."
        self.app.push_screen(Line("Write the rows into", "rows.csv", below), answered)

    def on_pages_picked(self, message: Pages.Picked) -> None:
        """Enter: show the whole row, whose cells may be cut."""
        names = self.spool.schema.names if self.spool is not None else []
        cells = [f"{name}: {grid.text(message.row[grid.key(i)])}" for i, name in enumerate(names)]
        self._say("\n".join([f"Row {message.place + 1:,}", *cells]))

    def _put(self, statement: str) -> None:
        editor = self.query_one(SqlEditor)
        editor.load_text(statement)
        editor.move_cursor(editor.document.end)
        editor.focus()

    def _learn(self, found: Vocabulary) -> None:
        self.query_one(SqlEditor).vocabulary = found

    def _count(self, n_rows: int) -> None:
        self._n_rows = n_rows  # from the thread: a number, that the next tick shows

    def _tick(self) -> None:
        if self.running is not None and self.is_current:
            seconds = time.monotonic() - self.running
            self._say(f"Running for {seconds:.1f} s, {count(self._n_rows, 'row')} so far; Escape stops it.")

    def _answered(self, found: Spool) -> None:
        seconds = 0.0 if self.running is None else time.monotonic() - self.running
        self.running = None
        if self.spool is not None:
            self.spool.close()
        self.spool = found
        self._say("\n".join([f"{found.title} in {seconds:.2f} s", *found.notes]))
        pages = self.query_one(Pages)

        async def fetch(offset: int, limit: int) -> pa.Table:
            return grid.plain(found.rows(offset, limit))

        # Numbers are often longer at the end.
        ends = (found.rows(0, grid.SAMPLE), found.rows(max(grid.SAMPLE, found.n_rows - grid.SAMPLE), grid.SAMPLE))
        pages.show(grid.columns(found.schema, pa.concat_tables(ends)), found.n_rows, fetch)

    def _failed(self, failure: str) -> None:
        self.running = None
        self._say(failure, wrong=True)
        editor = self.query_one(SqlEditor)
        place = sqltext.place_of(failure, editor.text)
        if place is not None:
            editor.move_cursor(place)

    def _wrote(self, name: str, notes: tuple[str, ...]) -> None:
        self._say("\n".join([f"Written into {name}.", *notes]))

    def _say(self, text: str, *, wrong: bool = False) -> None:
        told = self.query_one("#told", Static)
        told.update(Content(text))
        told.set_class(wrong, "-wrong")


def _words(db: Database) -> Vocabulary:
    return Vocabulary.of(db.vocabulary().table.to_pylist())


def _asked(db: Database, *, statement: str, told: Callable[[int], None]) -> Spool:
    return spool.spool(db.path, statement, timeout=db.timeout, told=told)
