"""A graph drawn layer by layer, the edges in braille dots, the nodes as their names.

1. A layer is a line; below it is a gap for the edges. Nodes stand by their place in the layer where that fits, so that
   head 2 is below head 2, and else side by side.
2. An edge is a quadratic curve from the bottom of its source to the top of its target, which bends aside if it passes
   other layers. Negative edges are dashed.
3. All edges are sampled at once, and their dots are set in one array of braille cells.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np
import numpy.typing as npt
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_SIDE, _MOST_GAP = 7, 4  # columns for the names of layers; lines between two layers
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]], np.uint8)  # of a braille cell, [y, x]
_DASH = 4  # dots on, dots off
_PLAIN, _NEGATIVE, _LIT, _LIT_NEGATIVE = 1, 2, 3, 4


@dataclass(frozen=True)
class Graph:
    """What is drawn.

    Attributes:
        layers: (name, nodes) of each layer, from the top.
        names: of every node.
        places: where each node stands within its layer, 0..1.
        sources, targets: nodes of each edge.
        scores: of each edge; the sign decides how it is drawn.
    """

    layers: Sequence[tuple[str, Sequence[int]]]
    names: Sequence[str]
    places: Sequence[float]
    sources: Ids
    targets: Ids
    scores: Floats


class Layered(ScrollView, can_focus=True):
    """Shows a graph with a cursor on a node, whose edges stand out."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "layer(-1)", "Up", show=False, tooltip="To the layer above"),
        Binding("down", "layer(1)", "Down", show=False, tooltip="To the layer below"),
        Binding("left", "node(-1)", "Left", show=False, tooltip="To the node at the left"),
        Binding("right", "node(1)", "Right", show=False, tooltip="To the node at the right"),
        Binding("home", "layer(-10000)", "First", show=False, tooltip="To the first layer"),
        Binding("end", "layer(10000)", "Last", show=False, tooltip="To the last layer"),
        Binding("enter", "pick", "Open", tooltip="Open the node under the cursor"),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "layered--layer", "layered--plain", "layered--negative", "layered--lit", "layered--lit-negative",
        "layered--near", "layered--cursor",
    }  # fmt: skip
    DEFAULT_CSS = """
    Layered {
        height: 1fr;
        background: $background;
        & > .layered--layer { color: $text-muted; }
        & > .layered--plain { color: $warning 60%; }
        & > .layered--negative { color: $primary 60%; }
        & > .layered--lit { color: $warning; text-style: bold; }
        & > .layered--lit-negative { color: $primary; text-style: bold; }
        & > .layered--near { text-style: bold underline; }
        & > .layered--cursor { text-style: bold reverse; }
    }
    """

    cursor: reactive[int | None] = reactive(None, repaint=False)

    class Moved(Message):
        """The cursor came to another node, or the graph changed; None where there is no node."""

        def __init__(self, node: int | None) -> None:
            super().__init__()
            self.node = node

        def can_replace(self, message: Message) -> bool:
            """Only the last of several counts."""
            return isinstance(message, Layered.Moved)

    class Picked(Message):
        """Enter or a second click on a node."""

        def __init__(self, node: int) -> None:
            super().__init__()
            self.node = node

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.graph: Graph | None = None
        self._at: dict[int, tuple[int, int]] = {}  # node to its layer's place and its place in the layer
        self._boxes: dict[int, tuple[int, int]] = {}  # node to line and first column of its name
        self._dots: npt.NDArray[np.uint8] = np.zeros((0, 0), np.uint8)
        self._kinds: npt.NDArray[np.uint8] = np.zeros((0, 0), np.uint8)

    def draw(self, graph: Graph) -> None:
        """Show another graph; the cursor stays on its node if that is still there."""
        self.graph = graph
        self._at = {node: (i, j) for i, (_, nodes) in enumerate(graph.layers) for j, node in enumerate(nodes)}
        here = self.cursor if self.cursor in self._at else next(iter(self._at), None)
        self.set_reactive(Layered.cursor, here)
        self._lay_out()
        self.post_message(self.Moved(here))

    def on_resize(self) -> None:
        """Use the room there is."""
        self._lay_out()

    def watch_cursor(self, node: int | None) -> None:
        """Let its edges stand out, keep it in sight, and tell."""
        self._trace()
        self._reveal()
        self.refresh()
        self.post_message(self.Moved(node))

    def action_layer(self, layers: int) -> None:
        """Move to the nearest node of another layer."""
        if self.graph is None or self.cursor is None:
            return
        row, _ = self._at[self.cursor]
        row = max(0, min(row + layers, len(self.graph.layers) - 1))
        x = self._boxes[self.cursor][1]
        self.cursor = min(self.graph.layers[row][1], key=lambda node: abs(self._boxes[node][1] - x))

    def action_node(self, steps: int) -> None:
        """Move along the layer."""
        if self.graph is None or self.cursor is None:
            return
        row, place = self._at[self.cursor]
        nodes = self.graph.layers[row][1]
        self.cursor = nodes[max(0, min(place + steps, len(nodes) - 1))]

    def action_pick(self) -> None:
        """Open the node under the cursor."""
        if self.cursor is not None:
            self.post_message(self.Picked(self.cursor))

    def on_click(self, event: events.Click) -> None:
        """The cursor goes to the node under the mouse; a second click opens it."""
        x, y = event.x + self.scroll_offset.x, event.y + self.scroll_offset.y
        for node, (line, start) in self._boxes.items():
            if line == y and self.graph is not None and start <= x < start + len(self.graph.names[node]):
                if node == self.cursor:
                    self.action_pick()
                self.cursor = node
                return

    def render_line(self, y: int) -> Strip:
        """One line of the drawing: dots, and the names over them."""
        x, width = self.scroll_offset.x, self.size.width
        line = y + self.scroll_offset.y
        if self.graph is None or line >= len(self._dots):
            return Strip.blank(width, self.rich_style)
        # 0x2800 is the empty braille cell, which some fonts draw as dots of their own.
        text = ["\N{SPACE}" if not bits else chr(0x2800 + bits) for bits in self._dots[line].tolist()]
        styles = [self._style(kind) for kind in range(_LIT_NEGATIVE + 1)]
        segments: list[Segment] = [
            Segment(sign, styles[kind]) for sign, kind in zip(text, self._kinds[line].tolist(), strict=True)
        ]
        for layer, (name, nodes) in enumerate(self.graph.layers):
            if layer * (1 + self._gap) != line:
                continue
            side = self.get_component_rich_style("layered--layer")
            segments[:_SIDE] = [Segment(sign, side) for sign in name[: _SIDE - 1].ljust(_SIDE)]
            for node in nodes:
                start = self._boxes[node][1]
                style = self._name_style(node)
                for i, sign in enumerate(self.graph.names[node]):
                    segments[start + i] = Segment(sign, style)
        return Strip(segments).crop_extend(x, x + width, self.rich_style)

    def _style(self, kind: int) -> Style:
        names = {_PLAIN: "plain", _NEGATIVE: "negative", _LIT: "lit", _LIT_NEGATIVE: "lit-negative"}
        return self.get_component_rich_style(f"layered--{names[kind]}") if kind else self.rich_style

    def _name_style(self, node: int) -> Style:
        if node == self.cursor:
            return self.rich_style + self.get_component_rich_style("layered--cursor")
        return self.rich_style + (
            self.get_component_rich_style("layered--near") if node in self._near else Style(bold=False)
        )

    @property
    def _near(self) -> set[int]:
        """The nodes that share an edge with the one under the cursor."""
        if self.graph is None:
            return set()
        touching = self._touching()
        return set(self.graph.sources[touching].tolist()) | set(self.graph.targets[touching].tolist())

    def _touching(self) -> npt.NDArray[np.bool_]:
        graph = cast("Graph", self.graph)
        return np.asarray((graph.sources == self.cursor) | (graph.targets == self.cursor), np.bool_)

    @property
    def _gap(self) -> int:
        """Lines between two layers."""
        between = max(1, len(self.graph.layers) - 1) if self.graph else 1
        return max(1, min(_MOST_GAP, (self.size.height - 1) // between - 1))

    def _lay_out(self) -> None:
        """Give every node its place, and draw the edges between them."""
        if self.graph is None or not self.size.width:
            return
        widest = max((len(self.graph.names[node]) for node in self._at), default=1) + 1
        fullest = max((len(nodes) for _, nodes in self.graph.layers), default=1)
        room = max(self.scrollable_content_region.width - _SIDE, fullest * widest)
        self._boxes = {}
        for layer, (_, nodes) in enumerate(self.graph.layers):
            starts = [round(self.graph.places[node] * (room - widest)) for node in nodes]
            if any(b - a < widest for a, b in itertools.pairwise(starts)):
                starts = [round((i + 0.5) * room / len(nodes) - widest / 2) for i in range(len(nodes))]
            for node, start in zip(nodes, starts, strict=True):
                # Shorter names stand in the middle of their place, so that the lines between them are straight.
                inset = (widest - 1 - len(self.graph.names[node])) // 2
                self._boxes[node] = (layer * (1 + self._gap), _SIDE + max(0, start) + inset)
        self.virtual_size = Size(_SIDE + room, max(0, len(self.graph.layers) * (1 + self._gap) - self._gap))
        self._trace()
        self._reveal()
        self.refresh()

    def _trace(self) -> None:
        """Set the dots of the edges, those of the cursor's node last."""
        width, height = self.virtual_size
        self._dots = np.zeros((height, width), np.uint8)
        self._kinds = np.zeros((height, width), np.uint8)
        if self.graph is None or not len(self.graph.sources):
            return
        touching, negative = self._touching(), self.graph.scores < 0
        middle = np.zeros(max(self._boxes) + 1)
        line = np.zeros(len(middle), np.int64)
        for node, (y, start) in self._boxes.items():
            middle[node], line[node] = 2 * start + len(self.graph.names[node]), y
        sources, targets = self.graph.sources, self.graph.targets
        x0, x1 = middle[sources], middle[targets]
        y0, y1 = 4.0 * line[sources] + 4, 4.0 * line[targets] - 1
        passed = (line[targets] - line[sources]) // (1 + self._gap) - 1
        # Towards the middle of the drawing, where there is room.
        side = np.where(x0 + x1 < width + _SIDE, 1.0, -1.0)
        bend = side * np.minimum(6.0 * passed, width / 2)
        steps = int(max(np.abs(x1 - x0).max(), np.abs(y1 - y0).max()) * 1.5 + np.abs(bend).max()) + 2
        t = np.linspace(0, 1, min(steps, 2000))[:, None]
        xs = (1 - t) ** 2 * x0 + 2 * t * (1 - t) * ((x0 + x1) / 2 + bend) + t**2 * x1
        ys = y0 + t * (y1 - y0)
        along = np.cumsum(np.hypot(np.diff(xs, axis=0, prepend=xs[:1]), np.diff(ys, axis=0, prepend=ys[:1])), axis=0)
        drawn = ~negative | (along // _DASH % 2 == 0)
        xs = np.clip(np.rint(xs).astype(np.int64), 2 * _SIDE, 2 * width - 1)
        ys = np.clip(np.rint(ys).astype(np.int64), 0, 4 * height - 1)
        for lit in (False, True):
            part = drawn & (touching == lit)
            kinds = np.where(negative, _NEGATIVE, _PLAIN) + (_LIT - _PLAIN) * lit
            px, py = xs[part], ys[part]
            np.bitwise_or.at(self._dots, (py // 4, px // 2), _DOTS[py % 4, px % 2])
            self._kinds[py // 4, px // 2] = np.broadcast_to(kinds, part.shape)[part]

    def _reveal(self) -> None:
        if self.cursor is None or self.cursor not in self._boxes or self.graph is None:
            return
        line, start = self._boxes[self.cursor]
        seen = self.scrollable_content_region
        x, y = self.scroll_offset
        end = start + len(self.graph.names[self.cursor])
        x = max(0, start - _SIDE) if start < x + _SIDE else end - seen.width if end > x + seen.width else x
        y = line if line < y else line + 1 - seen.height if line >= y + seen.height else y
        self.scroll_to(x, y, animate=False)
