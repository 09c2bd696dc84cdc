"""Paths through the graph: which edges lead from the input to the logits, and growing a circuit backwards from these.

A head is one node: an edge to its q, k or v leads to the head, and on from it as a source.

Pruning. An edge lies on a path if its source is reached from the input and its target reaches the logits, along kept
edges. Nodes are numbered in the order of the forward pass, so one sweep each way finds both, and what is kept then
is a fixed point.

Growing, without a look at each edge in turn:
1. The logits are in. Of the edges whose target is in and whose source is not, the strongest brings its source in, and
   so on: one step a node.
2. Between two such steps all edges whose ends are in and that are stronger than the next step enter, strongest first.
   So an edge available after step a enters before the first later step that is weaker than it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from circuitdb.cuts import by_strength
from circuitdb.graph import GraphShape

Members = npt.NDArray[np.bool_]


def pruned(members: Members, shape: GraphShape) -> Members:
    """[circuit, edge]: the edges that lie on a path of the same circuit's edges from the input to the logits."""
    kept = np.ascontiguousarray(members.T)
    sources, targets = shape.edge_sources, shape.edge_target_nodes
    reached = np.zeros((shape.n_sources + 1, len(members)), bool)
    reached[0] = True
    by_target = np.argsort(targets, kind="stable")
    for edges in np.split(by_target, np.flatnonzero(np.diff(targets[by_target])) + 1):
        reached[targets[edges[0]]] = (kept[edges] & reached[sources[edges]]).any(axis=0)
    leading = np.zeros_like(reached)
    leading[-1] = True
    stops = np.searchsorted(sources, np.arange(shape.n_sources + 1))
    for node in range(shape.n_sources - 1, -1, -1):
        own = slice(stops[node], stops[node + 1])
        leading[node] = (kept[own] & leading[targets[own]]).any(axis=0)
    kept &= reached[sources]
    kept &= leading[targets]
    return np.ascontiguousarray(kept.T)


def ranked(strong: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """Ids of the edges of a strength over 0, of [edge], the strongest first, ties by edge id."""
    return by_strength(strong)[: np.count_nonzero(strong > 0)]


def grown(strong: npt.NDArray[np.float32], shape: GraphShape) -> npt.NDArray[np.int64]:
    """Ids of the edges in the order in which they enter, of [edge] which is 0 where one never does; ties by edge id."""
    n_edges, targets = shape.n_edges, shape.edge_target_nodes
    able = ranked(strong)
    rank = np.full(n_edges, n_edges, np.int64)  # the lower the stronger, all different
    rank[able] = np.arange(len(able))
    steps, joined = _joins(rank, shape)
    entry = np.full(n_edges, len(steps), np.int64)
    by_target = np.argsort(targets, kind="stable")
    for edges in np.split(by_target, np.flatnonzero(np.diff(targets[by_target])) + 1):
        since = joined[targets[edges[0]]]
        if since >= 0:
            weakest = np.maximum.accumulate(steps[since:])
            entry[edges] = since + np.searchsorted(weakest, rank[edges])
    able = able[joined[targets[able]] >= 0]
    return able[np.argsort(entry[able], kind="stable")]


def _joins(rank: npt.NDArray[np.int64], shape: GraphShape) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(rank of the edge of each step, [node]: steps made before its edges were available, -1 if it never came in)."""
    n_edges = shape.n_edges
    dense = np.full(shape.mask.shape, n_edges, np.int64)
    dense[shape.mask] = rank
    width = np.searchsorted(shape.target_nodes, np.arange(shape.n_sources + 2))
    nearest = np.full(shape.n_sources, n_edges, np.int64)
    joined = np.full(shape.n_sources + 1, -1, np.int64)
    joined[-1] = 0
    steps: list[int] = []
    node = shape.n_sources
    while True:
        nearest = np.minimum(nearest, dense[:, width[node] : width[node + 1]].min(axis=1, initial=n_edges))
        nearest[joined[:-1] >= 0] = n_edges
        node = int(np.argmin(nearest))
        if nearest[node] == n_edges:
            return np.array(steps, np.int64), joined
        steps.append(int(nearest[node]))
        joined[node] = len(steps)
