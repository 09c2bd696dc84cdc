"""The tree of the library: models > tasks > subtasks > methods, each with a mark, a count and the newest date."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from circuitdb.tui.catalogue import Branch, badge

_COUNT, _DATE, _ICON = 6, 12, 2
_DATED = 34  # columns from which there is room for dates
_BADGED = 16  # columns from which a name has room for the words of its badge
_OPENED = 2  # levels that stand open at first: models and tasks


class CircuitTree(Tree[Branch]):
    """Shows branches; `marked` circuits have an [x], a branch with some of them a [-]."""

    DEFAULT_CSS = "CircuitTree { scrollbar-gutter: stable; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "mark", "Choose", tooltip="Choose or drop all circuits below the line"),
        Binding("enter", "select_cursor", "Open", show=False, tooltip="Open or close the branch; look at a circuit"),
        Binding("right", "open", "Open", show=False, tooltip="Open the branch"),
        Binding("left", "close", "Close", show=False, tooltip="Close the branch, or go to the one above"),
        Binding("home", "first", "First", show=False, tooltip="Go to the first line"),
        Binding("end", "last", "Last", show=False, tooltip="Go to the last line"),
    ]

    class Marked(Message):
        """The mark of a branch was asked to change."""

        def __init__(self, branch: Branch) -> None:
            super().__init__()
            self.branch = branch

    def __init__(self) -> None:
        super().__init__("circuits")
        self.show_root = False
        self.guide_depth = 2
        self.auto_expand = False
        self._marked: frozenset[int] = frozenset()
        self._shown: dict[tuple[str, ...], TreeNode[Branch]] = {}

    def fill(self, branches: Iterable[Branch], *, all_open: bool = False) -> None:
        """Show these branches: those stay open that were, and the cursor stays where it was, if it can.

        A branch is filled when it is opened. With `all_open` every one is.
        """
        here = () if self.cursor_node is None or self.cursor_node.data is None else self.cursor_node.data.path
        known = set(self._shown)
        opened = {path for path, node in self._shown.items() if node.is_expanded}
        self.clear()
        self._shown = {}

        def grow(node: TreeNode[Branch], children: Iterable[Branch]) -> None:
            for branch in children:
                leaf = not branch.branches
                grown = node.add(self._label(branch), branch, allow_expand=not leaf)
                self._shown[branch.path] = grown
                at_first = branch.path not in known and len(branch.path) <= _OPENED
                if not leaf and (all_open or at_first or branch.path in opened):
                    grow(grown, branch.branches)
                    grown.expand()

        grow(self.root, branches)
        self.root.expand()
        self.call_after_refresh(self._back_to, here)

    def mark(self, circuits: Collection[int]) -> None:
        """Mark these circuits and no others."""
        self._marked = frozenset(circuits)
        self._relabel()

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[Branch]) -> None:
        """Fill a branch that is opened for the first time."""
        node = event.node
        if node.data is None or node.children:
            return
        for branch in node.data.branches:
            self._shown[branch.path] = node.add(self._label(branch), branch, allow_expand=bool(branch.branches))

    def on_resize(self, event: events.Resize) -> None:
        """Counts and dates stay at the right edge."""
        self._relabel()

    def action_mark(self) -> None:
        """Ask for the circuits below the cursor to be chosen or dropped."""
        if self.cursor_node is not None and self.cursor_node.data is not None:
            self.post_message(self.Marked(self.cursor_node.data))

    def action_open(self) -> None:
        """Open the branch under the cursor."""
        if self.cursor_node is not None and self.cursor_node.allow_expand:
            self.cursor_node.expand()

    def action_close(self) -> None:
        """Close the branch under the cursor, or go to the one it is in."""
        node = self.cursor_node
        if node is None:
            return
        if node.is_expanded:
            node.collapse()
        elif node.parent is not None and node.parent is not self.root:
            self.move_cursor(node.parent)

    def action_first(self) -> None:
        """Go to the first line."""
        self.cursor_line = 0

    def action_last(self) -> None:
        """Go to the last line."""
        self.cursor_line = self.last_line

    def _back_to(self, path: tuple[str, ...]) -> None:
        for end in range(len(path), 0, -1):
            if (node := self._shown.get(path[:end])) is not None:
                self.move_cursor(node)
                return
        self.cursor_line = 0

    def _relabel(self) -> None:
        for node in self._shown.values():
            if node.data is not None:
                node.set_label(self._label(node.data))

    def _label(self, branch: Branch) -> Text:
        chosen = len(self._marked.intersection(branch.ids))
        mark = "[x]" if chosen == len(branch.ids) else "[-]" if chosen else "[ ]"
        depth = self.guide_depth * (len(branch.path) - 1)
        icon = _ICON if branch.branches else 0
        whole = self.scrollable_content_region.width
        date = _DATE if whole >= _DATED else 0
        room = max(8, whole - depth - icon - len(mark) - 1 - _COUNT - date)
        said = badge(branch.n_notes) if room >= _BADGED else f"*{branch.n_notes}"
        said = f" {said}" if branch.n_notes else ""
        left = room - len(said)
        name = (branch.name if len(branch.name) <= left else branch.name[: left - 1] + "…") + said
        newest = "" if branch.newest is None else f"{branch.newest:%Y-%m-%d}"
        return Text.assemble(
            (mark, "bold" if chosen else ""),
            f" {name.ljust(room)}",
            f"{len(branch.ids):>{_COUNT},}",
            f"{newest:>{_DATE}}" if date else "",
            no_wrap=True,
        )
