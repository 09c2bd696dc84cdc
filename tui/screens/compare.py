"""Two circuits side by side: how alike they are, what their hard circuits share at every size, where they differ."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import ContentSwitcher, Static

from circuitdb.queries.pair import Pair, ladder
from circuitdb.tui.panels.differences import DifferencePanel, NodeDifferencePanel
from circuitdb.tui.panels.overlap import OverlapPanel
from circuitdb.tui.screen import View
from circuitdb.tui.widgets.choices import Choices
from circuitdb.tui.widgets.ladder import Ladder

if TYPE_CHECKING:
    from circuitdb.queries.database import Database

PARTS = {"overlap": "o Overview", "differences": "d Edges", "node-differences": "n Nodes"}
_FIRST = 200  # edges of a hard circuit at first, as for `circuitdb containment`


class Compare(View[Pair]):
    """Three parts about A and B, with the size of their hard circuits below.

    Attributes:
        part: the one that is seen, a key of `PARTS`.
        size: edges of either hard circuit.
        signed: whether these are the most positive edges, not the strongest.
    """

    MODE = "compare"
    CSS_PATH = "compare.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "open_part('overlap')", "Overview", show=False, tooltip="Similarity, overlap over sizes"),
        Binding("d", "open_part('differences')", "Edges", show=False, tooltip="Edges only in A, in both, only in B"),
        Binding("n", "open_part('node-differences')", "Nodes", show=False, tooltip="Nodes where the two differ most"),
        Binding("comma", "step(0,-1)", "A before", show=False, key_display=",", tooltip="The circuit before as A"),
        Binding("full_stop", "step(0,1)", "A next", key_display=".", tooltip="The next circuit as A"),
        Binding("less_than_sign", "step(1,-1)", "B before", show=False, key_display="<",
                tooltip="The circuit before as B"),
        Binding("greater_than_sign", "step(1,1)", "B next", key_display=">", tooltip="The next circuit as B"),
        Binding("w", "swap", "Swap", tooltip="Exchange A and B"),
        Binding("minus", "resize(-1)", "Fewer", show=False, key_display="-", tooltip="Smaller hard circuits"),
        Binding("plus,equals_sign", "resize(1)", "More", show=False, key_display="+", tooltip="Larger hard circuits"),
        Binding("a", "signed", "Signed", show=False, tooltip="The strongest edges, or the most positive ones"),
        Binding("i", "turn", "Where", show=False, tooltip="Edges of either, only in A, in both, only in B"),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.part = "overlap"
        self.size_asked = _FIRST
        self.signed = False

    def content(self) -> ComposeResult:
        """A and B, the parts' names, the parts, the size."""
        yield Static(id="pair")
        yield Choices(id="parts")
        with ContentSwitcher(initial="overlap", id="switch"):
            yield OverlapPanel(id="overlap")
            yield DifferencePanel(id="differences")
            yield NodeDifferencePanel(id="node-differences")
        yield Ladder("n", id="size")

    @property
    def pair(self) -> tuple[int, int] | None:
        """The two that are compared, else the first two of the chosen ones."""
        chosen = self.selection.circuits
        return self.selection.pair or ((chosen[0], chosen[1]) if len(chosen) > 1 else None)

    def question(self) -> Callable[[Database], Pair] | None:
        """The pair."""
        return None if self.pair is None else partial(_asked, pair=self.pair)

    def depends_on(self) -> Hashable:
        """The pair alone."""
        return self.pair

    def lacking(self) -> str:
        """What to do for a pair."""
        return "Choose two circuits: press 1, and there space on what you want to compare."

    def remark(self) -> tuple[str, str] | None:
        """Other circuits can still be taken where these two can't be compared."""
        said = super().remark()
        if self.failure is None or self.pair is None or said is None:
            return said
        a, b = (self.catalogue.label(circuit) for circuit in self.pair)
        return said[0], f"A is {a}, B is {b}. {said[1]}\nAnother A: , and .   Another B: < and >"

    def show(self, answer: Pair) -> None:
        """Hand the pair to the part that is seen."""
        self.query_one(Ladder).climb(ladder(answer.n_edges), min(self.size_asked, answer.n_edges))
        self._say()
        self._fill()

    def text(self) -> str:
        """What the part that is seen shows."""
        return "" if self.answer is None else self._panel.text()

    def focus_content(self) -> None:
        """Into the part that is seen."""
        self._panel.focus_first()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The keys of a part are those of that part alone."""
        if action == "turn" and self.part != "differences":
            return False
        if action in ("resize", "signed") and self.part == "node-differences":
            return False
        return super().check_action(action, parameters)

    def action_open_part(self, part: str) -> None:
        """Show another part."""
        self.part = part
        self.query_one(ContentSwitcher).current = part
        self.query_one(Ladder).display = part != "node-differences"
        self.refresh_bindings()
        self._say()
        self._fill()
        self._panel.focus_first()

    def action_step(self, side: int, steps: int) -> None:
        """Another A (0) or B (1), of the chosen circuits if there are two, else of all; never the other one."""
        pair = self.pair
        if pair is None:
            return
        chosen = self.selection.circuits
        among = chosen if pair[side] in chosen and len(chosen) > 1 else self.catalogue.ids
        others = [circuit for circuit in among if circuit != pair[1 - side]]
        if pair[side] in others:
            taken = others[(others.index(pair[side]) + steps) % len(others)]
            first, second = (taken, pair[1]) if side == 0 else (pair[0], taken)
            self.browser.selection = self.selection.comparing(first, second)

    def action_swap(self) -> None:
        """Exchange A and B."""
        if self.pair is not None:
            self.browser.selection = self.selection.comparing(self.pair[1], self.pair[0])

    def action_resize(self, steps: int) -> None:
        """Smaller or larger hard circuits."""
        self.query_one(Ladder).action_step(steps)

    def action_signed(self) -> None:
        """The strongest edges, or the most positive ones."""
        self.signed = not self.signed
        self._say()
        self._fill()

    def action_turn(self) -> None:
        """Edges of either, only in A, in both, only in B."""
        self.query_one(DifferencePanel).turn()

    def on_slider_changed(self, message: Ladder.Changed) -> None:
        """Hard circuits of another size."""
        self.size_asked = self.query_one(Ladder).size_at
        self._fill()

    @property
    def _panel(self) -> OverlapPanel | DifferencePanel | NodeDifferencePanel:
        if self.part == "overlap":
            return self.query_one(OverlapPanel)
        if self.part == "differences":
            return self.query_one(DifferencePanel)
        return self.query_one(NodeDifferencePanel)

    def _say(self) -> None:
        names = [(name.partition(" "), part) for part, name in PARTS.items()]
        parts = [
            (key, f"open_part('{part}')", f"[{name}]" if part == self.part else f" {name} ")
            for (key, _, name), part in names
        ]
        way = ("a", "signed", "most positive" if self.signed else "strongest")
        self.query_one("#parts", Choices).say([*parts, *([] if self.part == "node-differences" else [way])])
        if self.answer is None:
            return
        found: list[str | tuple[str, str]] = []
        for letter, circuit in (("A", self.answer.first), ("B", self.answer.second)):
            found += [("  " if found else "") + f"{letter} ", (f"#{circuit.circuit_id} {circuit.label}", "bold")]
        self.query_one("#pair", Static).update(Content.assemble(*found))

    def _fill(self) -> None:
        if self.answer is not None:
            self._panel.take(self.answer, self.size_asked, signed=self.signed)


def _asked(db: Database, *, pair: tuple[int, int]) -> Pair:
    found = db.pair(*pair)
    # Drawn at once: made here, the event loop need not wait for the first sort.
    found.overlap([1])
    return found
