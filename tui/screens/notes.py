"""The notes: the user's own words on circuits, nodes and edges; written, changed and deleted here."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from circuitdb.errors import UsageError
from circuitdb.tui.dialogs import Confirm
from circuitdb.tui.screen import View
from circuitdb.tui.widgets.note_form import Draft, NoteForm
from circuitdb.tui.widgets.pages import Column, Pages, Row
from circuitdb.words import count

if TYPE_CHECKING:
    from circuitdb.queries.database import Database

_GAPS = 14  # behind each of the five columns, at the sides, and the scroll bar
_LEAST_WORDS = 16


class Notes(View[pa.Table]):
    """A table of the notes; below it the whole note in the line."""

    MODE = "notes"
    CSS_PATH = "notes.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "new", "New", tooltip="Write a note"),
        Binding("w", "change", "Change", tooltip="Change the words of the note in the line; so does Enter"),
        Binding("d", "delete", "Delete", tooltip="Delete the note in the line, after a question"),
        Binding("o", "only", "Chosen only", tooltip="Only the notes on the chosen circuits, or all again"),
        Binding("c", "circuit", "Circuit", tooltip="Look at the circuit of the note in the line"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.only_chosen = False
        self._written = 0
        self._goal: int | None = None

    def content(self) -> ComposeResult:
        """Table and whole note."""
        yield Static(id="which")
        yield Pages(id="notes")
        with VerticalScroll(id="whole"):
            yield Static(id="words")

    def depends_on(self) -> Hashable:
        """The notes in the file, and whose are wanted."""
        extent = self.browser.extent
        return (extent and extent.notes, self.selection.circuits if self.only_chosen else None, self._written)

    def question(self) -> Callable[[Database], pa.Table] | None:
        """Those of the chosen circuits, or all."""
        chosen = self.selection.circuits if self.only_chosen else None
        return None if chosen == () else partial(_asked, circuits=chosen)

    def lacking(self) -> str:
        """All notes can be had, or circuits chosen."""
        return "Press o for all notes, or 1 for the library, and there space on the circuits whose notes you want."

    def remark(self) -> tuple[str, str] | None:
        """That there are none yet, too."""
        said = super().remark()
        if said is None and self.answer is not None and not self.answer.num_rows:
            if self.only_chosen:
                return "There is no note on the chosen circuits", "Press o for all notes, or n to write one."
            return "There is no note yet", "Press n to write one: on a circuit, on a node or on an edge."
        return said

    def show(self, answer: pa.Table) -> None:
        """Fill the table; the cursor goes to the note that was written last, or stays on the one it was on."""
        numbers = answer["note_id"].to_pylist()
        here = self._goal if self._goal is not None else (self.row or {}).get("note_id")
        self._goal = None
        table = self._labelled(answer)
        total = count(answer.num_rows, "note")
        self.query_one("#which", Static).update(f"{total} on the chosen circuits" if self.only_chosen else total)

        async def fetch(offset: int, limit: int) -> pa.Table:
            return table.slice(offset, limit)

        pages = self.query_one(Pages)
        pages.show(self._columns(), answer.num_rows, fetch)
        if here in numbers:
            pages.cursor = numbers.index(here)

    def text(self) -> str:
        """All notes that are shown."""
        if self.answer is None or not self.answer.num_rows:
            return ""
        names = ("note_id", "circuit_id", "subtask", "part", "text", "created_at", "changed_at")
        rows = self.answer.to_pylist()
        lines = ["\t".join("" if row[name] is None else _flat(row[name]) for name in names) for row in rows]
        return "\n".join(["\t".join(names), *lines])

    @property
    def row(self) -> Row | None:
        """The note in the line."""
        pages = self.query_one(Pages)
        return pages.row(pages.cursor) if pages.n_rows else None

    def on_resize(self, event: events.Resize) -> None:
        """The words get the room that is left."""
        if self.answer is not None:
            self.call_after_refresh(self.show, self.answer)

    def on_pages_moved(self, message: Pages.Moved) -> None:
        """Show the whole note."""
        row = message.row
        self.query_one("#words", Static).update("" if row is None else _whole(row))

    def on_pages_picked(self, message: Pages.Picked) -> None:
        """Enter: change it."""
        self.action_change()

    def action_new(self) -> None:
        """Write a note on the circuit that is looked at, or the only chosen one, unless another is typed."""
        chosen = self.selection.circuits
        circuit = self.selection.circuit or (chosen[0] if len(chosen) == 1 else None)
        self._write(Draft(circuit=str(circuit or "")))

    def action_change(self) -> None:
        """Change the words."""
        row = self.row
        if row is not None:
            circuit = "" if row["circuit_id"] is None else str(row["circuit_id"])
            self._write(Draft(circuit, row["part"] or "", row["text"], row["note_id"]))

    def action_delete(self) -> None:
        """Delete the note, after a question."""
        row = self.row
        if row is None:
            return
        number, words = row["note_id"], _flat(row["text"])

        def answered(sure: bool | None) -> None:
            if sure:
                self._do(lambda db: db.delete_note(number), self._done, self._told)

        self.app.push_screen(
            Confirm(f"Delete note {number}?", words if len(words) <= 200 else words[:199] + "…"), answered
        )

    def action_only(self) -> None:
        """The notes of the chosen circuits, or all."""
        self.only_chosen = not self.only_chosen
        self.renew()

    def action_circuit(self) -> None:
        """Look at the circuit of the note."""
        row = self.row
        if row is not None and row["circuit_id"] in self.catalogue.by_id:
            if "circuit" in self.browser.MODES:
                self.browser.look_at(row["circuit_id"])
            else:
                self.browser.selection = self.selection.looking_at(row["circuit_id"])

    def _write(self, draft: Draft, refused: str = "") -> None:
        def answered(found: Draft | None) -> None:
            if found is not None:
                # What could not be saved is shown again, with the reason: no words are lost.
                self._do(partial(_saved, draft=found), self._done, partial(self._write, found))

        self.app.push_screen(NoteForm(draft, refused), answered)

    def _do(
        self,
        act: Callable[[Database], int | None],
        then: Callable[[int | None], None],
        otherwise: Callable[[str], None],
    ) -> None:
        self._written += 1
        # A group of its own: the next one must not stop it halfway.
        self.ask(act, then, group=f"write {self._written}", otherwise=otherwise)

    def _done(self, number: int | None) -> None:
        self._goal = number
        self._written += 1
        self.renew()

    def _told(self, failure: str) -> None:
        self.notify(failure, severity="error", markup=False)

    def _labelled(self, answer: pa.Table) -> pa.Table:
        labels = [None if i is None else self.catalogue.label(i) for i in answer["circuit_id"].to_pylist()]
        return answer.append_column("label", pa.array(labels, pa.string()))

    def _columns(self) -> list[Column]:
        width = self.size.width
        label, part = (18, 14) if width < 110 else (28, 24)
        number, day = 4, 10
        words = max(_LEAST_WORDS, width - number - label - part - day - _GAPS)
        return [
            Column("note_id", "#", number, right=True),
            Column("label", "circuit", label),
            Column("part", "node or edge", part),
            Column("text", "words", words, form=_flat),
            Column("created_at", "written", day, form=lambda at: f"{at:%Y-%m-%d}"),
        ]


def _asked(db: Database, *, circuits: tuple[int, ...] | None) -> pa.Table:
    """The notes, times in UTC without their zone: with it, Python's values of them would take pandas."""
    table = (db.notes() if circuits is None else db.notes(circuits=circuits)).table
    part = [edge or node for node, edge in zip(table["node"].to_pylist(), table["edge"].to_pylist(), strict=True)]
    for name in ("created_at", "changed_at"):
        table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.timestamp("us")))
    return table.append_column("part", pa.array(part, pa.string()))


def _saved(db: Database, *, draft: Draft) -> int:
    """Write the note or its other words; its number."""
    if draft.note is not None:
        db.change_note(draft.note, draft.text)
        return draft.note
    if draft.circuit and not draft.circuit.lstrip("#").isdecimal():
        raise UsageError(f"A circuit is given by its number, such as 3, not as {draft.circuit!r}.")
    circuit = int(draft.circuit.lstrip("#")) if draft.circuit else None
    return db.add_note(draft.text, circuit=circuit, about=draft.about or None)


def _whole(row: dict[str, Any]) -> Content:
    """A note with all that is known of it."""
    on = [str(row[key]) for key in ("part", "model", "task", "subtask", "method") if row[key] is not None]
    on += [] if row["circuit_id"] is None else [f"circuit {row['circuit_id']}"]
    changed = "" if row["changed_at"] is None else f", changed {row['changed_at']:%Y-%m-%d %H:%M}"
    when = f"written {row['created_at']:%Y-%m-%d %H:%M}{changed} UTC"
    return Content.assemble((f"Note {row['note_id']}", "bold"), f"  {', '.join(on)}\n{when}\n\n{row['text']}")


def _flat(value: object) -> str:
    """A text in one line."""
    return " ".join(str(value).split())
