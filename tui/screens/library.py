"""The library: what is in the database, and which of it the other screens are about."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static, Tree

from circuitdb.tui import summary
from circuitdb.tui.catalogue import Branch, Catalogue, Entry, tree
from circuitdb.tui.frame import Frame
from circuitdb.tui.summary import Summary
from circuitdb.tui.widgets.circuit_tree import CircuitTree
from circuitdb.words import count, enumeration

_REST_S = 0.15  # marks that follow each other quickly are asked about once
_STEP = 0.05
_FAMILIES = 6  # that are listed


class Library(Frame):
    """The tree at the left, with a filter above; the summary of what is chosen at the right.

    Attributes:
        summary: what the database answered about the chosen circuits; None while it is asked.
    """

    MODE = "library"
    CSS_PATH = "library.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", key_display="/", tooltip="Type to show only what has these words"),
        Binding("a", "choose_shown", "All shown", tooltip="Choose all circuits that are shown"),
        Binding("o", "choose_only", "Only", tooltip="Choose the circuits below the line and no others"),
        Binding("n", "choose_none", "None", tooltip="Choose nothing"),
        Binding(
            "left_square_bracket",
            "alpha(-1)",
            "alpha -",
            show=False,
            key_display="[",
            tooltip="Lower alpha: fewer families",
        ),
        Binding(
            "right_square_bracket",
            "alpha(1)",
            "alpha +",
            show=False,
            key_display="]",
            tooltip="Raise alpha: more families",
        ),
        Binding(
            "backslash",
            "alpha(0)",
            "Useful alpha",
            show=False,
            key_display="\\",
            tooltip="Let alpha be chosen by the similarities",
        ),
        Binding("escape", "leave_filter", "Back", show=False, tooltip="Leave the filter; once more takes it away"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.summary: Summary | None = None
        self._shown: tuple[Entry, ...] = ()
        self._drawn: Catalogue | None = None
        self._asked_about: tuple[int, ...] | None = None
        self._said_alpha: float | None = None
        self._refusal: str | None = None

    def content(self) -> ComposeResult:
        """Filter, tree and summary."""
        with Horizontal():
            with Vertical(id="shelf"):
                yield Input(placeholder="/ filter: addition 1+2, seed 0, #12", id="filter", compact=True)
                yield CircuitTree()
                yield Static(id="shown")
            with VerticalScroll(id="summary"):
                yield Static(id="chosen")

    def text(self) -> str:
        """The chosen circuits: id, model, task, subtask, method, accuracy, when."""
        head = "circuit_id\tmodel\ttask\tsubtask\tmethod\taccuracy\tstarted_at"
        rows = [
            "\t".join(map(str, (e.circuit_id, *e.path, "" if e.accuracy is None else e.accuracy, e.started_at or "")))
            for e in self.chosen
        ]
        return "\n".join([head, *rows]) if rows else ""

    @property
    def chosen(self) -> list[Entry]:
        """The chosen circuits."""
        by_id = self.catalogue.by_id
        return [by_id[i] for i in self.selection.circuits if i in by_id]

    def renew(self) -> None:
        """Draw the tree anew if the circuits have changed, and ask about the chosen ones if these have."""
        super().renew()
        if not self.is_current or self.browser.problem is not None:
            return
        if self._drawn is not self.catalogue:
            self._drawn = self.catalogue
            self._fill()
        self.query_one(CircuitTree).mark(self.selection.circuits)
        if self.selection.circuits != self._asked_about:
            self._asked_about = self.selection.circuits
            self._ask()
        elif self.selection.alpha != self._said_alpha:
            self._say()

    def focus_content(self) -> None:
        """The tree comes first."""
        self.query_one(CircuitTree).focus()

    def _fill(self) -> None:
        words = self.query_one(Input).value
        self._shown = self.catalogue.matching(words)
        self.query_one(CircuitTree).fill(tree(self._shown), all_open=bool(words.strip()))
        total = len(self.catalogue.entries)
        told = f"{len(self._shown):,} of {count(total, 'circuit')} shown" if words.strip() else count(total, "circuit")
        self.query_one("#shown", Static).update(told)

    def _ask(self) -> None:
        chosen = self.selection.circuits
        self._refusal = None
        if not chosen:
            self.workers.cancel_group(self, "summary")
            self.summary = None
        else:
            question = partial(summary.summarise, circuits=chosen)
            self.ask(question, self._answered, group="summary", otherwise=self._failed, delay=_REST_S)
        self._say()

    def _answered(self, answer: Summary) -> None:
        self.summary = answer
        self._say()

    def _failed(self, failure: str) -> None:
        self.summary, self._refusal = None, failure
        self._say()

    def _say(self) -> None:
        self._said_alpha = self.selection.alpha
        self.query_one("#chosen", Static).update(Content("\n").join(self._lines()))

    def _lines(self) -> list[Content]:
        chosen = self.chosen
        if not chosen:
            return [
                Content.styled("Nothing is chosen", "bold"),
                Content("\nspace chooses the circuits below a line, a all that are shown, o only those of the line."),
            ]
        lines = [Content.styled(f"{count(len(chosen), 'circuit')} chosen", "bold"), Content(summary.overview(chosen))]
        if self._refusal is not None:
            lines.append(Content(f"\n{self._refusal}"))
        elif self.summary is None:
            lines.append(Content("\nReading ..."))
        else:
            lines += self._answer(self.summary)
        lines += [Content.styled("\nAccuracy", "bold"), Content(summary.accuracy(chosen))]
        lines += [Content.styled("\nProvenance", "bold")]
        lines += [Content(f"{name}  {values}") for name, values in summary.provenance(chosen)]
        if self.summary is not None and (said := summary.warnings(self.summary)):
            lines += [Content.styled("\nMind", "bold"), *map(Content, said)]
        return lines

    def _answer(self, found: Summary) -> list[Content]:
        lines = []
        for row in found.stability:
            lines.append(Content.assemble(("\nStability", "bold"), f"  {summary.group(row, found.stability)}"))
            lines += map(Content, summary.stability(row))
        lines.append(Content.styled("\nFamilies", "bold"))
        if found.refusal is not None:
            return [*lines, Content(found.refusal)]
        alpha, families = found.families(self.selection.alpha)
        number = count(len(families), "family", "families")
        lines.append(Content(f"{number} at alpha = {summary.hundredths(alpha)}, set by [ and ]"))
        for name, members in families[:_FAMILIES]:
            lines.append(Content(f"{name} {len(members)}: {enumeration(members, most=6)}"))
        if len(families) > _FAMILIES:
            lines.append(Content(f"and {len(families) - _FAMILIES} more"))
        return lines

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show what the filter leaves."""
        if self._drawn is not None:
            self._fill()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """From the filter to the tree."""
        self.query_one(CircuitTree).focus()

    def on_circuit_tree_marked(self, message: CircuitTree.Marked) -> None:
        """Choose or drop what is below a line."""
        self._choose(self.selection.toggling(message.branch.ids).circuits)

    def on_tree_node_selected(self, event: Tree.NodeSelected[Branch]) -> None:
        """Enter: open or close a branch; look at a single circuit."""
        branch = event.node.data
        if branch is None:
            return
        if branch.branches:
            event.node.toggle()
        elif "circuit" in self.browser.MODES:
            self.browser.look_at(branch.ids[0])

    def action_filter(self) -> None:
        """To the filter."""
        self.query_one(Input).focus()

    def action_leave_filter(self) -> None:
        """From the filter to the tree; from the tree, take the filter away."""
        field = self.query_one(Input)
        if not field.has_focus:
            field.value = ""
        self.query_one(CircuitTree).focus()

    def action_choose_shown(self) -> None:
        """Choose all circuits that are shown."""
        self._choose(self.selection.adding(entry.circuit_id for entry in self._shown).circuits)

    def action_choose_only(self) -> None:
        """Choose the circuits below the line and no others."""
        node = self.query_one(CircuitTree).cursor_node
        if node is not None and node.data is not None:
            self._choose(node.data.ids)

    def action_choose_none(self) -> None:
        """Choose nothing."""
        self._choose(())

    def action_alpha(self, steps: int) -> None:
        """Move alpha by steps of 0.05; 0 lets it be chosen."""
        selection = self.selection
        if steps == 0:
            self.browser.selection = selection.at(None)
            return
        useful = None if self.summary is None else self.summary.useful
        now = useful if selection.alpha is None else selection.alpha
        if now is not None:
            self.browser.selection = selection.at(max(-1.0, min(1.0, round(now / _STEP + steps) * _STEP)))

    def _choose(self, circuits: tuple[int, ...]) -> None:
        self.browser.selection = self.selection.only(circuits).among(self.catalogue.ids)
