"""Questions about hard circuits, as methods of the database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from circuitdb.connection import reading
from circuitdb.errors import UsageError
from circuitdb.graph import GraphShape
from circuitdb.queries import arguments, containment, inclusion, matrix, order
from circuitdb.queries.asked import Cuttable, parted_cut
from circuitdb.queries.asking import Asking, the_circuit
from circuitdb.queries.containment import Containment
from circuitdb.queries.cuts import Cut, Cutting, hard
from circuitdb.queries.filters import Where
from circuitdb.queries.matrix import ScoreMatrix
from circuitdb.queries.order import Order
from circuitdb.queries.result import Result
from circuitdb.queries.selection import select


class HardCircuits(Asking):
    """Which edges a cut keeps of circuits, and what these share."""

    def containment(self, **asked: Unpack[Cuttable]) -> Containment:
        """How much of one hard circuit is in another, for ordered pairs, beside what chance would share.

        A circuit is cut to its `top` strongest edges (200 if no cut is named), to a `share` of the graph's edges, to
        those of a strength of `threshold` or more, or to `greedy` edges grown from the logits. Strength is the absolute
        score, or with `signed` the score itself; `prune` keeps only edges on a path from input to logits. See `Cut`.

        `share_of_a` is the share of a's edges that are in b, `mutual` the lesser of that and b's in a, `jaccard` the
        shared of all edges in either, all 0..1; `expected_...` are their means for random circuits of the same sizes,
        and `p_value` is how often these share as many edges or more (hypergeometric). `.wide()` has the shares as a
        matrix.

        Raises UsageError if the circuits are of different graph shapes, or for two cuts at once.

        >>> db.containment(top=3).wide()
        Containment of 4 circuits, each cut to its 3 strongest of 8 edges; the row's share that is in the column
        label  chance     1+1     1+2     2+1     2+2
        1+1     0.375       1  0.6667  0.3333       1
        1+2     0.375  0.6667       1  0.6667  0.6667
        2+1     0.375  0.3333  0.6667       1  0.3333
        2+2     0.375       1  0.6667  0.3333       1
        """
        where, cut = parted_cut(asked)
        scores, shape = self._scores(where)
        return containment.containment(scores, cut, shape)

    def containments(self, cuts: Sequence[Cut], **where: Unpack[Where]) -> list[Containment]:
        """The containment at several cuts, in their order: the scores are read, and the edges put in order, once.

        Raises UsageError if the circuits are of different graph shapes.

        >>> from circuitdb.queries import Cut
        >>> for found in db.containments([Cut.of(top=2), Cut.of(top=3)]):
        ...     print(found.n.tolist(), round(found.shares[0, 1], 3), found.chance.tolist()[0])
        [2, 2, 2, 2] 0.5 0.25
        [3, 3, 3, 3] 0.667 0.375
        """
        scores, shape = self._scores(where)
        return containment.containments(scores, cuts, shape)

    def containment_order(self, tolerance: float = 0.0, **asked: Unpack[Cuttable]) -> Order:
        """Which hard circuit is a sub-circuit of which: the covers of the containment order (Hasse diagram).

        A circuit is in another if all but a `tolerance` of its edges are; circuits that lie in each other count as one.
        The cut is asked for as in `containment`.

        >>> for row in db.containment_order(threshold=5).result().rows():
        ...     print(row["circuit"], "in", row["contained_in"])
        2+2 in 1+1 = 1+2
        2+1 in None
        """
        where, cut = parted_cut(asked)
        scores, shape = self._scores(where)
        return order.order(containment.containment(scores, cut, shape), tolerance)

    def inclusion(
        self,
        cuts: Sequence[Cut] | None = None,
        *,
        consensus: float = 0.8,
        least: float = 0.0,
        **asked: Unpack[Cuttable],
    ) -> Result:
        """How many of the hard circuits an edge is in, one row an edge that is in any, the most frequent first.

        Every circuit cut in every way of `cuts` counts; without them the cut is asked for as in `containment`.
        `inclusion` is the share of them (0..1), of which rows under `least` are left out; `kind` is core (in all),
        consensus (in at least a share of `consensus`) or some, and `only_in` names the circuit of an edge that no other
        has. The title counts them, beside what chance would give with each circuit's edges in random order.

        Raises UsageError for `cuts` and the keywords of one beside them.

        >>> found = db.inclusion(top=3, consensus=0.5)
        >>> [(row["edge"], row["inclusion"], row["kind"]) for row in found.rows()[:2]]
        [('input->a0.h0<v>', 1.0, 'core'), ('input->a0.h0<k>', 0.75, 'consensus')]
        """
        where, cut = parted_cut(asked)
        if cuts is None:
            cuts = [cut]
        elif given := [name for name in Cutting.__annotations__ if name in asked]:
            raise UsageError(f"The cuts are given one by one; {given[0]} belongs into each of them.")
        scores, shape = self._scores(where)
        return inclusion.inclusion(scores, cuts, shape, consensus=consensus, least=least)

    def hard_circuit(self, circuit: int, **asked: Unpack[Cutting]) -> Result:
        """The edges of one hard circuit in edge order: edge, source, target, score, edge_id; cut: see `containment`.

        >>> db.hard_circuit(1, top=3)
        3 edges of circuit 1 (1+1), cut to its 3 strongest of 8 edges
        edge             source  target    score  edge_id
        input->a0.h0<q>  input   a0.h0<q>      8        0
        input->a0.h0<k>  input   a0.h0<k>      7        1
        input->a0.h0<v>  input   a0.h0<v>      6        2
        """
        cut = Cut.of(**asked)
        circuit = arguments.whole("circuit", circuit)
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = the_circuit(connection, circuit)
            scores = matrix.read(connection, chosen)
        shape = chosen.members[0].shape
        return containment.edges(scores, hard(scores.scores, cut, shape), cut, shape)

    def _scores(self, where: Where) -> tuple[ScoreMatrix, GraphShape]:
        """The scores of circuits of one graph, and its shape."""
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, where).compared()
            scores = matrix.read(connection, chosen)
        return scores, chosen.members[0].shape if chosen.members else GraphShape(1, 1)
