"""Where two circuits differ: edges only in one of their hard circuits, and nodes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from textual.app import ComposeResult
from textual.containers import Container
from textual.widgets import Static

from circuitdb.queries.pair import WHERE, Pair
from circuitdb.queries.result import Result
from circuitdb.tui.widgets.choices import Choices
from circuitdb.tui.widgets.pages import Column, Fetch, Pages


def _named(where: str) -> str:
    """Only a as a person reads it on this screen: only A."""
    return where.replace("only a", "only A").replace("only b", "only B")


_SCORE = "{:+.4g}".format
_EDGES = (
    Column("edge", "edge", 19),
    Column("where", "in", 6, form=_named),
    Column("score_a", "score A", 10, right=True, form=_SCORE),
    Column("place_a", "# A", 8, right=True, form="{:,}".format),
    Column("score_b", "score B", 10, right=True, form=_SCORE),
    Column("place_b", "# B", 8, right=True, form="{:,}".format),
)
_NODES = (
    Column("node", "node", 8),
    Column("share_a", "share A", 9, right=True, form="{:+.2%}".format),
    Column("share_b", "share B", 9, right=True, form="{:+.2%}".format),
    Column("difference", "B - A", 9, right=True, form="{:+.2%}".format),
    Column("score_a", "score A", 11, right=True, form=_SCORE),
    Column("score_b", "score B", 11, right=True, form=_SCORE),
)
_SEEN = ("either", *WHERE)


class DifferencePanel(Container):
    """The edges of two hard circuits.

    Attributes:
        seen: which of them, one of either, only a, both, only b.
        found: the rows that are listed.
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.seen = _SEEN[0]
        self.found: pa.Table | None = None
        self._edges: Result | None = None
        self._taken: tuple[Pair, int, bool] | None = None

    def compose(self) -> ComposeResult:
        """How many are where, and the table."""
        yield Choices(id="where")
        yield Pages(id="edges-table")

    def focus_first(self) -> None:
        """The table."""
        self.query_one(Pages).focus()

    def take(self, pair: Pair, size: int, *, signed: bool) -> None:
        """List the edges of either hard circuit of a size."""
        if self._taken != (pair, size, signed):
            self._taken = (pair, size, signed)
            self._edges = pair.edges(size, signed=signed)
            self._list()

    def turn(self) -> None:
        """Edges of either, only of A, of both, only of B."""
        self.seen = _SEEN[(_SEEN.index(self.seen) + 1) % len(_SEEN)]
        self._list()

    def text(self) -> str:
        """All listed rows."""
        return "" if self.found is None else _tsv(self.found)

    def _list(self) -> None:
        if self._edges is None:
            return
        table = self._edges.arrow()
        counts = {name: int(pc.sum(pc.equal(table["where"], name)).as_py() or 0) for name in WHERE}
        told = ", ".join(f"{n:,} {_named(name)}" for name, n in counts.items())
        self.query_one("#where", Choices).say([("i", "turn()", f"of {_named(self.seen)}")], told)
        self.found = table if self.seen == _SEEN[0] else table.filter(pc.equal(table["where"], self.seen))
        self.query_one(Pages).show(_EDGES, len(self.found), _fetched(self.found))


class NodeDifferencePanel(Container):
    """The nodes, those first that differ most."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.pair: Pair | None = None
        self.found: pa.Table | None = None

    def compose(self) -> ComposeResult:
        """What a share is, and the table."""
        yield Static("share: a node's score by the sum of all nodes' absolute scores", id="node-remark")
        yield Pages(id="nodes-table")

    def focus_first(self) -> None:
        """The table."""
        self.query_one(Pages).focus()

    def take(self, pair: Pair, size: int, *, signed: bool) -> None:
        """List the nodes; size and sign say nothing about them."""
        if pair is not self.pair:
            self.pair, self.found = pair, pair.nodes().arrow()
            self.query_one(Pages).show(_NODES, len(self.found), _fetched(self.found))

    def text(self) -> str:
        """All rows."""
        return "" if self.found is None else _tsv(self.found)


def _fetched(table: pa.Table) -> Fetch:
    async def fetch(offset: int, limit: int) -> pa.Table:
        return table.slice(offset, limit)

    return fetch


def _tsv(table: pa.Table) -> str:
    rows = ["\t".join("" if v is None else str(v) for v in row.values()) for row in table.to_pylist()]
    return "\n".join(["\t".join(table.column_names), *rows])
