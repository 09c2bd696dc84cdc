"""The hard circuit of a size, drawn as a graph layer by layer."""

from __future__ import annotations

import asyncio

import numpy as np
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from circuitdb.queries.cuts import Cut
from circuitdb.queries.pair import ladder
from circuitdb.queries.softcircuit import Kept, SoftCircuit
from circuitdb.tui.panels.panel import Panel
from circuitdb.tui.widgets.choices import Choices
from circuitdb.tui.widgets.ladder import Ladder
from circuitdb.tui.widgets.layered import Graph, Layered
from circuitdb.words import count, enumeration

_FIRST = 100  # edges that are shown at first
_DRAWN = 300  # more lines would be one grey
_REST_S = 0.02  # a slider that is moved on is waited for


class HardPanel(Panel):
    """Size and way of cutting above, the graph, and the kept edges of the node under the cursor below.

    Attributes:
        cut: how it is cut.
        kept: what is left; None before the first answer.
    """

    class Picked(Message):
        """Enter or a second click on a node."""

        def __init__(self, node: int) -> None:
            super().__init__()
            self.node = node

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.cut = Cut(top=_FIRST, prune=True)
        self.kept: Kept | None = None

    def compose(self) -> ComposeResult:
        """Slider, way, graph, node."""
        yield Ladder("n", id="size")
        yield Choices(id="cut")
        yield Layered(id="graph")
        yield Static(id="node")

    def draw(self, circuit: SoftCircuit) -> None:
        """Cut the circuit; the size stays as it was asked for."""
        self.query_one(Ladder).climb(ladder(circuit.shape.n_edges), self.cut.size(circuit.shape.n_edges))
        self._cut()

    def text(self) -> str:
        """The kept edges, the strongest first."""
        if self.kept is None:
            return ""
        rows = self.kept.edges.page().to_pylist()
        return "\n".join(["edge\tscore", *(f"{row['edge']}\t{row['score']}" for row in rows)])

    def focus_first(self) -> None:
        """The graph comes first."""
        self.query_one(Layered).focus()

    def resize(self, steps: int) -> None:
        """A smaller or a larger size."""
        self.query_one(Ladder).action_step(steps)

    def turn(self, *, signed: bool) -> None:
        """The other sign rule, or with `signed` false the other rule about paths."""
        self.cut = (
            Cut(top=self.cut.top, signed=not self.cut.signed, prune=self.cut.prune)
            if signed
            else Cut(top=self.cut.top, signed=self.cut.signed, prune=not self.cut.prune)
        )
        self._cut()

    def on_slider_changed(self, message: Ladder.Changed) -> None:
        """Cut to another size."""
        size = self.query_one(Ladder).size_at
        if size != self.cut.top:
            self.cut = Cut(top=size, signed=self.cut.signed, prune=self.cut.prune)
            self._cut()

    def on_layered_moved(self, message: Layered.Moved) -> None:
        """Tell of the node under the cursor."""
        self._tell(message.node)

    def on_layered_picked(self, message: Layered.Picked) -> None:
        """Open the node's edges."""
        self.post_message(self.Picked(message.node))

    def _cut(self) -> None:
        # As a function: a coroutine that is cancelled before it begins would be warned of.
        self.run_worker(self._find, group="cut", exclusive=True)  # type: ignore[arg-type]

    async def _find(self) -> None:
        await asyncio.sleep(_REST_S)
        circuit = self.circuit
        if circuit is None:
            return
        self.kept = await asyncio.to_thread(circuit.hard, self.cut)
        self.query_one(Layered).draw(graph(circuit, self.kept, _DRAWN))
        self._say(self.kept)

    def _say(self, kept: Kept) -> None:
        found = f"{count(len(kept.edges), 'edge')} of {count(len(kept.nodes), 'node')}"
        if self.cut.prune and len(kept.edges) < kept.n_cut:
            found += f"; {kept.n_cut - len(kept.edges):,} on no path"
        if kept.n_tied:
            found += f"; {kept.n_tied:,} more tie with the last"
        if len(kept.edges) > _DRAWN:
            found += f"; the {_DRAWN} strongest are drawn"
        if not len(kept.edges):
            found = (
                f"no path from input to logits among {count(kept.n_cut, 'edge')}; r shows them"
                if self.cut.prune and kept.n_cut
                else "no edge has a positive score" if self.cut.signed else "no edge has a score other than zero"
            )  # fmt: skip
        self.query_one("#cut", Choices).say(
            [
                ("a", "signed", "most positive" if self.cut.signed else "strongest"),
                ("r", "prune", "paths only" if self.cut.prune else "all edges"),
            ],
            found,
        )

    def _tell(self, node: int | None) -> None:
        if node is None or self.kept is None or self.circuit is None:
            self.query_one("#node", Static).update("")
            return
        lines = [Content.assemble((self.circuit.node_names[node], "bold"), "  dashed lines: negative scores")]
        for title, ends in (("in ", self.kept.targets), ("out", self.kept.sources)):
            places = np.flatnonzero(ends == node)
            rows = self.kept.edges.page().take(places[:8]).to_pylist() if len(places) else []
            told = enumeration([f"{row['edge']} {row['score']:+.3g}" for row in rows], most=8) or "none"
            more = f" and {len(places) - len(rows)} more" if len(places) > len(rows) else ""
            lines.append(Content(f"{title} {told}{more}"))
        self.query_one("#node", Static).update(Content("\n").join(lines))


def graph(circuit: SoftCircuit, kept: Kept, most: int) -> Graph:
    """The kept nodes layer by layer, input first, with the strongest `most` edges."""
    width = circuit.shape.n_heads + 1
    layers: dict[int, list[int]] = {}
    for node in kept.nodes.tolist():
        layers.setdefault(circuit.layer(node), []).append(node)
    names = {-1: "input", circuit.shape.n_layers: "logits"}
    last = len(circuit.node_names) - 1
    # In the middle of input and logits, heads by their number, the MLP at the right.
    places = [0.5 if node in (0, last) else (node - 1) % width / (width - 1) for node in range(last + 1)]
    return Graph(
        [(names.get(layer, f"L{layer}"), nodes) for layer, nodes in sorted(layers.items())],
        circuit.node_names,
        places,
        kept.sources[:most],
        kept.targets[:most],
        kept.edges.scores[kept.edges.ids[:most]].astype(np.float64),
    )
