"""What an ablated source writes where it isn't what it writes in the corrupted run: zero, or its mean.

`zero`             nothing
`mean`             its mean over all positions of a reference set of prompts
`mean-positional`  its mean at each position, over prompts of the same length
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from circuitdb.errors import UsageError
from circuitdb.ingest.anatomy import Anatomy
from circuitdb.ingest.hooks import hooks
from circuitdb.ingest.memory import Length, Memory
from circuitdb.ingest.methods import MEAN_POSITIONAL, PATCHING, ZERO
from circuitdb.ingest.models import LoadedModel, accumulation_dtype
from circuitdb.ingest.passes import run
from circuitdb.ingest.prefix import NO_PREFIX
from circuitdb.ingest.sources import Sources, written


class Ablation:
    """An ablation with its reference set: token ids [n, pos] of one or more lengths."""

    def __init__(
        self, kind: str, model: LoadedModel, anatomy: Anatomy, references: Sequence[Tensor], memory: Memory
    ) -> None:
        """The reference set is run when a mean is first asked for, in batches that fit in memory."""
        self.kind, self.model, self.anatomy = kind, model, anatomy
        self.references, self.memory = references, memory
        self._means: dict[int, Tensor] = {}

    def fixed(self, n_positions: int) -> Float[Tensor, "source pos d_model"] | None:
        """What ablated sources write in prompts of so many positions; `pos` is 1 if it is the same at all of them.

        None for patching. Raises UsageError if a mean has no prompt, or at each position none of this length, to be
        taken over.
        """
        shape, d_model = self.anatomy.shape, self.model.record.d_model
        dtype, device = accumulation_dtype(self.model.dtype), self.model.device
        if self.kind == PATCHING:
            return None
        if self.kind == ZERO:
            return torch.zeros(shape.n_sources, 1, d_model, dtype=dtype, device=device)
        length = n_positions if self.kind == MEAN_POSITIONAL else 0
        if length not in self._means:
            self._means[length] = self._mean(length)
        return self._means[length]

    def _mean(self, length: int) -> Float[Tensor, "source pos d_model"]:
        """The mean at each position of prompts of one length; for length 0, over all positions of all prompts."""
        references = [tokens for tokens in self.references if len(tokens) and length in (0, tokens.shape[1])]
        if not references:
            lacking = f"has no prompt of {length} tokens to take a mean over" if length else "is empty"
            raise UsageError(f"The reference set {lacking}; a mean needs at least one prompt.")
        sums = [self._sum(tokens) for tokens in references]
        if length:
            return torch.stack(sums).sum(0) / sum(len(tokens) for tokens in references)
        total = torch.stack([each.sum(1, keepdim=True) for each in sums]).sum(0)
        return total / sum(tokens.numel() for tokens in references)

    def _sum(self, tokens: Tensor) -> Float[Tensor, "source pos d_model"]:
        """Sum over the prompts of what each source writes at each position."""
        kind = accumulation_dtype(self.model.dtype)
        total = torch.zeros((), dtype=kind, device=self.model.device)
        for prompts in tokens.split(self.memory.batch_size(Length(tokens.shape[1]), len(tokens))):
            with torch.no_grad(), hooks() as held:
                sources = Sources.watch(self.anatomy, held)
                run(self.model, prompts.to(self.model.device), NO_PREFIX)
            by_prompt = written(self.anatomy, sources, kind).unflatten(1, [len(prompts), -1])
            total = total + by_prompt.sum(1)
        return total
