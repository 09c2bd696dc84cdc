"""Small windows over a screen: a line to type, a list to choose from, a question of yes or no."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

_STYLE = """
Line, Choice, Confirm {
    align: center middle;
    background: $background 60%;
    & > Vertical {
        width: 72;
        max-width: 95%;
        height: auto;
        max-height: 95%;
        padding: 0 2 1 2;
        border: round $primary;
        background: $surface;
    }
    & .title { text-style: bold; }
    & .below { color: $text-muted; }
    & Input { background: $boost; }
    & OptionList { height: auto; max-height: 16; background: $surface; border: none; padding: 0; }
    &:nocolor OptionList > .option-list--option-highlighted { text-style: reverse; }
}
"""


class Line(ModalScreen[str | None]):
    """Asks for one line; gives it without blanks around it, None if it was left or empty."""

    DEFAULT_CSS = _STYLE
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "Cancel", tooltip="Leave it")]

    def __init__(self, title: str, value: str = "", below: str = "") -> None:
        super().__init__()
        self.title, self.value, self.below = title, value, below

    def compose(self) -> ComposeResult:
        """Title, field, what to know."""
        with Vertical():
            yield Static(Content(str(self.title)), classes="title")
            yield Input(self.value, compact=True)
            yield Static(Content(self.below or "Enter takes it, Escape leaves it."), classes="below")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take what was typed."""
        self.dismiss(event.value.strip() or None)


class Choice(ModalScreen[int | None]):
    """Asks for one of several texts, with a field that leaves those that have every word; gives its place, or None."""

    DEFAULT_CSS = _STYLE
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel", tooltip="Leave it"),
        Binding("down", "move(1)", "Down", show=False, tooltip="The next"),
        Binding("up", "move(-1)", "Up", show=False, tooltip="The one before"),
    ]

    def __init__(self, title: str, texts: Sequence[str]) -> None:
        super().__init__()
        self.title = title
        self.texts = tuple(" ".join(text.split()) for text in texts)

    def compose(self) -> ComposeResult:
        """Title, field, list."""
        with Vertical():
            yield Static(Content(str(self.title)), classes="title")
            yield Input(placeholder="type to find", compact=True)
            yield OptionList(compact=True)
            yield Static("Enter takes it, Escape leaves it.", classes="below")

    def on_mount(self) -> None:
        """Show all of them."""
        self.query_one(OptionList).can_focus = False
        self._fill("")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Leave those that have every word."""
        self._fill(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the one in the line."""
        options = self.query_one(OptionList)
        if options.highlighted is not None:
            self._take(options.get_option_at_index(options.highlighted))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Take the one that was clicked."""
        self._take(event.option)

    def action_move(self, lines: int) -> None:
        """Move in the list."""
        options = self.query_one(OptionList)
        if options.option_count:
            options.highlighted = ((options.highlighted or 0) + lines) % options.option_count

    def _fill(self, words: str) -> None:
        wanted = words.lower().split()
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(
            Option(Content(text), id=str(place))
            for place, text in enumerate(self.texts)
            if all(word in text.lower() for word in wanted)
        )
        if options.option_count:
            options.highlighted = 0

    def _take(self, option: Option) -> None:
        self.dismiss(int(option.id or 0))


class Confirm(ModalScreen[bool]):
    """Asks whether to go on; only y says so."""

    DEFAULT_CSS = _STYLE
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "Yes", tooltip="Go on"),
        Binding("escape,n,enter,q", "dismiss(False)", "No", tooltip="Leave it"),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self.title, self.text = title, text

    def compose(self) -> ComposeResult:
        """The question."""
        with Vertical():
            yield Static(Content(str(self.title)), classes="title")
            yield Static(Content(self.text))
            yield Static("y does it, Escape leaves it.", classes="below")
