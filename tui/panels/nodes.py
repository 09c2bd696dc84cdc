"""The nodes of a circuit as a map, layers x (heads + MLP), and the strongest edges of the one under the cursor."""

from __future__ import annotations

from itertools import zip_longest

import numpy as np
import numpy.typing as npt
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from circuitdb.queries.softcircuit import EdgeList, SoftCircuit
from circuitdb.tui.panels.panel import Panel
from circuitdb.tui.widgets import shades
from circuitdb.tui.widgets.heatmap import Heatmap
from circuitdb.words import count

_LEAST, _MOST = 3, 40  # edges that are listed each way
_ABREAST = 76  # columns from which they stand side by side
_EDGE = 3  # columns beside the cells: padding, and a scroll bar


class NodePanel(Panel):
    """The map at the left; input and logits are lines of their own, as wide as a layer.

    Attributes:
        by_score: whether shades are by the scores themselves; else by how many nodes are weaker.
    """

    by_score = False

    class Picked(Message):
        """Enter or a second click on a node."""

        def __init__(self, node: int) -> None:
            super().__init__()
            self.node = node

    def compose(self) -> ComposeResult:
        """Map and edges."""
        with Horizontal():
            yield Heatmap(id="map")
            with VerticalScroll(id="ends"):
                yield Static(id="ends-text")

    def draw(self, circuit: SoftCircuit) -> None:
        """Draw the map; of scores the limit is the strongest of a layer, since the input would pale them all."""
        values = grid(circuit, circuit.node_scores if self.by_score else circuit.node_standings)
        rows = ["input", *(f"layer {layer}" for layer in range(circuit.shape.n_layers)), "logits"]
        columns = [*map(str, range(circuit.shape.n_heads)), "mlp"]
        heatmap = self.query_one(Heatmap)
        heatmap.draw(values, rows, columns, limit=shades.limit(values[1:-1]) if self.by_score else 1.0)
        heatmap.styles.width = heatmap.virtual_size.width + _EDGE

    def turn(self) -> None:
        """The other scale."""
        self.by_score = not self.by_score
        if self.circuit is not None:
            self.draw(self.circuit)

    def text(self) -> str:
        """Every node with its score."""
        if self.circuit is None:
            return ""
        scores = self.circuit.node_scores.tolist()
        lines = [
            f"{name}\t{'' if score != score else score}"
            for name, score in zip(self.circuit.node_names, scores, strict=True)
        ]
        return "\n".join(["node\tscore", *lines])

    def on_heatmap_moved(self, message: Heatmap.Moved) -> None:
        """Tell of the node under the cursor."""
        self._say(message.row, message.column)

    def on_heatmap_picked(self, message: Heatmap.Picked) -> None:
        """Open the node's edges."""
        if self.circuit is not None:
            self.post_message(self.Picked(node_at(self.circuit, message.row, message.column)))

    def on_resize(self) -> None:
        """List as many edges as there is room for."""
        self._say(*self.query_one(Heatmap).cursor)

    def _say(self, row: int, column: int) -> None:
        if self.circuit is None:
            return
        node = node_at(self.circuit, row, column)
        score = self.circuit.node_scores[node]
        told = "no outgoing edge has a score" if np.isnan(score) else f"score {score:+.4g}"
        head = Content.assemble((self.circuit.node_names[node], "bold"), f"  {told}")
        width, height = self.query_one("#ends").scrollable_content_region.size
        abreast = width >= _ABREAST
        room = max(_LEAST, min(_MOST, height - 3 if abreast else (height - 4) // 2))
        ends = (("in", self.circuit.incoming(node)), ("out", self.circuit.outgoing(node)))
        titles = [f"{title}: {count(len(edges), 'edge')}, the strongest first" for title, edges in ends]
        lists = [listed(edges, room) for _, edges in ends]
        if abreast:
            half = width // 2
            rows = [f"{a:<{half}}{b}" for a, b in zip_longest(*lists, fillvalue="")]
            lines = [Content.styled(f"{titles[0]:<{half}}{titles[1]}", "underline"), *map(Content, rows)]
        else:
            lines = [
                line
                for title, rows in zip(titles, lists, strict=True)
                for line in (Content.styled(title, "underline"), *map(Content, rows))
            ]
        standing = "+7 is stronger than 70% of the nodes; · is no score"
        legend = Content.styled(self.query_one(Heatmap).legend if self.by_score else standing, "dim")
        self.query_one("#ends-text", Static).update(Content("\n").join([head, *lines, legend]))


def grid(circuit: SoftCircuit, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """[input, layers, logits; heads, MLP]: values of nodes; those of input and logits all along their lines."""
    shape = circuit.shape
    layers = values[1:-1].reshape(shape.n_layers, shape.n_heads + 1)
    ends = np.ones((1, shape.n_heads + 1))
    return np.concatenate((ends * values[0], layers, ends * values[-1]))


def node_at(circuit: SoftCircuit, row: int, column: int) -> int:
    """The node of a cell of `grid`."""
    if row == 0:
        return 0
    if row > circuit.shape.n_layers:
        return len(circuit.node_names) - 1
    return 1 + (row - 1) * (circuit.shape.n_heads + 1) + column


def listed(edges: EdgeList, most: int) -> list[str]:
    """Names and scores of the first edges."""
    rows = edges.page(0, most).to_pylist()
    width = max((len(row["edge"]) for row in rows), default=0)
    return [
        f"{row['edge']:<{width}}  {'no score' if row['score'] is None else format(row['score'], '+.4g')}"
        for row in rows
    ]
