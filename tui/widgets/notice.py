"""A sentence or two in the middle of the screen: what is the matter, and what to do."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static


class Notice(Static):
    """Says why there is nothing else to see."""

    DEFAULT_CSS = """
    Notice {
        width: 1fr;
        height: 1fr;
        content-align: center middle;
        text-align: center;
        padding: 1 4;
    }
    """

    def say(self, heading: str, text: str) -> None:
        """Show a heading and what to do below it; names out of a database are no markup here."""
        self.update(Content.assemble((heading, "bold"), f"\n\n{text}" if text else ""))
