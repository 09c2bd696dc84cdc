"""Hard circuits: the edges that a cut keeps of a soft circuit.

1. An edge's strength is its absolute score or, signed, the score itself: how much its ablation raises the metric. An
   edge of strength zero or less, or of NULL, is never in: nothing flows through it, nothing is known of it, or its
   ablation lowers the metric.
2. The edges are put in the order in which they enter: by strength, ties by edge id; or, greedily, grown from the
   logits: always the strongest edge whose target is in, whose source is then in too.
3. The cut takes the first n of that order, or a share of the graph's edges, or all from a strength on.
4. Pruned, it keeps the edges on a path from the input to the logits: see `paths`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from circuitdb.errors import UsageError
from circuitdb.graph import GraphShape
from circuitdb.queries import arguments
from circuitdb.queries.matrix import FloatArray
from circuitdb.queries.paths import grown, pruned, ranked

Members = npt.NDArray[np.bool_]
Edges = npt.NDArray[np.int64]
DEFAULT_TOP = 200
_WAYS = ("top", "share", "threshold", "greedy")


class Cutting(TypedDict, total=False):
    """How soft circuits are to be cut; see `Cut` for the values."""

    top: int | None
    share: float | None
    threshold: float | None
    greedy: int | None
    signed: bool
    prune: bool


@dataclass(frozen=True)
class Cut:
    """A checked `Cutting`: how soft circuits are made hard.

    Exactly one of `top`, `share`, `threshold` and `greedy` is given.

    Attributes:
        top: this many of the strongest edges.
        share: this share of the graph's edges, over 0 and at most 1, the strongest; rounded, at least one edge.
        threshold: all edges of at least this strength, over 0, in the unit of the scores.
        greedy: this many edges, grown from the logits.
        signed: strength is the score itself; otherwise its absolute value.
        prune: only the edges on a path from input to logits are kept.
    """

    top: int | None = None
    share: float | None = None
    threshold: float | None = None
    greedy: int | None = None
    signed: bool = False
    prune: bool = False

    @classmethod
    def of(cls, **asked: Unpack[Cutting]) -> Cut:
        """A cut from what a caller hands over, top=200 if nothing. Raises UsageError."""
        known = [field.name for field in fields(cls)]
        if unknown := [name for name in asked if name not in known]:
            raise TypeError(f"A cut has no {unknown[0]!r}; it has {', '.join(known)}.")
        named = [name for name in _WAYS if asked.get(name) is not None]
        if len(named) > 1:
            raise UsageError(f"A cut is made in one way; give {' or '.join(named)}, not {len(named)} of them.")
        top, share, threshold, greedy = (asked.get(name) for name in _WAYS)
        return cls(
            None if top is None and named else _size("top", DEFAULT_TOP if top is None else top),
            None if share is None else _share(share),
            None if threshold is None else _threshold(threshold),
            None if greedy is None else _size("greedy", greedy),
            asked.get("signed", False),
            asked.get("prune", False),
        )

    def size(self, n_edges: int) -> int:
        """How many edges the cut takes of a graph of so many, before it is pruned; all for a threshold."""
        if self.share is not None:
            return max(1, round(self.share * n_edges))
        asked = self.greedy if self.top is None else self.top
        return n_edges if asked is None else min(asked, n_edges)

    def describe(self, n_edges: int) -> str:
        """The cut in words, after 'each cut to'."""
        most = "most positive" if self.signed else "strongest"
        if self.threshold is not None:
            kept = f"the edges of {'score' if self.signed else 'strength'} {self.threshold:g} or more"
        elif self.greedy is not None:
            kept = f"{self.greedy:,} of {n_edges:,} edges, grown from the logits by the {most}"
        else:
            kept = f"its {self.size(n_edges) if self.top is None else self.top:,} {most} of {n_edges:,} edges"
        return f"{kept}, then pruned to paths from input to logits" if self.prune else kept


@dataclass(frozen=True)
class Hard:
    """Hard circuits of one graph: `members` [circuit, edge], `n_tied` [circuit].

    `n_tied` counts the edges that are left out although they tie with the weakest that is in.
    """

    members: Members
    n_tied: npt.NDArray[np.int64]

    @property
    def n(self) -> npt.NDArray[np.int64]:
        """[circuit]: edges of each."""
        return np.asarray(np.count_nonzero(self.members, axis=1), np.int64)


def strength(scores: FloatArray, *, signed: bool) -> FloatArray:
    """[circuit, edge]: what an edge is chosen by, 0 where it is never in."""
    return np.nan_to_num(np.maximum(scores, 0) if signed else np.abs(scores), nan=0.0)


def hard(scores: FloatArray, cut: Cut, shape: GraphShape) -> Hard:
    """Cut soft circuits, [circuit, edge], of one graph."""
    return hards(scores, [cut], shape)[0]


def hards(scores: FloatArray, cuts: Sequence[Cut], shape: GraphShape) -> list[Hard]:
    """The same by several cuts."""
    return list(each(scores, cuts, shape))


def each(scores: FloatArray, cuts: Iterable[Cut], shape: GraphShape) -> Iterator[Hard]:
    """One after the other; sizes of one order are prefixes of it, so that the edges are ordered once for them all."""
    if not len(scores):
        yield from (Hard(np.zeros(scores.shape, bool), np.zeros(0, np.int64)) for _ in cuts)
        return
    orders: dict[tuple[bool, bool], list[Edges]] = {}
    strengths: dict[bool, FloatArray] = {}
    for cut in cuts:
        if cut.signed not in strengths:
            strengths[cut.signed] = strength(scores, signed=cut.signed)
        strong = strengths[cut.signed]
        greedy = cut.greedy is not None
        if cut.threshold is not None:
            with np.errstate(over="ignore"):  # beyond the largest score there is no edge
                least = strong.dtype.type(cut.threshold)
            # Below the smallest score there is, the threshold is 0 in its type, which strength 0 would reach.
            kept = Hard((strong >= least) & (strong > 0), np.zeros(len(strong), np.int64))
        else:
            if (cut.signed, greedy) not in orders:
                orders[cut.signed, greedy] = [grown(row, shape) if greedy else ranked(row) for row in strong]
            kept = _first(strong, orders[cut.signed, greedy], cut, shape)
        yield Hard(pruned(kept.members, shape), kept.n_tied) if cut.prune else kept


def _first(strong: FloatArray, orders: Sequence[Edges], cut: Cut, shape: GraphShape) -> Hard:
    """The first edges of each order."""
    size = cut.size(shape.n_edges)
    members = np.zeros(strong.shape, bool)
    n_tied = np.zeros(len(strong), np.int64)
    for i, (row, order) in enumerate(zip(strong, orders, strict=True)):
        members[i, order[:size]] = True
        if 0 < size < len(order):
            n_tied[i] = _tied(row, members[i], order, size, shape, greedy=cut.greedy is not None)
    return Hard(members, n_tied)


def _tied(strong: FloatArray, members: Members, order: Edges, size: int, shape: GraphShape, *, greedy: bool) -> int:
    """Of one circuit, [edge]: `Hard.n_tied`; greedy, of the edges that could have come in instead of the last."""
    weakest = strong[order[size - 1]]
    if not greedy:
        return int(np.count_nonzero(strong[order[size:]] == weakest)) if strong[order[size]] == weakest else 0
    inside = np.append(np.zeros(shape.n_sources, bool), True)  # the logits
    inside[shape.edge_sources[order[: size - 1]]] = True
    return int(np.count_nonzero((strong == weakest) & ~members & inside[shape.edge_target_nodes]))


def _size(name: str, value: object) -> int:
    n = arguments.whole(f"number of edges ({name})", value)
    if n < 1:
        raise UsageError(f"A hard circuit has at least one edge; {name}={n} is too few.")
    return n


def _share(value: object) -> float:
    share = arguments.real("share is a part of the graph's edges, such as 0.01", value)
    if not 0 < share <= 1:
        raise UsageError(f"A share of the graph's edges is over 0 and at most 1, not {share:g}.")
    return share


def _threshold(value: object) -> float:
    threshold = arguments.real("threshold is a strength, such as 0.001", value)
    if not threshold > 0 or not math.isfinite(threshold):
        raise UsageError(f"A threshold is a strength over 0, not {threshold:g}: edges of strength 0 are never in.")
    return threshold
