"""One circuit: its nodes as a map, its edges as a table, its hard circuits as graphs, and where it is from."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import ContentSwitcher, Input, Static

from circuitdb.queries.softcircuit import SoftCircuit
from circuitdb.tui.panels.edges import EdgePanel
from circuitdb.tui.panels.hard import HardPanel
from circuitdb.tui.panels.nodes import NodePanel
from circuitdb.tui.panels.panel import Panel
from circuitdb.tui.panels.record import CurvePanel, RecordPanel
from circuitdb.tui.screen import View
from circuitdb.tui.widgets.choices import Choices
from circuitdb.words import count

if TYPE_CHECKING:
    from circuitdb.queries.database import Database

PARTS = {
    "nodes": "n Nodes",
    "edges": "d Edges",
    "hard": "h Hard circuit",
    "curve": "f Faithfulness",
    "record": "p Record",
}
_OF = {"nodes": ("scale",), "edges": ("turn", "clear", "name"), "hard": ("resize", "signed", "prune")}


class Circuit(View[SoftCircuit]):
    """Five parts, one of them seen at a time.

    Attributes:
        part: the one that is seen, a key of `PARTS`.
    """

    MODE = "circuit"
    CSS_PATH = "circuit.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "open_part('nodes')", "Nodes", show=False, tooltip="The map of the nodes' scores"),
        Binding("d", "open_part('edges')", "Edges", show=False, tooltip="The table of all edges"),
        Binding("h", "open_part('hard')", "Hard", show=False, tooltip="The hard circuit of n edges as a graph"),
        Binding("f", "open_part('curve')", "Faithfulness", show=False, tooltip="Faithfulness of the cut circuit"),
        Binding("p", "open_part('record')", "Record", show=False, tooltip="How it was made, how reliable it is"),
        Binding("comma", "step(-1)", "Before", key_display=",",
                tooltip="The circuit before, of the chosen ones if they are several"),
        Binding("full_stop", "step(1)", "Next", key_display=".",
                tooltip="The next circuit, of the chosen ones if they are several"),
        Binding("m", "scale", "Scale", tooltip="Shades by the scores, or by how many nodes are weaker"),
        Binding("s", "turn('source')", "From", show=False, tooltip="Edges from any source, the input, heads, MLPs"),
        Binding("g", "turn('target')", "To", show=False, tooltip="Edges to any target, heads, MLPs, the logits"),
        Binding("k", "turn('qkv')", "q/k/v", show=False, tooltip="Edges to any input of a head, to q, k, v"),
        Binding("i", "turn('sign')", "Sign", show=False, tooltip="Edges of any score, positive, negative, zero"),
        Binding("o", "turn('order')", "Order", show=False, tooltip="Order by strength, highest, lowest, number"),
        Binding("slash", "name", "Name", show=False, key_display="/", tooltip="Type a part of an edge's name"),
        Binding("x", "clear", "Clear", show=False, tooltip="Take all filters away"),
        Binding("minus", "resize(-1)", "Fewer", show=False, key_display="-", tooltip="A smaller hard circuit"),
        Binding("plus,equals_sign", "resize(1)", "More", show=False, key_display="+", tooltip="A larger hard circuit"),
        Binding("a", "signed", "Signed", show=False, tooltip="The strongest edges, or the most positive ones"),
        Binding("r", "prune", "Prune", show=False, tooltip="Only edges on a path from input to logits, or all"),
        Binding("escape", "leave_field", "Leave", show=False, tooltip="From a field back to the table"),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.part = "nodes"

    def content(self) -> ComposeResult:
        """What it is about, the parts' names, the parts."""
        yield Static(id="about")
        yield Choices(id="parts")
        with ContentSwitcher(initial="nodes", id="switch"):
            yield NodePanel(id="nodes")
            yield EdgePanel(id="edges")
            yield HardPanel(id="hard")
            yield CurvePanel(id="curve")
            yield RecordPanel(id="record")

    @property
    def circuit(self) -> int | None:
        """The circuit that is looked at, else the first of the chosen ones."""
        chosen = self.selection.circuits
        return self.selection.circuit if self.selection.circuit is not None else chosen[0] if chosen else None

    def question(self) -> Callable[[Database], SoftCircuit] | None:
        """All its scores."""
        return None if self.circuit is None else partial(_asked, circuit=self.circuit)

    def depends_on(self) -> Hashable:
        """The circuit alone."""
        return self.circuit

    def show(self, answer: SoftCircuit) -> None:
        """Hand the scores to the part that is seen; the others take them when they are opened."""
        self._say()
        self._fill()

    def text(self) -> str:
        """What the part that is seen shows."""
        return self._panel.text() if self.answer is not None else ""

    def focus_content(self) -> None:
        """Into the part that is seen."""
        self._panel.focus_first()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The keys of a part are those of that part alone."""
        for part, actions in _OF.items():
            if action in actions and self.part != part:
                return False
        return super().check_action(action, parameters)

    def action_open_part(self, part: str) -> None:
        """Show another part."""
        self.part = part
        self.query_one(ContentSwitcher).current = part
        self.refresh_bindings()
        self._say()
        self._fill()
        self._panel.focus_first()

    def action_step(self, steps: int) -> None:
        """Look at another circuit: of the chosen ones if this is one of several, else of all."""
        chosen = self.selection.circuits
        among = chosen if self.circuit in chosen and len(chosen) > 1 else self.catalogue.ids
        if self.circuit in among:
            place = (among.index(self.circuit) + steps) % len(among)
            self.browser.selection = self.selection.looking_at(among[place])

    def action_scale(self) -> None:
        """The other scale of the map."""
        self.query_one(NodePanel).turn()

    def action_turn(self, what: str) -> None:
        """The next value of a filter."""
        self.query_one(EdgePanel).turn(what)

    def action_clear(self) -> None:
        """Take all filters away."""
        self.query_one(EdgePanel).clear()

    def action_name(self) -> None:
        """To the field of the name."""
        self.query_one("#name", Input).focus()

    def action_leave_field(self) -> None:
        """From a field to the part."""
        self._panel.focus_first()

    def action_resize(self, steps: int) -> None:
        """A smaller or a larger hard circuit."""
        self.query_one(HardPanel).resize(steps)

    def action_signed(self) -> None:
        """The strongest edges, or the most positive ones."""
        self.query_one(HardPanel).turn(signed=True)

    def action_prune(self) -> None:
        """Only paths, or all edges."""
        self.query_one(HardPanel).turn(signed=False)

    def on_node_panel_picked(self, message: NodePanel.Picked) -> None:
        """Enter on a node: its edges."""
        self.query_one(EdgePanel).only(message.node)
        self.action_open_part("edges")

    def on_hard_panel_picked(self, message: HardPanel.Picked) -> None:
        """Enter on a node of the graph: its edges."""
        self.query_one(EdgePanel).only(message.node)
        self.action_open_part("edges")

    @property
    def _panel(self) -> Panel:
        return cast("Panel", self.query_one(f"#{self.part}"))

    def _say(self) -> None:
        names = [(name.partition(" "), part) for part, name in PARTS.items()]
        self.query_one("#parts", Choices).say(
            [
                (key, f"open_part('{part}')", f"[{name}]" if part == self.part else f" {name} ")
                for (key, _, name), part in names
            ]
        )
        if self.answer is None:
            return
        entry = self.catalogue.by_id.get(self.answer.circuit_id)
        where = self.answer.label if entry is None else f"{'  '.join(entry.path)}  ({entry.settings})"
        missing = f", {self.answer.n_missing:,} without a score" if self.answer.n_missing else ""
        edges = count(self.answer.shape.n_edges, "edge")
        self.query_one("#about", Static).update(
            Content.assemble((f"#{self.answer.circuit_id}  ", "bold"), (where, "bold"), f"  {edges}{missing}")
        )

    def _fill(self) -> None:
        if self.answer is not None:
            self._panel.take(self.answer)


def _asked(db: Database, *, circuit: int) -> SoftCircuit:
    return db.soft_circuit(circuit)
