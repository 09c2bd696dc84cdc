"""Exact scores: every edge is really patched, one after the other, and the metric measured.

Only what comes after the edge's target changes, so a pass begins at the target's layer with the stream of the clean
run, and many edges of one layer are patched in one pass, each in its own copy of the batch:
1. the clean run, keeping the stream at every reader, and the ablated one;
2. layer by layer, the target's reader gets `x + d_u` in the place of the stream x, with d_u the source's change: what
   that changes of a head's query, key or value, or of an MLP's input, is added to the model's own, so that no change is
   exactly none;
3. the score of the edge is the metric less that of the clean run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import Module

from circuitdb.graph import GraphShape
from circuitdb.ingest.anatomy import Layer
from circuitdb.ingest.batch import Batch
from circuitdb.ingest.hooks import Hooks, hooks
from circuitdb.ingest.passes import run, starting_at
from circuitdb.ingest.sources import Written


@dataclass
class _Streams:
    """The clean run's residual stream as each layer finds it, as its two readers get it, and at the end."""

    layers: list[Tensor] = field(default_factory=list)
    attention: list[Tensor] = field(default_factory=list)
    mlps: list[Tensor] = field(default_factory=list)
    final: list[Tensor] = field(default_factory=list)

    def watch(self, batch: Batch, held: Hooks) -> None:
        """Keep them during the next pass."""
        for layer in batch.anatomy.layers:
            held.see(layer.stream, self.layers.append)
            held.see(layer.attention_stream, self.attention.append)
            held.see(layer.mlp_stream or layer.attention_stream, self.mlps.append)
        held.see(batch.anatomy.final_stream, self.final.append)


def exact_scores(
    batch: Batch, edges: npt.NDArray[np.bool_], most_rows: int, progress: Callable[[float], None]
) -> Float[Tensor, "part source target"]:
    """Scores summed over each part's examples.

    Args:
        batch: its runs are made here.
        edges: [source, target], which to patch; the others score 0.
        most_rows: copies of examples in one pass, at most.
        progress: told the share of the work that is done, weighed by how many layers each edge runs through.
    """
    streams = _Streams()
    with hooks() as held:
        streams.watch(batch, held)
        batch.run_clean(held=held)
    batch.run_ablated()
    sources = batch.changes().all()
    batch.forget_sources()
    shape = batch.anatomy.shape
    total = torch.zeros(len(batch.parts), shape.n_sources, shape.n_targets, dtype=torch.float64)
    width, size = 3 * shape.n_heads + 1, max(1, most_rows // len(batch.group.clean))
    whole, done = exact_work(shape, edges), 0
    for index in range(shape.n_layers + 1):
        column = index * width
        cells = torch.from_numpy(np.argwhere(edges[:, column : column + width].T))
        for chosen in cells.split(size) if len(cells) else ():
            patch = _Patch(batch, streams, sources, index, chosen[:, 0], chosen[:, 1])
            effect = patch.effect()
            for part, (start, stop) in enumerate(batch.parts):
                total[part, chosen[:, 1], column + chosen[:, 0]] = effect[:, start:stop].sum(1)
            done += (shape.n_layers - index + 1) * len(chosen)
            progress(done / whole)
    return total


def exact_work(shape: GraphShape, edges: npt.NDArray[np.bool_]) -> int:
    """How many layers, the unembedding counted as one, are run for each example to patch these [source, target]."""
    by_target = edges.sum(0)
    layers = np.arange(shape.n_targets) // (3 * shape.n_heads + 1)  # that of `logits` comes out as n_layers
    return int((by_target * (shape.n_layers - layers + 1)).sum())


class _Patch:
    """One pass in which each copy of the batch has one edge patched; all targets are of one layer."""

    def __init__(
        self, batch: Batch, streams: _Streams, sources: Written, index: int, targets: Tensor, sources_of: Tensor
    ) -> None:
        """`targets` and `sources_of` [edge]: columns within the layer, and sources."""
        self.batch, self.streams, self.sources, self.index = batch, streams, sources, index
        self.targets, self.sources_of = targets, sources_of
        self.n_examples = len(batch.group.clean)

    def effect(self) -> Float[Tensor, "edge batch"]:
        """The metric with the edge patched less the clean run's, of each example."""
        anatomy, n_edges = self.batch.anatomy, len(self.targets)
        tokens = self.batch.group.clean.repeat(n_edges, 1)
        with torch.no_grad(), starting_at(self.batch.model, anatomy, self.index), hooks() as held:
            if self.index == len(anatomy.layers):
                held.replace(anatomy.final_stream, self._final)
            else:
                self._watch_layer(held, anatomy.layers[self.index])
            logits = run(self.batch.model, tokens, self.batch.prefix, self.batch.group.n_scored)
            value = self.batch.value(logits).reshape(n_edges, self.n_examples)
            return (value - self.batch.clean_value).cpu().double()

    def _watch_layer(self, held: Hooks, layer: Layer) -> None:
        n_edges, n_heads = len(self.targets), layer.n_heads
        held.replace(layer.stream, lambda _own: self.streams.layers[self.index].repeat(n_edges, 1, 1))
        head, which = self.targets // 3, self.targets % 3
        for branch, point in enumerate(layer.projections):
            rows = ((which == branch) & (head < n_heads)).nonzero()[:, 0]
            if len(rows):
                self._patch_heads(held, point, layer, rows, head[rows], branch)
        mlp = (head == n_heads).nonzero()[:, 0]
        if len(mlp):
            held.replace(layer.mlp_in, lambda own: self._patched_mlp(own, layer, mlp))

    def _patch_heads(self, held: Hooks, point: Module, layer: Layer, rows: Tensor, heads: Tensor, branch: int) -> None:
        norm = layer.attention_norm
        weights = layer.reading_weights()[heads.to(layer.device), branch]
        stream = self._stream(self.streams.attention[self.index])
        change = norm.scale(stream + self._change(rows, stream)) - norm.scale(stream)
        read = torch.bmm(change, weights.to(change.dtype).transpose(1, 2))

        def put(own: Tensor) -> Tensor:
            found = own.reshape(len(self.targets), self.n_examples, -1, layer.n_heads, read.shape[-1]).clone()
            found[rows, :, :, heads] += read.reshape(len(rows), self.n_examples, -1, read.shape[-1]).to(own.dtype)
            return found.reshape(own.shape)

        held.replace(point, put)

    def _patched_mlp(self, own: Tensor, layer: Layer, rows: Tensor) -> Tensor:
        stream = self._stream(self.streams.mlps[self.index])
        change = layer.mlp_norm.apply(stream + self._change(rows, stream)) - layer.mlp_norm.apply(stream)
        found = own.reshape(len(self.targets), -1, own.shape[-1]).clone()
        found[rows] += change.to(own.dtype)
        return found.reshape(own.shape)

    def _final(self, own: Tensor) -> Tensor:
        stream = self._stream(self.streams.final[0])
        changed = stream + self._change(torch.arange(len(self.targets)), stream)
        return changed.reshape(own.shape).to(own.dtype)

    def _stream(self, stream: Tensor) -> Float[Tensor, "rows d_model"]:
        return stream.reshape(-1, stream.shape[-1]).to(self.sources.dtype)

    def _change(self, copies: Tensor, stream: Tensor) -> Float[Tensor, "copy rows d_model"]:
        """By how much the sources of some copies of the batch change, where the stream lies."""
        return self.sources[self.sources_of[copies].to(self.sources.device)].to(stream.device)
