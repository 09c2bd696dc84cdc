"""An editor for SQL: coloured, with words offered while one types."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from circuitdb.tui import sqltext
from circuitdb.tui.sqltext import Span, Vocabulary, Word

if TYPE_CHECKING:
    from rich.text import Text

_FROM = 2  # letters typed from which words are offered unasked
# Told apart by weight and slant too.
_STYLES = {
    True: {
        "keyword": Style(color="#6ec6ff", bold=True),
        "relation": Style(color="#ffd166", underline=True),
        "string": Style(color="#7ee081"),
        "number": Style(color="#ffb074"),
        "comment": Style(color="#a0a0a0", italic=True),
    },
    False: {
        "keyword": Style(color="#005a9e", bold=True),
        "relation": Style(color="#7a5c00", underline=True),
        "string": Style(color="#1b7a1f"),
        "number": Style(color="#a34700"),
        "comment": Style(color="#606060", italic=True),
    },
}


class SqlEditor(TextArea):
    """Text with `vocabulary`; the list of words is drawn by who hears `Offered`.

    While words are offered, up and down move among them, tab and enter take one, escape turns them down.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "next_word(1)", "Next word", show=False, priority=True, tooltip="The next word offered"),
        Binding("up", "next_word(-1)", "Word before", show=False, priority=True, tooltip="The word offered before"),
        Binding("tab,enter", "take_word", "Take word", show=False, priority=True, tooltip="Take the word offered"),
        Binding("escape", "no_word", "No word", show=False, priority=True, tooltip="Turn the words down"),
        Binding("ctrl+@,ctrl+space", "offer", "Words", show=False, key_display="^space", tooltip="Offer words"),
    ]
    DEFAULT_CSS = """
    SqlEditor { border: none; padding: 0 1; }
    """

    class Offered(Message):
        """Other words are offered, or none; `here` is the place of the one in the line."""

        def __init__(self, words: list[Word], here: int) -> None:
            super().__init__()
            self.words, self.here = words, here

        def can_replace(self, message: Message) -> bool:
            """Only the last of several counts."""
            return isinstance(message, SqlEditor.Offered)

    def __init__(self, text: str = "", *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(text, id=id, show_line_numbers=True, compact=True, placeholder="SELECT ... FROM circuits")
        self._vocabulary = Vocabulary()
        self._spans: tuple[str, dict[int, list[Span]]] = ("", {})
        self._typed = ""
        self.offered: list[Word] = []
        self.here = 0

    @property
    def vocabulary(self) -> Vocabulary:
        """The words of the database."""
        return self._vocabulary

    @vocabulary.setter
    def vocabulary(self, found: Vocabulary) -> None:
        self._vocabulary = found
        self._spans = ("", {})
        self.notify_style_update()
        self.refresh()

    @property
    def place(self) -> int:
        """The cursor, in letters from the beginning."""
        row, column = self.cursor_location
        return sum(len(line) + 1 for line in self.text.split("\n")[:row]) + column

    def on_mount(self) -> None:
        """Take the colours of the theme when it changes."""
        self.app.theme_changed_signal.subscribe(self, lambda _: self.notify_style_update())

    def get_line(self, line_index: int) -> Text:
        """A line in its colours."""
        line = super().get_line(line_index)
        styles = _STYLES[self.app.current_theme.dark]
        for span in self._coloured().get(line_index, ()):
            line.stylize(styles[span.kind], span.start, span.end)
        return line

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The keys of the list are ordinary ones while there is none."""
        return bool(self.offered) if action in ("next_word", "take_word", "no_word") else True

    def action_offer(self) -> None:
        """Offer the words that may stand here."""
        self._typed, words = self._vocabulary.completions(self.text, self.place)
        self._offer(words)

    def action_next_word(self, step: int) -> None:
        """Move among the words."""
        self.here = (self.here + step) % len(self.offered)
        self.post_message(self.Offered(self.offered, self.here))

    def action_take_word(self) -> None:
        """Put the word in."""
        self.take(self.here)

    def action_no_word(self) -> None:
        """Offer none."""
        self._offer([])

    def take(self, place: int) -> None:
        """Put one of the words offered in the place of what was typed of it."""
        word = self.offered[place]
        row, column = self.cursor_location
        # In capitals where it was begun so.
        shout = len(self._typed) > 1 and self._typed.isupper() and word.kind in ("keyword", "function")
        text = word.text.upper() if shout else word.text
        self._offer([])
        self.replace(text, (row, column - len(self._typed)), (row, column), maintain_selection_offset=False)
        self.move_cursor((row, column - len(self._typed) + len(text)))

    async def on_key(self, event: events.Key) -> None:
        """What was typed may have other words, once it is in the text."""
        typed = event.character if event.is_printable else None
        if typed is not None and (typed.isalnum() or typed in "_."):
            self.call_after_refresh(self._follow)
        elif self.offered and event.key != "backspace":
            self._offer([])
        elif event.key == "backspace":
            self.call_after_refresh(self._follow)

    def on_blur(self) -> None:
        """Offer none where nobody types."""
        self._offer([])

    def _follow(self) -> None:
        if not self.has_focus:
            return
        typed, words = self._vocabulary.completions(self.text, self.place)
        self._typed = typed
        after_dot = self.text[: self.place].endswith(".")
        self._offer(words if len(typed) >= _FROM or after_dot else [])

    def _offer(self, words: list[Word]) -> None:
        if words or self.offered:
            self.offered, self.here = words, 0
            self.post_message(self.Offered(words, 0))

    def _coloured(self) -> dict[int, list[Span]]:
        """The spans of each line; made anew when the text has changed."""
        text = self.text
        if self._spans[0] != text or not self._spans[1]:
            lines: dict[int, list[Span]] = {}
            starts = [0]
            for line in text.split("\n"):
                starts.append(starts[-1] + len(line) + 1)
            row = 0
            for span in sqltext.spans(text, self._vocabulary.keywords, self._vocabulary.relations):
                while starts[row + 1] <= span.start:
                    row += 1
                # A string or a comment may go over several lines.
                for i in range(row, len(starts) - 1):
                    if starts[i] >= span.end:
                        break
                    first, last = max(span.start, starts[i]), min(span.end, starts[i + 1] - 1)
                    lines.setdefault(i, []).append(Span(first - starts[i], last - starts[i], span.kind))
            self._spans = (text, lines)
        return self._spans[1]
