"""The edges of a circuit as a table of any length, sorted and filtered."""

from __future__ import annotations

import asyncio

import pyarrow as pa
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input

from circuitdb.errors import UsageError
from circuitdb.queries.softcircuit import EdgeList, SoftCircuit
from circuitdb.tui.edgefilter import EdgeFilter
from circuitdb.tui.panels.panel import Panel
from circuitdb.tui.widgets.choices import Choices
from circuitdb.tui.widgets.pages import Column, Pages

_REST_S = 0.05  # letters that follow each other quickly filter once
_COLUMNS = (
    Column("place", "#", 9, right=True, form="{:,}".format),
    Column("source", "source", 10),
    Column("target", "target", 12),
    Column("score", "score", 12, right=True, form="{:+.5g}".format),
    Column("edge_id", "edge id", 9, right=True),
)
_ORDER_OF = {"place": "strength", "score": "highest", "source": "edge", "target": "edge", "edge_id": "edge"}


class EdgePanel(Panel):
    """Filters above, the table below.

    Attributes:
        filter: which edges, in what order.
        found: the edges that pass; None before the first answer.
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.filter = EdgeFilter()
        self.found: EdgeList | None = None

    def compose(self) -> ComposeResult:
        """Filters, fields, table."""
        yield Choices(id="edge-filter")
        with Horizontal(id="fields"):
            yield Input(placeholder="/ name: a3.h2->, ->m5, <q>", id="name", compact=True)
            yield Input(placeholder="layers: 3 or 3-5", id="layers", compact=True)
        yield Pages(id="table")

    def draw(self, circuit: SoftCircuit) -> None:
        """List its edges; the filters stay, but for a node that it lacks."""
        if self.filter.node is not None and self.filter.node >= len(circuit.node_names):
            self.filter = EdgeFilter()
        self._list()

    def text(self) -> str:
        """The rows in sight."""
        return self.query_one(Pages).text()

    def focus_first(self) -> None:
        """The table comes before the fields."""
        self.query_one(Pages).focus()

    def turn(self, what: str) -> None:
        """The next value of a filter, or the next order."""
        self.filter = self.filter.turned(what)
        self._list()

    def clear(self) -> None:
        """All edges again."""
        self.filter = EdgeFilter(order=self.filter.order)
        for field in self.query(Input):
            field.value = ""
        self._list()

    def only(self, node: int) -> None:
        """The edges of a node, once they are listed."""
        self.filter = EdgeFilter(order=self.filter.order, node=node)
        for field in self.query(Input):
            field.value = ""
        if self.circuit is not None:
            self._list()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter by what is typed."""
        if event.input.id is not None and getattr(self.filter, event.input.id) != event.value:
            self.filter = self.filter.but(event.input.id, event.value)
            self._list()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """From a field to the table."""
        self.query_one(Pages).focus()

    def on_pages_head_picked(self, message: Pages.HeadPicked) -> None:
        """Sort by a heading; the score's a second time the other way round."""
        order = _ORDER_OF[message.column]
        self.filter = self.filter.but("order", "lowest" if order == self.filter.order == "highest" else order)
        self._list()

    def _list(self) -> None:
        self._say("reading ...")
        # As a function: a coroutine that is cancelled before it begins would be warned of.
        self.run_worker(self._find, group="edges", exclusive=True)  # type: ignore[arg-type]

    async def _find(self) -> None:
        await asyncio.sleep(_REST_S)
        circuit, wanted = self.circuit, self.filter
        if circuit is None:
            return
        try:
            # Sorting a million edges takes a tenth of a second, in which keys must still be heard.
            found = await asyncio.to_thread(wanted.edges, circuit)
        except UsageError as error:
            self._say(str(error))
            return
        self.found = found

        async def fetch(offset: int, limit: int) -> pa.Table:
            return found.page(offset, limit)

        self.query_one(Pages).show(_COLUMNS, len(found), fetch)
        none = "" if len(found) else "; x takes the filters away"
        told = f"{len(found):,} of {circuit.shape.n_edges:,} edges".replace(" ", "\N{NO-BREAK SPACE}")
        self._say(f"{told}{none}")

    def _say(self, remark: str) -> None:
        found = self.filter
        node = [] if found.node is None or self.circuit is None else [
            ("x", "clear", f"of {self.circuit.node_names[found.node]} only")
        ]  # fmt: skip
        self.query_one("#edge-filter", Choices).say(
            [
                ("s", "turn('source')", f"from {found.source}"),
                ("g", "turn('target')", f"to {found.target}"),
                ("k", "turn('qkv')", f"q/k/v {found.qkv}"),
                ("i", "turn('sign')", f"sign {found.sign}"),
                ("o", "turn('order')", f"by {found.order}"),
                *node,
            ],
            remark,
        )
