"""Where, in a TransformerBridge, each source writes and each target reads, with the weights in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import Module
from transformers.pytorch_utils import Conv1D

from circuitdb.errors import ModelError
from circuitdb.graph import GraphShape
from circuitdb.ingest.models import LoadedModel, accumulation_dtype
from circuitdb.ingest.norms import Norm, no_norm, read_norm


@dataclass(frozen=True)
class Layer:
    """One layer's hook points (modules whose output is the tensor), norms and projections.

    `mlp_stream` is None where the MLP reads through the attention's norm (GPT-J, Phi). `post_norm` stands between the
    heads' sum and the stream (Gemma-2, OLMo-2); `mlp_out` is what the MLP writes, after such a norm of its own.
    """

    block: Module
    stream: Module
    attention_stream: Module
    mlp_stream: Module | None
    projections: tuple[Module, Module, Module]
    heads_out: Module
    attention_sum: Module
    attention_out: Module
    mlp_in: Module
    mlp_out: Module
    attention_norm: Norm
    mlp_norm: Norm
    post_norm: Norm | None
    attention: Any
    n_heads: int

    @property
    def device(self) -> torch.device:
        """Where the layer lies; a model may be spread over several devices."""
        return _matrix(self.attention.o).device

    def output_weights(self) -> Float[Tensor, "head d_head d_model"]:
        """Each head's slice of the output projection, with the weight of a norm behind it folded in."""
        weight = _matrix(self.attention.o)
        found = weight.T.reshape(self.n_heads, -1, weight.shape[0])
        return found if self.post_norm is None else found.to(self.post_norm.weight.dtype) * self.post_norm.weight

    def output_bias(self) -> Float[Tensor, " d_model"] | None:
        """What the output projection adds behind the heads, which belongs to no source; None where it adds nothing."""
        return _bias(self.attention.o) if _has_bias(self.attention.o) else None

    @property
    def reading_width(self) -> int:
        """Numbers that all query heads' queries (or keys, or values) are."""
        return _matrix(self.attention.q).shape[0]

    @property
    def has_reading_biases(self) -> bool:
        """Whether the norm or a projection adds a bias."""
        return self.attention_norm.bias is not None or any(
            _has_bias(projection) for projection in (self.attention.q, self.attention.k, self.attention.v)
        )

    def reading_weights(self) -> Float[Tensor, "head 3 d_head d_model"]:
        """Each head's query, key and value projection with the norm's weight (and centring) folded in.

        Under grouped-query attention the shared key and value projections stand once per query head.
        """
        parts = [self.attention_norm.centre(weight * self.attention_norm.weight) for weight in self._heads(_matrix)]
        return torch.stack(parts, dim=1)

    def reading_biases(self) -> Float[Tensor, "head 3 d_head"]:
        """What each projection puts out for a stream of zeros: its own bias and the norm's, projected."""
        norm = self.attention_norm
        weights, biases = self._heads(_matrix), self._heads(_bias)
        if norm.bias is not None:
            biases = [bias + weight @ norm.bias for weight, bias in zip(weights, biases, strict=True)]
        return torch.stack(biases, dim=1)

    def _heads(self, read: Any) -> list[Tensor]:
        """`read` of the three projections, [head, d_head, ...] each, repeated to query heads."""
        d_head = self.reading_width // self.n_heads
        parts = []
        for projection in (self.attention.q, self.attention.k, self.attention.v):
            rows = read(projection).to(self.attention_norm.weight.dtype)
            per_head = rows.reshape(-1, d_head, *rows.shape[1:])
            parts.append(per_head.repeat_interleave(self.n_heads // per_head.shape[0], 0))
        return parts


@dataclass(frozen=True)
class Anatomy:
    """All hook points that scoring needs. `stream` is where the input enters the first layer."""

    shape: GraphShape
    layers: tuple[Layer, ...]
    final_stream: Module
    groups: int
    notes: tuple[str, ...]

    @property
    def stream(self) -> Module:
        """The residual stream as the first layer finds it: what the source `input` writes."""
        return self.layers[0].stream


def read_anatomy(model: LoadedModel) -> Anatomy:
    """Find the hook points and norms. Raises ModelError, with the reason, for a model whose writers don't add up."""
    bridge: Any = model.bridge
    shape, what = model.record.shape, model.record.architecture
    if getattr(bridge.original_model.config, "is_encoder_decoder", False):
        raise ModelError(f"{what} is an encoder-decoder; only decoder-only models have this edge set.")
    if not hasattr(bridge, "blocks") or not hasattr(bridge, "ln_final"):
        raise ModelError(f"{what} has no plain stack of blocks with a final norm in TransformerLens.")
    layers = tuple(_read_layer(model, index, block) for index, block in enumerate(bridge.blocks))
    mixed = any("MoE" in type(block.mlp).__name__ for block in bridge.blocks)
    notes = ("Each mixture of experts, router included, counts as one MLP node.",) if mixed else ()
    return Anatomy(shape, layers, bridge.ln_final.hook_in, shape.n_heads // model.record.n_kv_heads, notes)


def _read_layer(model: LoadedModel, index: int, block: Any) -> Layer:
    what = f"{model.record.architecture}, layer {index},"
    missing = [name for name in ("attn", "mlp") if not hasattr(block, name)]
    missing += [name for name in ("q", "k", "v", "o") if not missing and not hasattr(block.attn, name)]
    if missing:
        raise ModelError(f"{what} lacks {', '.join(missing)} in TransformerLens; its edges can't be scored.")
    if type(block).__name__ == "ScaledResidualBlockBridge":
        raise ModelError(f"{what} scales what its parts write; its edges can't be scored.")
    d_model, device, dtype = model.record.d_model, _matrix(block.attn.o).device, accumulation_dtype(model.dtype)

    def norm(name: str) -> Norm:
        return read_norm(getattr(block, name), d_model, device, dtype)

    plain = no_norm(d_model, device, dtype)
    reads_plainly = hasattr(block, "ln1_post") and not hasattr(block, "ln1")
    if not reads_plainly and not hasattr(block, "ln1"):
        raise ModelError(f"{what} has no norm before its attention and none after it; its edges can't be scored.")
    attention_norm = plain if reads_plainly else norm("ln1")
    if hasattr(block, "ln2"):
        mlp_stream, mlp_norm = block.ln2.hook_in, norm("ln2")
    elif hasattr(block, "ln2_post"):
        mlp_stream, mlp_norm = block.mlp.hook_in, plain
    elif model.record.shape.parallel:
        mlp_stream, mlp_norm = None, attention_norm
    else:
        raise ModelError(f"{what} has no norm before its MLP and none after it; its edges can't be scored.")
    post_norm = norm("ln1_post") if hasattr(block, "ln1_post") else None
    if post_norm is not None and (post_norm.centred or post_norm.bias is not None or _has_bias(block.attn.o)):
        raise ModelError(f"{what} has a LayerNorm or a bias between its heads and the residual stream; not supported.")
    return Layer(
        block=block,
        stream=block.hook_in,
        attention_stream=block.hook_in if reads_plainly else block.ln1.hook_in,
        mlp_stream=mlp_stream,
        projections=(block.attn.q.hook_out, block.attn.k.hook_out, block.attn.v.hook_out),
        heads_out=block.attn.o.hook_in,
        attention_sum=block.attn.o.hook_out,
        attention_out=block.attn.o.hook_out if post_norm is None else block.ln1_post.hook_out,
        mlp_in=block.mlp.hook_in,
        mlp_out=block.ln2_post.hook_out if hasattr(block, "ln2_post") else block.mlp.hook_out,
        attention_norm=attention_norm,
        mlp_norm=mlp_norm,
        post_norm=post_norm,
        attention=block.attn,
        n_heads=model.record.shape.n_heads,
    )


def _matrix(projection: Any) -> Tensor:
    """Weight of a linear component as [out, in]."""
    original: Module = projection.original_component
    weight = original.get_parameter("weight").detach()
    return weight.T if isinstance(original, Conv1D) else weight


def _has_bias(projection: Any) -> bool:
    return getattr(projection.original_component, "bias", None) is not None


def _bias(projection: Any) -> Tensor:
    """Bias of a linear component; zeros where it has none."""
    if not _has_bias(projection):
        return torch.zeros_like(_matrix(projection)[:, 0])
    found: Tensor = projection.original_component.bias.detach()
    return found
