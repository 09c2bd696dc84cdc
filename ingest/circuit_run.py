"""Hard circuits run in the model: every edge outside the circuit is ablated, for many circuits in one pass.

Each copy of the batch runs one circuit. In the order of the forward pass, every target reads

    sum over the sources u before it of their ablated output, and of the biases behind the heads
    +  sum over those with an edge to it in the circuit of (output of u in this run - ablated output of u)

which is what it would find if the others wrote their ablated output. It is put together from its parts and not taken
off the stream of the run, since what is left of that after most of it is taken away would be rounding, and the norm
behind makes it large. Each head's query, key and value are computed from a stream of their own, so an edge is one query
head's even where keys and values are shared. With all edges the run is the clean one; with none every target reads what
it does when all sources are ablated, which under patching is the corrupted run.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from circuitdb.ingest.anatomy import Layer
from circuitdb.ingest.batch import Batch
from circuitdb.ingest.hooks import Hooks, hooks
from circuitdb.ingest.passes import run
from circuitdb.ingest.sources import Written, head_outputs, post_scale, written

Kept = Bool[Tensor, "circuit source target"]


def run_circuits(batch: Batch, kept: Kept) -> Float[Tensor, "circuit_batch scored vocab"]:
    """Logits at the scored positions, circuit by circuit and within a circuit example by example.

    `kept`: the edges of each circuit. The batch's ablated run is made before.
    """
    tokens = batch.group.clean.repeat(len(kept), 1)
    with torch.no_grad(), hooks() as held:
        _Run(batch, kept.to(batch.model.device)).watch(held)
        return run(batch.model, tokens, batch.prefix, batch.group.n_scored)


def fully_ablated(batch: Batch) -> Float[Tensor, "batch scored vocab"]:
    """Logits with every edge ablated."""
    shape = batch.anatomy.shape
    return run_circuits(batch, torch.zeros(1, shape.n_sources, shape.n_targets, dtype=torch.bool))


class _Run:
    """The state of one pass: how far each source's output in this run is from its ablated output."""

    def __init__(self, batch: Batch, kept: Kept) -> None:
        self.batch, self.anatomy, self.kept = batch, batch.anatomy, kept
        self.ablated = _ablated_outputs(batch)
        n_sources, n_rows, d_model = self.ablated.shape
        self.changes = self.ablated.new_zeros(len(kept), n_sources, n_rows, d_model)
        # What the sources before a target write when ablated, with the biases, as far as it is needed.
        self.floor, self.n_summed = self.ablated.new_zeros(n_rows, d_model), 0

    def watch(self, held: Hooks) -> None:
        """Put what the circuits' targets read in the place of what the model's would."""
        shape = self.anatomy.shape
        width = 3 * shape.n_heads + 1
        held.see(self.anatomy.stream, lambda own: self._wrote(0, own))
        for index, layer in enumerate(self.anatomy.layers):
            self._watch_layer(held, layer, index, slice(index * width, (index + 1) * width))
        held.replace(self.anatomy.final_stream, lambda own: self._put(own, shape.n_sources, slice(-1, None)))

    def _watch_layer(self, held: Hooks, layer: Layer, index: int, columns: slice) -> None:
        shape = self.anatomy.shape
        first, before = 1 + index * (shape.n_heads + 1), shape.sources_before(index)
        heads: list[Tensor] = []
        for branch, point in enumerate(layer.projections):

            def read_heads(own: Tensor, branch: int = branch) -> Tensor:
                targets = slice(columns.start + branch, columns.stop - 1, 3)
                found = self._heads(layer, before, targets, branch)
                return found.reshape(own.shape).to(own.dtype)

            held.replace(point, read_heads)
        held.see(layer.heads_out, heads.append)
        held.see(layer.attention_sum, lambda own: self._heads_wrote(layer, first, heads.pop(), own))

        def read_mlp(own: Tensor) -> Tensor:
            sources = shape.sources_before(index, mlp=True)
            read = self._read(sources, slice(columns.stop - 1, columns.stop))[:, 0]
            found: Tensor = layer.mlp_norm.apply(read.to(own.device)).reshape(own.shape).to(own.dtype)
            return found

        held.replace(layer.mlp_in, read_mlp)
        held.see(layer.mlp_out, lambda own: self._wrote(first + shape.n_heads, own))

    def _read(self, n_sources: int, targets: slice) -> Float[Tensor, "circuit target rows d_model"]:
        """What some targets read, given the sources before them."""
        kept = self.kept[:, :n_sources, targets].transpose(1, 2).to(self.changes.dtype)
        change = torch.bmm(kept, self.changes[:, :n_sources].flatten(2)).unflatten(2, self.changes.shape[2:])
        found: Tensor = change + self._ablated_before(n_sources)
        return found

    def _ablated_before(self, n_sources: int) -> Float[Tensor, "rows d_model"]:
        """What a target reads of the sources before it when all of them are ablated."""
        if n_sources > self.n_summed:
            self.floor = self.floor + self.ablated[self.n_summed : n_sources].sum(0)
            for index, layer in enumerate(self.anatomy.layers):
                bias, heads_end = layer.output_bias(), (index + 1) * (layer.n_heads + 1)
                if bias is not None and self.n_summed < heads_end <= n_sources:
                    self.floor = self.floor + bias.to(self.floor)
            self.n_summed = n_sources
        return self.floor

    def _heads(
        self, layer: Layer, n_sources: int, targets: slice, branch: int
    ) -> Float[Tensor, "circuit rows head d_head"]:
        """Each head's query, key or value from what it reads."""
        read = layer.attention_norm.scale(self._read(n_sources, targets).to(layer.device))
        weights = layer.reading_weights()[:, branch].to(read.dtype)
        found = torch.einsum("chrm,hdm->crhd", read, weights)
        return found + layer.reading_biases()[:, branch].to(read.dtype)

    def _put(self, own: Tensor, n_sources: int, targets: slice) -> Tensor:
        found: Tensor = self._read(n_sources, targets)[:, 0].reshape(own.shape).to(own)
        return found

    def _wrote(self, source: int, own: Tensor) -> None:
        output = own.detach().reshape(len(self.kept), *self.changes.shape[2:]).to(self.changes)
        self.changes[:, source] = output - self.ablated[source]

    def _heads_wrote(self, layer: Layer, first: int, heads: Tensor, total: Tensor) -> None:
        outputs = heads.to(self.changes.dtype).flatten(0, 1)
        if layer.post_norm is not None:
            outputs = outputs * post_scale(layer, total.to(self.changes.dtype))
        outputs = head_outputs(layer, outputs)
        by_circuit = outputs.unflatten(1, [len(self.kept), -1]).transpose(0, 1).to(self.changes)
        self.changes[:, first : first + layer.n_heads] = by_circuit - self.ablated[first : first + layer.n_heads]


def _ablated_outputs(batch: Batch) -> Written:
    """What each source writes when ablated, at every row of the batch."""
    if batch.fixed is None:
        if batch.corrupted is None:
            raise AssertionError("the ablated run comes before the circuits")
        return written(batch.anatomy, batch.corrupted, batch.kind)
    whole = batch.fixed.to(batch.kind)[:, None].expand(-1, len(batch.group.clean), batch.n_positions, -1)
    return whole.reshape(len(whole), -1, whole.shape[-1])
