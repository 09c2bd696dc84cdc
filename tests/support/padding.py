"""Prompts of unequal length as the oracle runs them: really padded on the left, the padding masked."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Padded:
    """Token ids [batch, pos] of which the first `n` are padding: masked, and not counted in the positions."""

    tokens: Tensor
    n: int

    @property
    def mask(self) -> Tensor:
        """Whether there is a token, [batch, pos]."""
        return (torch.arange(self.tokens.shape[1]) >= self.n).expand(self.tokens.shape)

    def inputs(self) -> dict[str, Tensor]:
        """What a Hugging Face model is called with."""
        mask = self.mask.long()
        positions = (mask.cumsum(1) - 1).clamp_min(0)
        return {"input_ids": self.tokens, "attention_mask": mask, "position_ids": positions}

    def repeat(self, n: int, _: int) -> Padded:
        return Padded(self.tokens.repeat(n, 1), self.n)

    def __len__(self) -> int:
        return len(self.tokens)


Prompts = Tensor | Padded


def padded(clean: Tensor, corrupted: Tensor) -> tuple[Padded, Padded]:
    """Prompts [batch, pos], the shorter ones padded with a token that would tell if it were read."""
    width = max(clean.shape[1], corrupted.shape[1])

    def to_width(tokens: Tensor) -> Padded:
        missing = width - tokens.shape[1]
        return Padded(nn.functional.pad(tokens, (missing, 0), value=63), missing)

    return to_width(clean), to_width(corrupted)


def comparable(clean: Prompts, corrupted: Prompts, difference: Tensor) -> Tensor:
    """A difference [..., batch, pos, d_model] of two runs where both have a token, and 0 elsewhere."""
    for prompts in (clean, corrupted):
        if isinstance(prompts, Padded):
            difference = torch.where(prompts.mask[..., None], difference, 0.0)
    return difference
