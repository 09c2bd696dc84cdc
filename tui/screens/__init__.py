"""The screens, one file each: a file of one of these names is offered in the browser, with no other file to edit."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import cast

from circuitdb.tui.frame import Frame


@dataclass(frozen=True)
class Entry:
    """A screen: its key, its name as in the tabs; its class is called so, in the module of that name in lower case."""

    key: str
    title: str

    @property
    def mode(self) -> str:
        """The name of its module, and of its mode in Textual's sense."""
        return self.title.lower()

    @property
    def there(self) -> bool:
        """Whether it has a module."""
        return find_spec(f"{__name__}.{self.mode}") is not None

    def make(self) -> Frame:
        """The screen; its module is imported only now, so that the browser opens quickly."""
        module = importlib.import_module(f"{__name__}.{self.mode}")
        return cast("Callable[[], Frame]", getattr(module, self.title))()


SCREENS = tuple(
    entry
    for entry in (
        Entry("1", "Library"),
        Entry("2", "Similarity"),
        Entry("3", "Circuit"),
        Entry("4", "Compare"),
        Entry("5", "Containment"),
        Entry("6", "SQL"),
        Entry("7", "Evals"),
        Entry("8", "Notes"),
    )
    if entry.there
)
