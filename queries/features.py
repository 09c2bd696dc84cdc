"""What a comparison is over: the edges that its filters leave, summed into shared projections or nodes on request.

1. Filters narrow the edges of a graph shape: layers, kind of source, kind of target, input of a head.
2. `shared` sums the k and v edges of the query heads that read from one key-value head, so that under grouped-query
   attention none counts twice; `level="node"` sums the edges that leave a node. A missing score adds nothing.
3. Only then are signs dropped, ranks given and circuits compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from circuitdb.errors import UsageError
from circuitdb.graph import QKV, GraphShape
from circuitdb.queries.comparison import SOURCES, TARGETS, Comparison
from circuitdb.queries.selection import Selection

_SCORES_AT_ONCE = 1 << 24  # that are gathered for a sum, to bound the copy
Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Features:
    """The columns of a comparison: sums of runs of edges.

    Attributes:
        edges: edge ids, those of one column together.
        starts: where each sum begins in `edges`.
        columns: where each sum stands; others are missing.
        n_columns: how many there are: the edges or shared projections that are left, or all nodes that write.
    """

    edges: Ids
    starts: Ids
    columns: Ids
    n_columns: int

    @classmethod
    def of(cls, how: Comparison, shape: GraphShape, n_kv_heads: int) -> Features:
        """The columns that `how` asks of a graph. Raises UsageError where no edge is left."""
        ends = Ends.of(shape)
        kept = np.flatnonzero(ends.kept(how))
        if not len(kept):
            raise UsageError(f"No edge of this graph passes all filters ({how.words}); drop one.")
        if how.level == "node":
            key = ends.source
        elif how.shared:
            key = ends.source * shape.n_targets + ends.shared_target(shape.n_heads // n_kv_heads)
        else:
            return cls(kept, np.arange(len(kept)), np.arange(len(kept)), len(kept))
        edges = kept[np.argsort(key[kept], kind="stable")]
        keys, starts = np.unique(key[edges], return_index=True)
        nodes = how.level == "node"
        return cls(edges, starts, keys if nodes else np.arange(len(keys)), shape.n_sources if nodes else len(keys))

    def take(self, scores: Floats) -> Floats:
        """[row, column] of [row, edge]; a sum leaves NaN out, and is NaN where all of it is missing."""
        if len(self.starts) == len(self.edges) == self.n_columns:
            return scores[:, self.edges]
        out = np.full((len(scores), self.n_columns), np.nan, np.float32)
        step = max(_SCORES_AT_ONCE // len(self.edges), 1)
        for start in range(0, len(scores), step):
            part = scores[start : start + step, self.edges].astype(np.float64)
            known = ~np.isnan(part)
            sums = np.add.reduceat(np.where(known, part, 0), self.starts, axis=1)
            counts = np.add.reduceat(known.astype(np.int64), self.starts, axis=1)
            out[start : start + step, self.columns] = np.where(counts > 0, sums, np.nan)
        return out


def strata(selection: Selection, how: Comparison) -> Ids | None:
    """[column]: the stratum of each edge that is compared; None where columns are not the edges, or not all of them."""
    if how.level == "node" or how.shared or how.nonzero:
        return None
    if not selection.members:
        return np.empty(0, np.int64)
    shape = selection.members[0].shape
    ends = Ends.of(shape)
    return ends.strata()[ends.kept(how)]


@dataclass(frozen=True)
class Ends:
    """The two ends of every edge of a graph shape, [edge] each; -1 where an end has no layer, head or input."""

    source: Ids
    source_kind: Ids  # place in SOURCES
    source_layer: Ids
    target: Ids
    target_kind: Ids  # place in TARGETS
    target_layer: Ids
    target_head: Ids
    qkv: Ids  # place in QKV

    @classmethod
    def of(cls, shape: GraphShape) -> Ends:
        """By arithmetic on the order of sources and targets (`circuitdb.graph`)."""
        source, target = (ids.astype(np.int64) for ids in (shape.edge_sources, shape.edge_targets))
        width, n_heads = 3 * shape.n_heads + 1, shape.n_heads
        place, logits = target % width, target == shape.n_targets - 1
        to_head = (place < width - 1) & ~logits
        return cls(
            source=source,
            source_kind=np.where(source == 0, 0, np.where((source - 1) % (n_heads + 1) < n_heads, 1, 2)),
            source_layer=np.where(source == 0, -1, (source - 1) // (n_heads + 1)),
            target=target,
            target_kind=np.where(logits, 2, np.where(to_head, 0, 1)),
            target_layer=np.where(logits, -1, target // width),
            target_head=np.where(to_head, place // 3, -1),
            qkv=np.where(to_head, place % 3, -1),
        )

    def kept(self, how: Comparison) -> npt.NDArray[np.bool_]:
        """[edge]: what passes the filters."""
        kept = np.ones(len(self.source), bool)
        if how.layers:
            first, last = how.layers
            for layer in (self.source_layer, self.target_layer):
                kept &= (layer < 0) | ((layer >= first) & (layer <= last))
        for wanted, values, names in (
            (how.source, self.source_kind, SOURCES),
            (how.target, self.target_kind, TARGETS),
            (how.qkv, self.qkv, QKV),
        ):
            if wanted:
                kept &= np.isin(values, [names.index(name) for name in wanted])
        return kept

    def shared_target(self, group: int) -> Ids:
        """[edge]: the target, that of k and v the first of the `group` query heads that share it."""
        first = self.target_head // group * group
        return np.where(self.qkv > 0, self.target - 3 * (self.target_head - first), self.target)

    def strata(self) -> Ids:
        """[edge]: a number that is the same for edges of one kind and layer of source and of target."""
        columns = (self.source_kind, self.source_layer, self.target_kind, self.target_layer, self.qkv)
        key = np.zeros(len(self.source), np.int64)
        for column in columns:
            key = key * (int(column.max(initial=0)) + 2) + column + 1
        return np.unique(key, return_inverse=True)[1].astype(np.int64)
