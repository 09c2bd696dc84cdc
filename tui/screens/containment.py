"""Which hard circuits contain which: the shares as a matrix, the order as a tree, chance beside both."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static, Tree
from textual.widgets.tree import TreeNode

from circuitdb.queries import containment as answers
from circuitdb.queries.order import Order, order
from circuitdb.tui import nesting
from circuitdb.tui.frame import ROOMY
from circuitdb.tui.nesting import How, Nest, Part
from circuitdb.tui.screen import View
from circuitdb.tui.widgets.choices import Choices
from circuitdb.tui.widgets.heatmap import Heatmap, plain
from circuitdb.tui.widgets.shares import Shares
from circuitdb.tui.widgets.sizes import Sizes
from circuitdb.tui.widgets.slider import Slider
from circuitdb.words import count

if TYPE_CHECKING:
    from circuitdb.queries.database import Database

_LABELS = {"top": "strongest edges", "greedy": "edges from the logits", "threshold": "strength at least"}
_STEP, _MOST = 0.01, 0.95  # of the tolerance
_REST_S = 0.1  # a size that is not there yet is asked for when the slider rests
_TALL = 34  # lines from which labels may be long
_SHORT_ROW, _SHORT_COLUMN = 12, 6  # signs of a label where there is little room
_MEMBERS = 6  # circuits of one class that are named


class Containment(View[Nest]):
    """Two sliders, the matrix of shares, and at its right the pair under the cursor above the tree.

    Attributes:
        how: the way of the cut.
        tolerance: the share of a circuit's edges that may be missing in one that contains it.
        order: of what is shown; None before the first answer.
    """

    MODE = "containment"
    CSS_PATH = "containment.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("w", "way", "Cut by", show=False, tooltip="Cut to the strongest, from the logits, or by strength"),
        Binding("m", "sign", "Magnitude", show=False, tooltip="Strength is a score's magnitude, or the score itself"),
        Binding("p", "prune", "Prune", show=False, tooltip="Keep all, or only what is on a path from input to logits"),
        Binding("minus", "size(-1)", "Smaller", show=False, key_display="-", tooltip="Smaller circuits"),
        Binding("plus,equals_sign", "size(1)", "Larger", show=False, key_display="+", tooltip="Larger circuits"),
        Binding("less_than_sign", "tolerate(-5)", "Strict", show=False, key_display="<", tooltip="Lower the tolerance"),
        Binding("greater_than_sign", "tolerate(5)", "Lax", show=False, key_display=">", tooltip="Raise the tolerance"),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.how = How()
        self.tolerance = 0.0
        self.order: Order | None = None
        self._short = False

    def content(self) -> ComposeResult:
        """Choices, sliders, matrix, pair and tree."""
        yield Choices(id="cut")
        yield Sizes("", id="size")
        yield Slider("tolerance", 0.0, _MOST, _STEP, id="tolerance")
        with Horizontal():
            yield Shares(id="shares")
            with Vertical(id="within"):
                with VerticalScroll(id="told"):
                    yield Static(id="pair")
                yield Static(id="said")
                tree: Tree[tuple[int, int]] = Tree("", id="order")
                tree.show_root, tree.guide_depth = False, 2
                yield tree

    def focus_content(self) -> None:
        """The matrix comes first."""
        self.query_one(Shares).focus()

    @property
    def sizes(self) -> Sizes:
        """The slider of the size."""
        return self.query_one(Sizes)

    @property
    def shown(self) -> answers.Containment | None:
        """The containment at the size that the slider shows, if it has been read."""
        if self.answer is None or self.answer.how != self.how:
            return None
        return self.answer.found.get(self.sizes.size_shown)

    def question(self) -> Callable[[Database], Nest] | None:
        """The size that is shown; the others follow."""
        chosen = self.selection.circuits
        if not chosen:
            return None
        return partial(nesting.ask, circuits=chosen, how=self.how, sizes=(self.sizes.size_shown,))

    def depends_on(self) -> Hashable:
        """The circuits, and the way of the cut."""
        return self.selection.circuits, self.how

    def reload(self) -> None:
        """Offer the sizes that suit the circuits, and ask about one."""
        rows = [self.catalogue.by_id[i].row for i in self.selection.circuits if i in self.catalogue.by_id]
        n_edges = max((row["n_edges"] or 1 for row in rows), default=1)
        sizes = self.how.sizes(n_edges)
        if (sizes, _LABELS[self.how.way]) != (self.sizes.sizes, self.sizes.label):
            self.sizes.offer(_LABELS[self.how.way], sizes, self.how.usual(n_edges))
        super().reload()

    def show(self, answer: Nest) -> None:
        """Draw the answer, and ask about the other sizes."""
        self._draw()
        others = [size for size in self.sizes.sizes if size not in answer.found]
        if others:
            chosen = self.selection.circuits
            question = partial(nesting.ask, circuits=chosen, how=answer.how, sizes=others)
            self.ask(question, partial(self._more, answer), group="sizes")

    def text(self) -> str:
        """The matrix: circuit, its edges, chance, then a column a circuit; below it the covers of the order."""
        if self.order is None or self.shown is None:
            return ""
        found = self.shown
        labels = [plain(label) for label in found.labels]
        lines = ["\t".join(["circuit", "n", "chance", *labels])]
        rows = zip(labels, found.n.tolist(), found.chance.tolist(), found.shares.tolist(), strict=True)
        lines += ["\t".join([label, str(n), *map(_digits, (by_chance, *row))]) for label, n, by_chance, row in rows]
        lines += ["", "circuit\tcontained_in\tshare\texpected_share"]
        for row in self.order.arrow().to_pylist():
            within = "" if row["contained_in"] is None else plain(row["contained_in"])
            shares = (_digits(math.nan if row[name] is None else row[name]) for name in ("share", "expected_share"))
            lines.append("\t".join([plain(row["circuit"]), within, *shares]))
        return "\n".join(lines)

    def _more(self, answer: Nest, more: Nest) -> None:
        answer.found.update(more.found)
        if answer is self.answer and self.order is None:
            self._draw()

    def _draw(self) -> None:
        found = self.shown
        self.order = None if found is None else order(found, self.tolerance)
        self._say_cut()
        if found is None or self.order is None:
            return
        by_chance = found.chance[:, None]
        inside = self.order.inside & ~np.eye(len(found.n), dtype=bool)
        labels = [plain(label) for label in found.labels]
        self._short = self._is_small()
        self.query_one(Shares).draw_shares(
            np.hstack([by_chance, found.shares]),
            np.hstack([np.zeros(by_chance.shape, bool), inside]),
            [_end(label, _SHORT_ROW) for label in labels] if self._short else labels,
            ["chance", *(_end(label, _SHORT_COLUMN) for label in labels)] if self._short else ["chance", *labels],
        )
        self._draw_tree(self.order)
        self._tell()

    def _is_small(self) -> bool:
        return self.size.width < ROOMY or self.size.height < _TALL

    def _draw_tree(self, found: Order) -> None:
        n_circuits, n_covers = count(len(found.containment.n), "circuit"), count(len(found.covers), "cover")
        said = f"Order: {n_circuits} in {count(len(found.classes), 'class', 'classes')}, {n_covers}."
        if not found.covers:
            said += " None lies in a larger one: p, w cut otherwise, > tolerates more."
        self.query_one("#said", Static).update(Content.styled(said, "bold"))
        tree = self.query_one("#order", Tree)
        tree.clear()
        self._grow(tree.root, nesting.forest(found), found, None)
        tree.root.expand()

    def _grow(self, node: TreeNode[tuple[int, int]], parts: Sequence[Part], found: Order, above: int | None) -> None:
        for part in parts:
            first = found.classes[part.number][0]
            data = (first, first if above is None else above)
            label = self._label(part, found)
            if part.parts:
                self._grow(node.add(label, data, expand=True), part.parts, found, first)
            else:
                node.add_leaf(label, data)

    def _label(self, part: Part, found: Order) -> Text:
        rows = found.classes[part.number]
        labels = [plain(found.containment.labels[row]) for row in rows[:_MEMBERS]]
        more = f" and {len(rows) - _MEMBERS} more" if len(rows) > _MEMBERS else ""
        sizes = sorted({int(found.containment.n[row]) for row in rows})
        size = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
        text = f"{' = '.join(labels)}{more} ({size})"
        if part.share is not None and part.expected is not None:
            text = f"{_known(part.share)}, chance {_percent(part.expected)}: {text}"
        return Text(text + (" (see above)" if part.again else ""), no_wrap=True)

    def _say_cut(self) -> None:
        ways = {"top": "strongest", "greedy": "grown from the logits", "threshold": "by strength"}
        self.query_one(Choices).say(
            [
                ("w", "way", ways[self.how.way]),
                ("m", "sign", "score" if self.how.signed else "magnitude"),
                ("p", "prune", "pruned" if self.how.prune else "unpruned"),
            ],
            "reading ..." if self.shown is None else "",
        )

    def _tell(self) -> None:
        found = self.shown
        if found is None or self.order is None or not len(found.labels):
            return
        row, column = self.query_one(Shares).cursor
        a, b = row, column - 1
        name = plain(found.labels[a])
        if b in (-1, a):
            chance = found.chance[a]
            lines = [f"{count(int(found.n[a]), 'edge')} of {found.n_edges:,}"]
            if not math.isnan(chance):
                lines.append(f"Random circuits of the others' sizes hold {_percent(float(chance))} of it.")
            elif found.n[a] == 0:
                lines.append("It is empty.")
            lines += (
                [f"{count(int(found.n_tied[a]), 'edge')} left out tie with the weakest."] if found.n_tied[a] else []
            )
            heads = [(name, "bold")]
        else:
            lines, heads = self._of_two(found, a, b), [(name, "bold"), (f" in {plain(found.labels[b])}", "bold")]
        notes = found.notes if b in (-1, a) else ()
        self.query_one("#pair", Static).update(
            Content("\n").join([Content.assemble(*heads), *map(Content, (*lines, *notes)), Content("")])
        )

    def _of_two(self, found: answers.Containment, a: int, b: int) -> list[str]:
        assert self.order is not None
        pair = found.pair(a, b)
        inside = self.order.inside
        p_value = pair["p_value"]
        chance = "" if pair["expected_share"] is None else f", chance {_percent(pair['expected_share'])}"
        back = found.shares[b, a]
        relation = {
            (True, True): "each is in the other", (True, False): "contained", (False, True): "contains it",
            (False, False): "neither is in the other",
        }[bool(inside[a, b]), bool(inside[b, a])]  # fmt: skip
        return [
            f"{_known(pair['share_of_a'])} of {count(pair['n_a'], 'edge')}{chance}",
            f"{_known(None if math.isnan(back) else float(back))} of the other's {pair['n_b']:,} back",
            f"{count(pair['shared'], 'edge')} shared, p {'= 1' if p_value == 1 else _p(p_value)}",
            f"Jaccard {_number(pair['jaccard'])}, chance {_number(pair['expected_jaccard'])}",
            f"At this tolerance: {relation}",
        ]

    def on_heatmap_moved(self, message: Heatmap.Moved) -> None:
        """Tell of the pair under the cursor."""
        self._tell()

    def on_heatmap_picked(self, message: Heatmap.Picked) -> None:
        """Compare the two circuits of a cell; on the diagonal and in the column of chance look at the one."""
        if self.shown is None:
            return
        a, b = message.row, message.column - 1
        ids = self.shown.circuit_ids
        if b in (-1, a):
            self.browser.look_at(ids[a])
        else:
            self.browser.compare(ids[a], ids[b])

    def on_tree_node_selected(self, event: Tree.NodeSelected[tuple[int, int]]) -> None:
        """To the cell of a circuit and the one it is in."""
        if event.node.data is not None:
            inner, outer = event.node.data
            self.query_one(Shares).cursor = inner, outer + 1

    def on_slider_changed(self, message: Slider.Changed) -> None:
        """Another size or tolerance."""
        if message.slider.id == "tolerance":
            self.tolerance = round(message.value, 6)
        self._draw()
        if self.shown is None and self.answer is not None and self.answer.how == self.how:
            size = self.sizes.size_shown
            question = partial(nesting.ask, circuits=self.selection.circuits, how=self.how, sizes=(size,))
            self.ask(question, partial(self._more, self.answer), group="size", delay=_REST_S)

    def on_resize(self) -> None:
        """More room has longer labels."""
        if self._is_small() != self._short:
            self._draw()

    def action_size(self, steps: int) -> None:
        """Smaller or larger."""
        self.sizes.action_step(steps)

    def action_tolerate(self, steps: int) -> None:
        """Another tolerance."""
        self.query_one("#tolerance", Slider).action_step(steps)

    def action_way(self) -> None:
        """The next way to cut."""
        self._change(self.how.following())

    def action_sign(self) -> None:
        """Magnitudes or scores."""
        self._change(replace(self.how, signed=not self.how.signed))

    def action_prune(self) -> None:
        """Pruned or not."""
        self._change(replace(self.how, prune=not self.how.prune))

    def _change(self, how: How) -> None:
        self.how = how
        self.renew()
        self._draw()


def _end(label: str, most: int) -> str:
    """The end of a label tells it from its neighbours."""
    return label if len(label) <= most else f"…{label[1 - most :]}"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share * 100:.2g}%"


def _known(share: float | None) -> str:
    return "nothing" if share is None else f"{int(share * 100 + 1e-9)}%"


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:.2g}"


def _p(value: float) -> str:
    return f"= {value:.2g}" if value >= 0.001 else "< 0.001"


def _digits(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
