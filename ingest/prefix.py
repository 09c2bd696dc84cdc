"""What all prompts of a batch begin with is computed once: its keys and values are cached for every later pass.

Clean and corrupted runs are equal there (attention is causal), so no source differs and no edge gets a score from those
positions: leaving them out is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import DynamicCache

from circuitdb.ingest.models import LoadedModel

Tokens = Int[Tensor, "batch pos"]


@dataclass(frozen=True)
class Prefix:
    """Cached keys and values of the first `length` positions, one entry a layer, batch of one."""

    length: int
    keys_values: tuple[tuple[Tensor, Tensor], ...]

    def cache(self, batch: int) -> DynamicCache | None:
        """A fresh cache for a pass over `batch` prompts; None without a prefix."""
        if self.length == 0:
            return None
        cache = DynamicCache()
        for layer, (keys, values) in enumerate(self.keys_values):
            cache.update(keys.expand(batch, -1, -1, -1), values.expand(batch, -1, -1, -1), layer)
        return cache


NO_PREFIX = Prefix(0, ())


def shared_length(clean: Tokens, corrupted: Tokens, n_scored: int = 1) -> int:
    """How many positions all prompts, clean and corrupted, have in common from the start; scored ones are left over."""
    together = torch.cat([clean, corrupted])
    same = (together == together[0]).all(0)
    return int(same[:-n_scored].long().cumprod(0).sum())


def compute(model: LoadedModel, tokens: Int[Tensor, " pos"]) -> Prefix:
    """Run the prefix once and keep its keys and values. The caller holds the same `ungrouped` context as later."""
    if tokens.numel() == 0:
        return NO_PREFIX
    cache = DynamicCache()
    with torch.no_grad():
        model.bridge(tokens[None], past_key_values=cache, logits_to_keep=1)
    layers: list[Any] = list(cache.layers)
    return Prefix(tokens.numel(), tuple((layer.keys, layer.values) for layer in layers))
