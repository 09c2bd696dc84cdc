"""The help screen: every key that works on the screen it was called from."""

from __future__ import annotations

from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

_BELOW = """
The mouse works too: click a tab, a row, a cell; turn the wheel to scroll.
In a field to type into, letters are text: leave it by Escape or Tab first.
Escape closes this."""


class Help(ModalScreen[None]):
    """The keys in two columns: the key, and what it does."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,f1,q,enter", "close", "Close")]

    def __init__(self, title: str, bindings: dict[str, ActiveBinding]) -> None:
        super().__init__()
        self.title = title
        self.keys = _keys(bindings)

    def compose(self) -> ComposeResult:
        """A scrolling table."""
        table = Table.grid(padding=(0, 2))
        for key, what in self.keys:
            table.add_row(Text(key, style="bold"), Text(what))
        with VerticalScroll(id="help"):
            yield Static(f"Keys of {self.title}\n", id="help-title")
            yield Static(table, id="help-keys")
            yield Static(_BELOW)

    def action_close(self) -> None:
        """Close the help."""
        self.dismiss()


def _keys(bindings: dict[str, ActiveBinding]) -> list[tuple[str, str]]:
    """(keys, what they do), those that do the same together."""
    found: dict[str, list[str]] = {}
    # Ours first, which have a tooltip: the screen's, the focused widget's, the app's; then those of Textual itself.
    for active in sorted(bindings.values(), key=_rank):
        what = active.tooltip or active.binding.description
        if what and active.enabled:
            found.setdefault(what, []).append(active.binding.key_display or _shown(active.binding.key))
    return [(", ".join(dict.fromkeys(keys)), what) for what, keys in found.items()]


def _rank(active: ActiveBinding) -> tuple[bool, int]:
    return not active.tooltip, 0 if isinstance(active.node, Screen) else 2 if isinstance(active.node, App) else 1


def _shown(key: str) -> str:
    from textual.keys import format_key

    return format_key(key)
