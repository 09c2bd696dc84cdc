"""Where, in a TransformerBridge, each source writes and each target reads, with the weights in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import Module
from transformers.pytorch_utils import Conv1D

from circuitdb.errors import ModelError
from circuitdb.graph import GraphShape
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.norms import Norm, read_norm


@dataclass(frozen=True)
class Layer:
    """One layer's hook points (modules whose output is the tensor), norms and projections."""

    attention_stream: Module
    mlp_stream: Module | None
    projections: tuple[Module, Module, Module]
    heads_out: Module
    mlp_in: Module
    mlp_out: Module
    attention_norm: Norm
    mlp_norm: Norm
    attention: Any
    n_heads: int

    def output_weights(self) -> Float[Tensor, "head d_head d_model"]:
        """Each head's slice of the output projection."""
        weight = _matrix(self.attention.o)
        return weight.T.reshape(self.n_heads, -1, weight.shape[0])

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
        d_head = _matrix(self.attention.q).shape[0] // self.n_heads
        parts = []
        for projection in (self.attention.q, self.attention.k, self.attention.v):
            rows = read(projection).to(self.attention_norm.weight.dtype)
            per_head = rows.reshape(-1, d_head, *rows.shape[1:])
            parts.append(per_head.repeat_interleave(self.n_heads // per_head.shape[0], 0))
        return parts


@dataclass(frozen=True)
class Anatomy:
    """All hook points that scoring needs."""

    shape: GraphShape
    embed: Module
    layers: tuple[Layer, ...]
    final_stream: Module
    groups: int


def read_anatomy(model: LoadedModel) -> Anatomy:
    """Find the hook points and norms. Raises ModelError, with the reason, for a model whose writers don't add up."""
    bridge: Any = model.bridge
    shape, what = model.record.shape, model.record.architecture
    if getattr(bridge.original_model.config, "is_encoder_decoder", False):
        raise ModelError(f"{what} is an encoder-decoder; only decoder-only models have this edge set.")
    if not hasattr(bridge, "blocks") or not hasattr(bridge, "embed") or not hasattr(bridge, "ln_final"):
        raise ModelError(f"{what} has no plain stack of blocks with a final norm in TransformerLens.")
    layers = tuple(_read_layer(model, index, block) for index, block in enumerate(bridge.blocks))
    return Anatomy(
        shape, bridge.embed.hook_out, layers, bridge.ln_final.hook_in, shape.n_heads // model.record.n_kv_heads
    )


def _read_layer(model: LoadedModel, index: int, block: Any) -> Layer:
    what = f"{model.record.architecture}, layer {index},"
    if hasattr(block, "ln1_post") or hasattr(block, "ln2_post"):
        raise ModelError(
            f"{what} has a norm between its heads and the residual stream; "
            "a head's contribution there is not its own output, and scoring it is not supported yet."
        )
    missing = [name for name in ("ln1", "attn", "mlp") if not hasattr(block, name)]
    missing += [name for name in ("q", "k", "v", "o") if not missing and not hasattr(block.attn, name)]
    if missing:
        raise ModelError(f"{what} lacks {', '.join(missing)} in TransformerLens; its edges can't be scored.")
    if type(block).__name__ == "ScaledResidualBlockBridge":
        raise ModelError(f"{what} scales what its parts write; scoring that is not supported yet.")
    if "MoE" in type(block.mlp).__name__:
        raise ModelError(f"{what} is a mixture of experts, whose routing has no place in this edge set.")
    d_model, device, dtype = model.record.d_model, model.device, accumulation_dtype(model.dtype)
    attention_norm = read_norm(block.ln1, d_model, device, dtype)
    own_norm = hasattr(block, "ln2")
    if not own_norm and not model.record.shape.parallel:
        raise ModelError(f"{what} has no norm before its MLP; scoring that is not supported yet.")
    return Layer(
        attention_stream=block.ln1.hook_in,
        mlp_stream=block.ln2.hook_in if own_norm else None,
        projections=(block.attn.q.hook_out, block.attn.k.hook_out, block.attn.v.hook_out),
        heads_out=block.attn.o.hook_in,
        mlp_in=block.mlp.hook_in,
        mlp_out=block.mlp.hook_out,
        attention_norm=attention_norm,
        mlp_norm=read_norm(block.ln2, d_model, device, dtype) if own_norm else attention_norm,
        attention=block.attn,
        n_heads=model.record.shape.n_heads,
    )


@contextmanager
def ungrouped(anatomy: Anatomy) -> Iterator[None]:
    """Give each query head its own copy of its group's key and value, so that each has its own gradient.

    The copies are made after the projection, where the attention would make them a little later itself: the outputs
    of the model stay the same.
    """
    if anatomy.groups == 1:
        yield
        return
    handles = []
    changed: list[tuple[Any, int]] = []
    sizes = [anatomy.shape.n_heads // anatomy.groups, -1]

    def repeat(_module: Module, _args: object, output: Tensor) -> Tensor:
        heads: Tensor = output.unflatten(-1, sizes).repeat_interleave(anatomy.groups, -2)
        return heads.flatten(-2)

    try:
        for layer in anatomy.layers:
            original = layer.attention.original_component
            if getattr(original, "num_key_value_groups", None) != anatomy.groups:
                raise ModelError("This model's grouped-query attention is not laid out as known here.")
            changed.append((original, original.num_key_value_groups))
            original.num_key_value_groups = 1
            handles += [layer.projections[i].register_forward_hook(repeat) for i in (1, 2)]
        yield
    finally:
        for handle in handles:
            handle.remove()
        for original, groups in changed:
            original.num_key_value_groups = groups


def accumulation_dtype(dtype: torch.dtype) -> torch.dtype:
    """Type that gradients and scores are summed in: float32 for half-precision models, otherwise the model's own."""
    return dtype if dtype == torch.float64 else torch.float32


def _matrix(projection: Any) -> Tensor:
    """Weight of a linear component as [out, in]."""
    original: Module = projection.original_component
    weight = original.get_parameter("weight").detach()
    return weight.T if isinstance(original, Conv1D) else weight


def _bias(projection: Any) -> Tensor:
    """Bias of a linear component; zeros where it has none."""
    original = projection.original_component
    bias = getattr(original, "bias", None)
    if bias is None:
        return torch.zeros_like(_matrix(projection)[:, 0])
    found: Tensor = bias.detach()
    return found
