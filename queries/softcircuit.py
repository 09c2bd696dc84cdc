"""One soft circuit in memory: its nodes, its edges sorted and filtered, and what a cut leaves of it.

Once the scores are read, each of these takes milliseconds, and the file is free: a page of a million edges is a slice
of their order, and only its names are made.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb.cuts import by_strength
from circuitdb.errors import UsageError
from circuitdb.graph import GraphShape
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.comparison import EVERY_EDGE, Comparison
from circuitdb.queries.cuts import Cut, hard
from circuitdb.queries.features import Ends
from circuitdb.queries.matrix import FloatArray

Ids = npt.NDArray[np.int64]
ORDERS = ("strength", "highest", "lowest", "edge")
SIGNS = ("+", "-", "0")


@dataclass(frozen=True, eq=False)
class EdgeList:
    """Some edges of a circuit in some order.

    Attributes:
        shape: of the graph.
        scores: float32 [edge] of the whole graph, NaN where a score is NULL.
        ids: edge ids, in order.
    """

    shape: GraphShape
    scores: FloatArray
    ids: Ids

    def __len__(self) -> int:
        return len(self.ids)

    def page(self, offset: int = 0, limit: int | None = None) -> pa.Table:
        """Rows from an offset on: place (from 1), edge, source, target, score (NULL if not finite), edge_id."""
        chosen = self.ids[offset : None if limit is None else offset + limit]
        sources = [self.shape.source_names[i] for i in self.shape.edge_sources[chosen].tolist()]
        targets = [self.shape.target_names[i] for i in self.shape.edge_targets[chosen].tolist()]
        return pa.table(
            {
                "place": integers(range(offset + 1, offset + 1 + len(chosen))),
                "edge": texts(f"{source}->{target}" for source, target in zip(sources, targets, strict=True)),
                "source": texts(sources),
                "target": texts(targets),
                "score": numbers(self.scores[chosen].astype(np.float64)),
                "edge_id": integers(chosen.tolist(), bits=32),
            }
        )


@dataclass(frozen=True, eq=False)
class Kept:
    """A hard circuit as a graph.

    Attributes:
        edges: its edges, the strongest first.
        sources, targets: the nodes of each edge, as their places in `SoftCircuit.node_names`.
        nodes: the places of all nodes that an edge touches, ascending.
        n_tied: edges left out although they tie with the weakest that is in.
        n_cut: edges before those on no path from input to logits were dropped.
    """

    edges: EdgeList
    sources: Ids
    targets: Ids
    nodes: Ids
    n_tied: int
    n_cut: int


@dataclass(frozen=True, eq=False)
class SoftCircuit:
    """All scores of a circuit.

    Attributes:
        circuit_id, label: which one.
        shape: of its graph.
        scores: float32 [edge], in edge order; NaN where a score is NULL.
    """

    circuit_id: int
    label: str
    shape: GraphShape
    scores: FloatArray
    _orders: dict[str, Ids] = field(default_factory=dict, repr=False)

    @cached_property
    def node_names(self) -> list[str]:
        """The nodes in the order of the forward pass, the logits last."""
        return [*self.shape.source_names, "logits"]

    @cached_property
    def node_scores(self) -> npt.NDArray[np.float64]:
        """[node]: the sum over a node's outgoing edges; NaN if none has a score, as for the logits."""
        known = ~np.isnan(self.scores)
        sources, n = self.shape.edge_sources, len(self.node_names)
        sums = np.bincount(sources, np.where(known, self.scores, 0).astype(np.float64), minlength=n)
        return np.where(np.bincount(sources[known], minlength=n) > 0, sums, np.nan)

    @cached_property
    def node_standings(self) -> npt.NDArray[np.float64]:
        """[node]: the share of the nodes that are weaker, with the sign of its score, -1..1; NaN where that is.

        Scores of nodes differ by orders of magnitude, which a scale of the scores themselves can't show.
        """
        strong = np.abs(self.node_scores)
        known = np.sort(strong[~np.isnan(strong)])
        shares = np.searchsorted(known, strong, side="left") / max(len(known), 1)
        return np.where(np.isnan(strong), np.nan, np.sign(self.node_scores) * shares)

    @property
    def n_missing(self) -> int:
        """Edges without a score."""
        return int(np.count_nonzero(np.isnan(self.scores)))

    def layer(self, node: int) -> int:
        """The layer of a node: -1 for the input, the number of layers for the logits."""
        return (node - 1) // (self.shape.n_heads + 1) if node else -1

    def incoming(self, node: int) -> EdgeList:
        """The edges that lead to a node, to a head's q, k and v alike, the strongest first."""
        return self._strongest(np.flatnonzero(self.shape.edge_target_nodes == node))

    def outgoing(self, node: int) -> EdgeList:
        """The edges that leave a node, the strongest first."""
        return self._strongest(np.flatnonzero(self.shape.edge_sources == node))

    def edges(
        self,
        how: Comparison = EVERY_EDGE,
        *,
        sign: str | None = None,
        name: str = "",
        node: int | None = None,
        order: str = "strength",
    ) -> EdgeList:
        """The edges that pass filters; those without a score come last.

        Args:
            how: which layers, kinds of source and target, and inputs of heads (see `Comparison`).
            sign: + for scores over 0, - for those under it, 0 for zeros; None for all, those without a score too.
            name: what an edge's name has in it, in any case: h2, a3.h2->, input->m0.
            node: the node that an edge leaves or leads to.
            order: strength (absolute score, falling), highest, lowest or edge (by number); ties by number.

        Raises UsageError for a sign or an order that there is not.
        """
        for what, value, known in (("sign", sign, SIGNS), ("order", order, ORDERS)):
            if value is not None and value not in known:
                raise UsageError(f"There is no {what} {value!r}; choose one of {', '.join(known)}.")
        kept = np.ones(len(self.scores), bool) if how == EVERY_EDGE else Ends.of(self.shape).kept(how)
        if sign is not None:
            kept &= np.sign(self.scores) == {"+": 1, "-": -1, "0": 0}[sign]
        if name:
            kept &= _named(name.lower(), self.shape)
        if node is not None:
            kept &= (self.shape.edge_sources == node) | (self.shape.edge_target_nodes == node)
        ids = self._order(order)
        return EdgeList(self.shape, self.scores, ids[kept[ids]])

    def hard(self, cut: Cut) -> Kept:
        """The circuit cut to a hard one: see `Cut`."""
        found = hard(self.scores[None], cut, self.shape)
        n_cut = int(found.n[0])
        if cut.prune:
            unpruned = Cut(cut.top, cut.share, cut.threshold, cut.greedy, cut.signed)
            n_cut = int(hard(self.scores[None], unpruned, self.shape).n[0])
        kept = self._strongest(np.flatnonzero(found.members[0]))
        sources = self.shape.edge_sources[kept.ids].astype(np.int64)
        targets = self.shape.edge_target_nodes[kept.ids].astype(np.int64)
        nodes = np.unique(np.concatenate((sources, targets)))
        return Kept(kept, sources, targets, nodes, int(found.n_tied[0]), n_cut)

    def _strongest(self, ids: Ids) -> EdgeList:
        return EdgeList(self.shape, self.scores, ids[by_strength(np.abs(self.scores[ids]))])

    def _order(self, order: str) -> Ids:
        if order not in self._orders:
            if order == "edge":
                self._orders[order] = np.arange(len(self.scores))
            else:
                falling = {"strength": np.abs(self.scores), "highest": self.scores, "lowest": -self.scores}
                self._orders[order] = by_strength(falling[order])
        return self._orders[order]


def _named(text: str, shape: GraphShape) -> npt.NDArray[np.bool_]:
    """[edge]: whether the name has this text in it, found of the ends' names alone, which are few."""
    ends = [(names, np.array([text in name for name in names])) for names in (shape.source_names, shape.target_names)]
    (sources, in_source), (targets, in_target) = ends
    found = in_source[shape.edge_sources] | in_target[shape.edge_targets]
    # The text may also lie across the arrow, which then begins at one of its characters, or just before them.
    for start in range(-1, len(text)):
        if all(text[i] == sign for i, sign in ((start, "-"), (start + 1, ">")) if 0 <= i < len(text)):
            left = np.array([name.endswith(text[: max(start, 0)]) for name in sources])
            right = np.array([name.startswith(text[start + 2 :]) for name in targets])
            found |= left[shape.edge_sources] & right[shape.edge_targets]
    return np.asarray(found, np.bool_)
