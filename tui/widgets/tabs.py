"""The top of every screen: the screens with their keys, and below it the file and what is chosen."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.message import Message
from textual.widgets import Static


def fitted(screens: Sequence[tuple[str, str, str]], here: str, width: int) -> list[str]:
    """The text of each screen: key and name between blanks, or with one behind, or the key alone but for `here`."""
    names = [f"{key} {title}" for key, _, title in screens]
    for texts in ([f" {name} " for name in names], [*(f"{name} " for name in names[:-1]), *names[-1:]]):
        if sum(map(len, texts)) <= width:
            return texts
    return [f" {name if mode == here else key} " for name, (key, mode, _) in zip(names, screens, strict=True)]


class ScreenTabs(Static):
    """One line: the screens and their keys; a click opens one. The name of the open one alone stays if it is narrow."""

    class Chosen(Message):
        """A screen's name was clicked."""

        def __init__(self, mode: str) -> None:
            super().__init__()
            self.mode = mode

    def __init__(self, screens: Sequence[tuple[str, str, str]], here: str) -> None:
        """`screens`: (key, mode, title) of each; `here`: the mode of the screen that it stands on."""
        super().__init__()
        self._screens = screens
        self._here = here
        self._ends: list[tuple[int, str]] = []

    def render(self) -> Content:
        """The line, in the width there is."""
        parts: list[tuple[str, str]] = []
        self._ends, end = [], 0
        for (_, mode, _), text in zip(self._screens, fitted(self._screens, self._here, self.size.width), strict=True):
            end += len(text)
            self._ends.append((end, mode))
            # The gap behind a name is no part of what is marked.
            name = text[:-1] if text.endswith(" ") and not text.startswith(" ") else text
            parts += [(name, "bold reverse" if mode == self._here else ""), (text[len(name) :], "")]
        return Content.assemble(*parts)

    def on_click(self, event: object) -> None:
        """Open the screen under the mouse."""
        x = getattr(event, "x", -1)
        for end, mode in self._ends:
            if x < end:
                self.post_message(self.Chosen(mode))
                return


class StatusLine(Static):
    """One line: what it is about at the left, how it stands at the right."""

    left = ""
    right = ""

    def say(self, left: str, right: str) -> None:
        """Show both, the left one cut if there is no room."""
        self.left, self.right = left, right
        self.refresh()

    def render(self) -> Content:
        """The line, in the width there is."""
        room = self.size.width - len(self.right) - 1
        left = self.left if len(self.left) <= room else self.left[: max(0, room - 1)] + "…"
        return Content(left.ljust(room) + " " + self.right)
