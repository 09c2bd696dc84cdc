"""A window to write a note in: what it is on, and the words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static, TextArea


@dataclass(frozen=True)
class Draft:
    """A note as it is being written.

    Attributes:
        circuit: the number of the circuit, as typed; nothing for a node or an edge in general.
        about: the name of a node or an edge; nothing for the circuit as a whole.
        text: the words.
        note: its number, where it is there already and only its words change.
    """

    circuit: str = ""
    about: str = ""
    text: str = ""
    note: int | None = None

    @property
    def subject(self) -> str:
        """What it is on, in words."""
        return " of ".join(part for part in (self.about, self.circuit and f"circuit {self.circuit}") if part)


class NoteForm(ModalScreen[Draft | None]):
    """Gives the draft when it is to be saved, None if it was left."""

    DEFAULT_CSS = """
    NoteForm {
        align: center middle;
        background: $background 60%;
        & > Vertical {
            width: 76;
            max-width: 95%;
            height: 17;
            max-height: 95%;
            padding: 0 2;
            border: round $primary;
            background: $surface;
        }
        & .title { text-style: bold; }
        & .below { color: $text-muted; }
        & #refused { color: $text-error; height: auto; }
        & Input { background: $boost; }
        & TextArea { height: 1fr; border: none; padding: 0; background: $boost; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save", "Save", priority=True, tooltip="Save the note"),
        Binding("escape", "dismiss(None)", "Cancel", tooltip="Leave it unsaved"),
    ]

    def __init__(self, draft: Draft, refused: str = "") -> None:
        """`refused`: why it could not be saved as it is; nothing the first time."""
        super().__init__()
        self.draft, self.refused = draft, refused

    def compose(self) -> ComposeResult:
        """The fields; what a note is on does not change later."""
        draft = self.draft
        with Vertical():
            yield Static(Content("A new note" if draft.note is None else f"Note {draft.note}"), classes="title")
            if draft.note is None:
                yield Label("Circuit, by its number; empty for a node or an edge in general")
                yield Input(draft.circuit, id="circuit", compact=True)
                yield Label("Node or edge, such as a0.h1 or a0.h1->logits; empty for the circuit")
                yield Input(draft.about, id="about", compact=True)
            else:
                yield Static(Content(f"On {draft.subject}"))
            yield Label("Words")
            yield TextArea(draft.text, id="words")
            yield Static(Content(self.refused), id="refused")
            yield Static("ctrl+s saves, Tab goes on, Escape leaves it unsaved.", classes="below")

    def on_mount(self) -> None:
        """To the words, unless it is not said yet what they are on."""
        known = self.draft.note is not None or self.draft.circuit or self.draft.about
        self.query_one("#words" if known else "#circuit").focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter goes to the next field."""
        self.focus_next()

    def action_save(self) -> None:
        """Hand the draft over."""
        draft = replace(self.draft, text=self.query_one(TextArea).text)
        if draft.note is None:
            circuit, about = self.query_one("#circuit", Input).value, self.query_one("#about", Input).value
            draft = replace(draft, circuit=circuit.strip(), about=about.strip())
        self.dismiss(draft)
