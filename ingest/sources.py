"""What the sources write to the residual stream in one run, and by how much that changes when they are ablated.

Heads are kept as they are before the output projection, and written out for some rows at a time. Where a norm stands
between a layer's heads and the stream (Gemma-2, OLMo-2), a head's contribution is its output times that norm's factor
in the run, so that the contributions of all heads add up to what the layer writes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from circuitdb.ingest.alignment import aligned
from circuitdb.ingest.anatomy import Anatomy, Layer
from circuitdb.ingest.hooks import Hooks
from circuitdb.ingest.room import Room

Stream = Float[Tensor, "batch pos d_model"]
Written = Float[Tensor, "source rows d_model"]


@dataclass
class Sources:
    """What the sources wrote in one run, rows after the prefix only.

    `heads[layer]` is [batch, pos, head * d_head] before the output projection, `sums[layer]` what it gives, kept where
    a norm follows; `mlps[layer]` and `embedding` (the stream as the first layer finds it) are [batch, pos, d_model].
    """

    embedding: Stream
    heads: list[Tensor]
    sums: list[Stream]
    mlps: list[Stream]

    @classmethod
    def watch(cls, anatomy: Anatomy, held: Hooks) -> Sources:
        """Fill the returned object during the next pass."""
        found = cls(torch.empty(0, 0, 0), [], [], [])

        def embedding(output: Tensor) -> None:
            found.embedding = output.detach()

        held.see(anatomy.stream, embedding)
        for layer in anatomy.layers:
            held.see(layer.heads_out, lambda output: found.heads.append(output.detach()))
            if layer.post_norm is not None:
                held.see(layer.attention_sum, lambda output: found.sums.append(output.detach()))
            held.see(layer.mlp_out, lambda output: found.mlps.append(output.detach()))
        return found

    def aligned_to(self, clean: Sources) -> Sources:
        """The same at the positions of the clean run, where its prompts have another length."""
        return Sources(
            aligned(self.embedding, clean.embedding),
            *(
                [aligned(*both) for both in zip(own, others, strict=True)]
                for own, others in ((self.heads, clean.heads), (self.sums, clean.sums), (self.mlps, clean.mlps))
            ),
        )

    def forget(self) -> None:
        """Let go of all but the embedding."""
        for held in (self.heads, self.sums, self.mlps):
            held.clear()

    def heads_of(self, layer: Layer, index: int, kind: torch.dtype) -> Float[Tensor, "rows width"]:
        """The outputs of a layer's heads, one after the other, times the factor of a norm behind them."""
        found = self.heads[index].to(kind).flatten(0, 1).flatten(1)
        if layer.post_norm is None:
            return found
        return found * post_scale(layer, self.sums[index].to(kind))


def post_scale(layer: Layer, total: Stream) -> Float[Tensor, "rows 1"]:
    """The factor of the norm behind a layer's heads, but for its weight, from the sum of their outputs."""
    if layer.post_norm is None:
        raise AssertionError("only a layer with a norm behind its heads has such a factor")
    return layer.post_norm.inverse_scale(total.flatten(0, 1))[:, None]


def head_outputs(
    layer: Layer, outputs: Float[Tensor, "rows width"], out: Float[Tensor, "head rows d_model"] | None = None
) -> Float[Tensor, "head rows d_model"]:
    """What each head contributes to the stream: its output times its slice of the output projection."""
    by_head = outputs.unflatten(1, [layer.n_heads, -1]).transpose(0, 1)
    return torch.bmm(by_head, layer.output_weights().to(outputs.dtype), out=out)


class Changes:
    """What each source writes when ablated less what it writes in the clean run: `rows` at a time, or `all` at once."""

    def __init__(self, anatomy: Anatomy, clean: Sources, ablated: Sources | Tensor, kind: torch.dtype) -> None:
        """`ablated`: the corrupted run, or fixed contributions [source, 1 or pos, d_model] (zeros, or a mean)."""
        self.anatomy, self.kind, self.device = anatomy, kind, clean.embedding.device
        self.n_rows, self.d_model = clean.embedding.flatten(0, 1).shape
        self.room = Room()
        self.fixed = ablated.to(kind) if isinstance(ablated, Tensor) else None

        def change(before: Tensor, after: Tensor) -> Tensor:
            return after.to(kind).flatten(0, -2) - before.to(kind).flatten(0, -2)

        if isinstance(ablated, Sources):
            self.embedding = change(clean.embedding, ablated.embedding)
            self.mlps = [change(*both) for both in zip(clean.mlps, ablated.mlps, strict=True)]
        else:  # what is written in the clean run alone, with a minus
            self.embedding = -clean.embedding.to(kind).flatten(0, 1)
            self.mlps = [-output.to(kind).flatten(0, 1) for output in clean.mlps]
        self.heads = [
            change(clean.heads_of(layer, index, kind), ablated.heads_of(layer, index, kind))
            if isinstance(ablated, Sources)
            else -clean.heads_of(layer, index, kind)
            for index, layer in enumerate(anatomy.layers)
        ]

    def rows(self, rows: slice) -> Written:
        """Those rows of all sources; the next call takes their place."""
        n = len(range(*rows.indices(self.n_rows)))
        return self._write(
            rows, self.room.tensor((self.anatomy.shape.n_sources, n, self.d_model), self.kind, self.device)
        )

    def all(self) -> Written:
        """All rows, in memory of their own."""
        size = (self.anatomy.shape.n_sources, self.n_rows, self.d_model)
        return self._write(slice(None), torch.empty(size, dtype=self.kind, device=self.device))

    def _write(self, rows: slice, found: Written) -> Written:
        n_heads = self.anatomy.shape.n_heads
        found[0] = self.embedding[rows]
        for index, layer in enumerate(self.anatomy.layers):
            first = 1 + index * (n_heads + 1)
            heads = found[first : first + n_heads]
            if layer.device == self.device:
                head_outputs(layer, self.heads[index][rows], heads)
            else:
                heads.copy_(head_outputs(layer, self.heads[index][rows]))
            found[first + n_heads] = self.mlps[index][rows]
        if self.fixed is not None:
            at = torch.arange(self.n_rows, device=self.device)[rows] % self.fixed.shape[1]
            found += self.fixed if self.fixed.shape[1] == 1 else self.fixed[:, at]
        return found


def written(anatomy: Anatomy, run: Sources, kind: torch.dtype) -> Written:
    """What each source writes in a run."""
    nothing = torch.zeros(anatomy.shape.n_sources, 1, run.embedding.shape[2], dtype=kind, device=run.embedding.device)
    return Changes(anatomy, run, nothing, kind).all().neg_()
