"""Grouped-query attention with a key and a value for each query head, so that each has a gradient of its own.

The copies are made right behind the projections, where the attention would make them a little later itself: the outputs
of the model stay the same. Norms of keys that have a weight for each head get copies of those too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, ModuleList, Parameter

from circuitdb.errors import ModelError
from circuitdb.ingest.anatomy import Anatomy, Layer


@contextmanager
def ungrouped(anatomy: Anatomy) -> Iterator[None]:
    """Give each query head its own copy of its group's key and value while the context lasts."""
    if anatomy.groups == 1:
        yield
        return
    n_heads, n_groups = anatomy.shape.n_heads, anatomy.shape.n_heads // anatomy.groups

    def repeat(_module: Module, _args: object, output: Tensor) -> Tensor:
        return copies(output, n_groups, anatomy.groups)

    with ExitStack() as undo:
        for layer in anatomy.layers:
            _tell_attention(undo, layer, n_heads, anatomy.groups)
            _repeat_norm(undo, layer, n_groups, anatomy.groups)
            for i in (1, 2):
                undo.callback(layer.projections[i].register_forward_hook(repeat).remove)
        yield


def copies(output: Tensor, n_groups: int, groups: int) -> Tensor:
    """The keys or values [..., group * d_head] once for each query head of their group, [..., head * d_head]."""
    # Not repeat_interleave, whose backward pass is slow.
    heads: Tensor = output.unflatten(-1, [n_groups, 1, -1]).expand(*output.shape[:-1], n_groups, groups, -1)
    return heads.flatten(-3)


def _tell_attention(undo: ExitStack, layer: Layer, n_heads: int, groups: int) -> None:
    """Have the attention copy nothing itself; its number of groups stands in one of two places."""
    attention, original = layer.attention, layer.attention.original_component
    known = False
    if getattr(original, "num_key_value_groups", None) == groups:
        _set(undo, original, "num_key_value_groups", 1)
        known = True
    if "JointQKV" in type(attention).__name__ and getattr(attention.config, "n_key_value_heads", None):
        # Every layer has the same configuration object: the first one changes it, and the last undoing restores it.
        _set(undo, attention.config, "n_key_value_heads", n_heads)
        known = True
    if not known:
        raise ModelError("This model's grouped-query attention is not laid out as known here.")


def _repeat_norm(undo: ExitStack, layer: Layer, n_groups: int, groups: int) -> None:
    """A norm of keys with a part for each key head gets one for each query head."""
    norm = getattr(layer.attention, "k_norm", None)
    original = None if norm is None else norm.original_component
    if original is None:
        return
    if isinstance(getattr(original, "norms", None), ModuleList):
        _set(undo, original, "norms", ModuleList([part for part in original.norms for _ in range(groups)]))
        return
    whole_width = getattr(layer.attention, "_qk_norm_phase", None) == "pre_reshape"
    for name in ("weight", "bias"):
        part = getattr(original, name, None)
        if part is not None and (whole_width or (part.ndim == 2 and part.shape[0] == n_groups)):
            shape = [n_groups * groups, -1] if part.ndim == 2 else [-1]
            repeated = part.detach().reshape(n_groups, -1).repeat_interleave(groups, 0).reshape(shape)
            _set(undo, original, name, Parameter(repeated, requires_grad=False))


def _set(undo: ExitStack, owner: Any, name: str, value: object) -> None:
    undo.callback(setattr, owner, name, getattr(owner, name))
    with torch.inference_mode(False):
        setattr(owner, name, value)
