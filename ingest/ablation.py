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
from circuitdb.ingest.anatomy import Anatomy, accumulation_dtype
from circuitdb.ingest.hooks import hooks
from circuitdb.ingest.methods import MEAN, MEAN_POSITIONAL, PATCHING, ZERO
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.passes import run
from circuitdb.ingest.prefix import NO_PREFIX
from circuitdb.ingest.sources import Sources, written


class Ablation:
    """An ablation with its reference set: token ids [n, pos] of one or more lengths."""

    def __init__(
        self, kind: str, model: LoadedModel, anatomy: Anatomy, references: Sequence[Tensor], batch_size: int
    ) -> None:
        """The reference set is run when a mean is first asked for, `batch_size` prompts at a time."""
        self.kind, self.model, self.anatomy = kind, model, anatomy
        self.references, self.batch_size = references, batch_size
        self._mean: Tensor | None = None

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
        if self.kind == MEAN_POSITIONAL:
            references = [tokens for tokens in self.references if tokens.shape[1] == n_positions and len(tokens)]
            if not references:
                raise UsageError(f"The reference set has no prompt of {n_positions} tokens to take a mean over.")
            total = sum((self._sum(tokens) for tokens in references), torch.zeros(()))
            return total / sum(len(tokens) for tokens in references)
        if self.kind != MEAN:
            raise AssertionError(f"{self.kind} was checked before")
        if self._mean is None:
            if not any(len(tokens) for tokens in self.references):
                raise UsageError("The reference set is empty; a mean needs at least one prompt.")
            sums = [self._sum(tokens).sum(1, keepdim=True) for tokens in self.references]
            self._mean = sum(sums, torch.zeros(())) / sum(tokens.numel() for tokens in self.references)
        return self._mean

    def _sum(self, tokens: Tensor) -> Float[Tensor, "source pos d_model"]:
        """Sum over the prompts of what each source writes at each position."""
        kind = accumulation_dtype(self.model.dtype)
        total = torch.zeros((), dtype=kind, device=self.model.device)
        for prompts in tokens.split(self.batch_size):
            with torch.no_grad(), hooks() as held:
                sources = Sources.watch(self.anatomy, held)
                run(self.model, prompts.to(self.model.device), NO_PREFIX)
            by_prompt = written(self.anatomy, sources, kind).unflatten(1, [len(prompts), -1])
            total = total + by_prompt.sum(1)
        return total
