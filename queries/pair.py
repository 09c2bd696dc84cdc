"""Two circuits of one graph side by side: their similarity, what their hard circuits share, where they differ.

1. The edges of each are ranked by strength, those of strength 0 left out: the first n are its hard circuit (`cuts`).
2. An edge is in both hard circuits of n edges if the later of its places is within n; one sort counts that for all n.
3. Nodes are compared by their share of the circuit, score / sum of all nodes' absolute scores: circuits that were
   scored by another metric, or on an easier task, have scores of another size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb.queries import chance
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.cuts import strength
from circuitdb.queries.paths import ranked
from circuitdb.queries.result import Result, count
from circuitdb.queries.similarity import Similarity
from circuitdb.queries.softcircuit import EdgeList, SoftCircuit

Places = npt.NDArray[np.int64]
WHERE = ("only a", "both", "only b")
_STEPS = (1, 2, 3, 4, 5, 6, 8)


def ladder(n_edges: int) -> list[int]:
    """Sizes from 1 to all edges in even steps of their order: 1, 2, 3, 4, 5, 6, 8, 10, 20, ..."""
    sizes = [step * 10**power for power in range(len(str(n_edges))) for step in _STEPS]
    return [*(size for size in sizes if size < n_edges), n_edges]


@dataclass(frozen=True, eq=False)
class Pair:
    """Circuits a and b.

    Attributes:
        first, second: the two.
        signed, magnitude: their similarity on both kinds of scores, with reliabilities, in the order of first, second.
    """

    first: SoftCircuit
    second: SoftCircuit
    signed: Similarity
    magnitude: Similarity
    _later: dict[bool, Places] = field(default_factory=dict, repr=False)  # by `signed`: sorted later places of edges

    @property
    def n_edges(self) -> int:
        """Of the graph."""
        return self.first.shape.n_edges

    def overlap(self, sizes: Sequence[int] | None = None, *, signed: bool = False) -> Result:
        """What the hard circuits of the n strongest edges share, one row a size n.

        n_a, n_b (edges of each, fewer than n where fewer have a strength), shared, a_in_b and b_in_a (the share of a
        that is in b, of b in a), jaccard, and by chance expected_shared, expected_jaccard and p_value, as in
        `Containment`. Without `sizes` they are those of `ladder`. Strength is the absolute score, `signed` the score.
        """
        asked = np.array(ladder(self.n_edges) if sizes is None else sizes, np.int64)
        places = self._places(signed)
        later = self._later[signed] if signed in self._later else np.sort(np.maximum(*places))
        self._later[signed] = later
        n_a, n_b = (np.minimum(asked, np.count_nonzero(own < self.n_edges)) for own in places)
        shared = np.searchsorted(later, np.minimum(asked, self.n_edges), side="left")
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = {
                "a_in_b": shared / n_a,
                "b_in_a": shared / n_b,
                "jaccard": shared / (n_a + n_b - shared),
            }
        table = pa.table(
            {
                "n": integers(asked.tolist()),
                "n_a": integers(n_a.tolist()),
                "n_b": integers(n_b.tolist()),
                "shared": integers(shared.tolist()),
                **{name: numbers(values) for name, values in ratios.items()},
                "expected_shared": numbers(chance.expected_shared(self.n_edges, n_a, n_b)),
                "expected_jaccard": numbers(chance.expected_jaccard(self.n_edges, n_a, n_b)),
                "p_value": numbers(chance.at_least(self.n_edges, n_a, n_b, shared)),
            }
        )
        return Result(table, f"Overlap of {self.first.label} and {self.second.label} at {count(len(asked), 'size')}")

    def edges(self, n: int, *, signed: bool = False) -> Result:
        """The edges that are in either hard circuit of the n strongest edges, one row each.

        edge, where (only a, both, only b), score_a, score_b, place_a, place_b (by strength, from 1; NULL where an edge
        has none), edge_id. They are sorted by the better of their two places, ties by edge id.
        """
        places = self._places(signed)
        inside = [own < min(n, self.n_edges) for own in places]
        better = np.minimum(*places)
        chosen = np.flatnonzero(inside[0] | inside[1])
        chosen = chosen[np.argsort(better[chosen], kind="stable")]
        where = np.where(inside[0] & inside[1], 1, np.where(inside[0], 0, 2))[chosen]
        listed = EdgeList(self.first.shape, self.first.scores, chosen).page()
        columns = {"edge": listed["edge"], "where": texts(WHERE[i] for i in where.tolist())}
        for side, circuit, own in zip("ab", (self.first, self.second), places, strict=True):
            columns[f"score_{side}"] = numbers(circuit.scores[chosen].astype(np.float64))
            columns[f"place_{side}"] = integers(p + 1 if p < self.n_edges else None for p in own[chosen].tolist())
        table = pa.table({**columns, "edge_id": listed["edge_id"]})
        counts = ", ".join(f"{int((where == i).sum()):,} {name}" for i, name in enumerate(WHERE))
        return Result(table, f"Edges of {self.first.label} (a) and {self.second.label} (b), {n:,} strongest: {counts}")

    def nodes(self) -> Result:
        """The nodes, those first that differ most in their share of the circuit.

        node, score_a, score_b, share_a and share_b (score / sum of all nodes' absolute scores, -1..1), difference
        (share_b - share_a); NULL where a score is, and those come last.
        """
        scores = [circuit.node_scores[:-1] for circuit in (self.first, self.second)]
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = [own / np.nansum(np.abs(own)) for own in scores]
        difference = shares[1] - shares[0]
        order = np.argsort(np.where(np.isnan(difference), np.inf, -np.abs(difference)), kind="stable")
        table = pa.table(
            {
                "node": texts(self.first.node_names[i] for i in order.tolist()),
                **{f"score_{side}": numbers(own[order]) for side, own in zip("ab", scores, strict=True)},
                **{f"share_{side}": numbers(own[order]) for side, own in zip("ab", shares, strict=True)},
                "difference": numbers(difference[order]),
            }
        )
        return Result(table, f"{count(len(order), 'node')} of {self.first.label} (a) and {self.second.label} (b)")

    def _places(self, signed: bool) -> tuple[Places, Places]:
        """[edge] of each: places by strength from 0; the number of edges where an edge is never in."""
        return self._signed if signed else self._unsigned

    @cached_property
    def _unsigned(self) -> tuple[Places, Places]:
        return _places(self.first, signed=False), _places(self.second, signed=False)

    @cached_property
    def _signed(self) -> tuple[Places, Places]:
        return _places(self.first, signed=True), _places(self.second, signed=True)


def _places(circuit: SoftCircuit, *, signed: bool) -> Places:
    order = ranked(strength(circuit.scores, signed=signed))
    places = np.full(len(circuit.scores), len(circuit.scores), np.int64)
    places[order] = np.arange(len(order))
    return places
