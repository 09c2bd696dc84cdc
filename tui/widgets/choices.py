"""A line of settings, each behind its key; a click on one does what the key does."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.style import Style
from textual.widgets import Static


class Choices(Static):
    """Shows settings as `key value`; they flow into a second line where one is too short."""

    DEFAULT_CSS = """
    Choices { height: auto; width: 1fr; }
    """

    _said: object = None

    def say(self, settings: Sequence[tuple[str, str, str]], remark: str = "") -> None:
        """Show (key, action of the screen, value) of each setting, and a remark behind them."""
        if (said := (tuple(settings), remark)) == self._said:
            return  # an update lays the whole screen out anew
        self._said = said
        parts = []
        for key, action, value in settings:
            # Within a setting the spaces do not break, so that no value stands apart from its key.
            words = Content.assemble((key, "bold underline"), f" {value}".replace(" ", "\N{NO-BREAK SPACE}"))
            parts.append(words.stylize(Style.from_meta({"@click": f"screen.{action}"})))
        self.update(Content("  ").join([*parts, *([Content.styled(remark, "italic")] if remark else [])]))
