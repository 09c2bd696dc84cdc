"""The loop that scoring and running circuits share: batch after batch, with what each needs made before it.

For each group of pairs the prefix that all share is computed once, and so is what ablated sources write; the pairs of
one fold lie together. Where memory runs out, on whatever of this, the batch is halved and done again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from circuitdb.errors import UsageError
from circuitdb.ingest import prefix
from circuitdb.ingest.ablation import Ablation
from circuitdb.ingest.anatomy import Anatomy
from circuitdb.ingest.batch import Batch, Group, Parts
from circuitdb.ingest.checks import check_tokens
from circuitdb.ingest.grouped import ungrouped
from circuitdb.ingest.memory import Length, Memory
from circuitdb.ingest.methods import PATCHING, ZERO
from circuitdb.ingest.metrics import Metric
from circuitdb.ingest.models import LoadedModel, plain_modes
from circuitdb.ingest.prefix import NO_PREFIX
from circuitdb.ingest.preflight import preflight_on


class Rounds:
    """Batches of one model under one ablation; under patching alone are shared positions left out."""

    def __init__(
        self, model: LoadedModel, anatomy: Anatomy, memory: Memory, ablation: str, *, share_prefix: bool = True
    ) -> None:
        self.model, self.anatomy, self.memory, self.ablation = model, anatomy, memory, ablation
        # Under zero and mean ablation edges have an effect at the positions that all prompts share, too.
        self.share_prefix = share_prefix and ablation == PATCHING
        self._ablated: tuple[Sequence[Tensor], Ablation] | None = None

    def each(
        self,
        groups: Sequence[Group],
        metric: Metric,
        references: Sequence[Tensor] | None,
        parts: Callable[[Group], Parts],
        work: Callable[[int, Tensor, Batch], None],
    ) -> None:
        """`work(number of the group, places of its pairs in it, batch)` on every batch.

        Args:
            groups: checked pairs.
            metric: what the batches measure.
            references: prompts that means are taken over; by default the corrupted ones.
            parts: ranges of a batch's examples that are kept apart.
            work: done once for every pair; it must leave nothing behind when it fails.

        Raises:
            UsageError: references where the ablation takes no mean, or token ids that can't be.
            ModelError: the model is found unsound on these prompts, or a single pair doesn't fit in memory.
        """
        if references is not None and self.ablation in (PATCHING, ZERO):
            raise UsageError(f"Ablation by {self.ablation} takes no mean; leave the reference prompts out.")
        for tokens in references or ():
            check_tokens(self.model, tokens, "reference")
        with plain_modes(self.model), ungrouped(self.anatomy):
            self._try(groups)
            around = [group.corrupted for group in groups] if references is None else references
            # The means of a reference set that is given again need not be taken again.
            if self._ablated is None or self._ablated[0] is not around:
                self._ablated = (around, Ablation(self.ablation, self.model, self.anatomy, around, self.memory))
            for number, group in enumerate(groups):
                self._each_of(number, group, metric, self._ablated[1], parts, work)

    def n_shared(self, group: Group) -> int:
        """Positions that are computed once for all pairs of a group."""
        if group.padded or not self.share_prefix:
            return 0
        return prefix.shared_length(group.clean, group.corrupted, group.n_scored)

    def _try(self, groups: Sequence[Group]) -> None:
        """The trial on the longest of the user's own prompts, once for a model and a length."""
        longest = max((group for group in groups if len(group.clean)), key=lambda group: group.n_positions)
        trial = f"prompts of {longest.clean.shape[1]} and {longest.corrupted.shape[1]}, {self.n_shared(longest)} shared"
        if trial in self.model.checked:
            return
        first = longest.take(torch.tensor([0]), self.model.device)
        try:
            preflight_on(self.model, self.anatomy, first.clean, first.corrupted, self.n_shared(longest))
        except (RuntimeError, MemoryError) as error:
            self.memory.failure(error)  # whole prompts don't fit: what is left of them may
        self.model.checked.add(trial)

    def _each_of(
        self,
        number: int,
        group: Group,
        metric: Metric,
        ablation: Ablation,
        parts: Callable[[Group], Parts],
        work: Callable[[int, Tensor, Batch], None],
    ) -> None:
        start, cached, order, at = self.n_shared(group), NO_PREFIX, torch.argsort(group.fold, stable=True), 0
        length = Length(group.n_positions - start, start, group.n_scored)
        while at < len(order):
            chosen = order[at : at + self.memory.batch_size(length, len(order) - at)]
            failure, self.memory.points = None, 1
            try:
                if cached.length < start:
                    cached = prefix.compute(self.model, group.clean[0, :start].to(self.model.device))
                fixed = ablation.fixed(group.clean.shape[1])
                own = group.take(chosen, self.model.device)
                at_once = self.memory.points_at_once(length, len(chosen))
                # Nothing of the batch has a name here, so that it is gone before the next one is measured.
                work(number, chosen, Batch(self.model, self.anatomy, metric, own, cached, parts(own), fixed, at_once))
                at += len(chosen)
            except (RuntimeError, MemoryError) as error:
                failure = self.memory.failure(error)
            if failure is not None:  # outside of the handler, which holds on to the tensors of the failed pass
                self.memory.shrink(len(chosen), failure)
