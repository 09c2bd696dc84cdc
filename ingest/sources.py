"""What the sources write to the residual stream in one run, and what they would write instead when ablated.

Where a norm stands between a layer's heads and the stream (Gemma-2, OLMo-2), a head's contribution is its output times
that norm's factor in the run, so that the contributions of all heads add up to what the layer writes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from circuitdb.ingest.anatomy import Anatomy, Layer
from circuitdb.ingest.hooks import Hooks

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

    @property
    def n_rows(self) -> int:
        """Rows (example, position) of the run."""
        return self.embedding.shape[0] * self.embedding.shape[1]

    def heads_of(
        self, layer: Layer, index: int, kind: torch.dtype, less: Sources | None = None
    ) -> Float[Tensor, "head rows d_model"]:
        """What the heads of a layer contribute to the stream, less what they do in another run if one is given."""
        if layer.post_norm is None:
            outputs = self.heads[index].to(kind) - (0 if less is None else less.heads[index].to(kind))
            return head_outputs(layer, outputs)
        written = head_outputs(layer, self.heads[index].to(kind)) * post_scale(layer, self.sums[index].to(kind))
        return written if less is None else written - less.heads_of(layer, index, kind)


def head_outputs(layer: Layer, outputs: Float[Tensor, "batch pos width"]) -> Float[Tensor, "head rows d_model"]:
    """Each head's output times its slice of the output projection."""
    by_head = outputs.reshape(-1, layer.n_heads, outputs.shape[-1] // layer.n_heads).transpose(0, 1)
    return torch.bmm(by_head, layer.output_weights().to(outputs.dtype))


def post_scale(layer: Layer, total: Stream) -> Float[Tensor, "rows d_model"]:
    """The factor of the norm behind a layer's heads, from the sum of their outputs."""
    if layer.post_norm is None:
        raise AssertionError("only a layer with a norm behind its heads has such a factor")
    return layer.post_norm.scale_weight(total.flatten(0, 1))


def differences(anatomy: Anatomy, clean: Sources, ablated: Sources | Tensor, kind: torch.dtype) -> Written:
    """What each source writes when ablated less what it writes in the clean run.

    `ablated`: the corrupted run, or fixed contributions [source, 1 or pos, d_model] (zeros, or a mean).
    """
    n_rows, d_model, n_heads = clean.n_rows, clean.embedding.shape[2], anatomy.shape.n_heads
    found = torch.empty(anatomy.shape.n_sources, n_rows, d_model, dtype=kind, device=clean.embedding.device)
    run, less = (ablated, clean) if isinstance(ablated, Sources) else (clean, None)

    def flat(stream: Stream, other: Stream | None) -> Tensor:
        return (stream.to(kind) - (0 if other is None else other.to(kind))).reshape(n_rows, d_model)

    found[0] = flat(run.embedding, None if less is None else less.embedding)
    for index, layer in enumerate(anatomy.layers):
        first = 1 + index * (n_heads + 1)
        found[first : first + n_heads] = run.heads_of(layer, index, kind, less)
        found[first + n_heads] = flat(run.mlps[index], None if less is None else less.mlps[index])
    if isinstance(ablated, Tensor):
        batch, pos = clean.embedding.shape[:2]
        fixed = ablated.to(kind)[:, None].expand(-1, batch, pos, -1)
        found.neg_().add_(fixed.reshape(found.shape))
    return found


def written(anatomy: Anatomy, run: Sources, kind: torch.dtype) -> Written:
    """What each source writes in a run."""
    nothing = torch.zeros(anatomy.shape.n_sources, 1, run.embedding.shape[2], dtype=kind, device=run.embedding.device)
    return differences(anatomy, run, nothing, kind).neg_()
