"""One batch of pairs with its clean and its ablated run: what every method starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from circuitdb.errors import ModelError, UsageError
from circuitdb.ingest import metrics
from circuitdb.ingest.alignment import EQUAL
from circuitdb.ingest.anatomy import Anatomy
from circuitdb.ingest.gradients import TargetGradients
from circuitdb.ingest.hooks import Hooks, hooks
from circuitdb.ingest.methods import Point
from circuitdb.ingest.metrics import Metric
from circuitdb.ingest.models import LoadedModel, accumulation_dtype
from circuitdb.ingest.passes import run
from circuitdb.ingest.prefix import Prefix
from circuitdb.ingest.sources import Changes, Sources

Parts = list[tuple[int, int]]
# Where a pass adds the gradients of its points: the first one's step, and the points.
Gradients = tuple[TargetGradients, int, Sequence[Point]]


@dataclass(frozen=True)
class Group:
    """Pairs of one length: token ids [batch, pos], labels or None, the fold of each pair [batch].

    With the alignment `left-pad` the corrupted prompts may have another length than the clean ones.

    Labels are [batch, choice] or [batch, scored, choice]: token ids of the answer, then of what it is compared with; -1
    is no token. The last `n_scored` positions are scored. Plain tensors, since `Scorer.score` checks them itself and
    says in a sentence what is wrong.
    """

    clean: Tensor
    corrupted: Tensor
    labels: Tensor | None
    fold: Tensor
    n_scored: int = 1
    align: str = EQUAL

    @property
    def padded(self) -> bool:
        """Whether the corrupted prompts have another length than the clean ones."""
        return self.clean.shape[1] != self.corrupted.shape[1]

    @property
    def n_positions(self) -> int:
        """Positions of the longer prompts."""
        return max(self.clean.shape[1], self.corrupted.shape[1])

    def take(self, chosen: Tensor, device: torch.device) -> Group:
        """Some of the pairs, on a device."""
        labels = None if self.labels is None else self.labels[chosen].to(device)
        if labels is not None and labels.ndim == 2:
            labels = labels[:, None]
        clean, corrupted = self.clean[chosen].to(device), self.corrupted[chosen].to(device)
        return Group(clean, corrupted, labels, self.fold[chosen], self.n_scored, self.align)


class Batch:
    """Pairs on the model's device; `fixed` is what ablated sources write, None where that is the corrupted run.

    `parts` are ranges of examples whose scores are kept apart, `at_once` how many points of a path one pass takes. The
    runs are made by `run_clean`, then `run_ablated`.
    """

    def __init__(
        self,
        model: LoadedModel,
        anatomy: Anatomy,
        metric: Metric,
        group: Group,
        prefix: Prefix,
        parts: Parts,
        fixed: Tensor | None,
        at_once: int = 1,
    ) -> None:
        self.model, self.anatomy, self.metric, self.group, self.prefix = model, anatomy, metric, group, prefix
        self.parts, self.fixed, self.at_once = parts, fixed, at_once
        self.kind = accumulation_dtype(model.dtype)
        self.n_positions = group.clean.shape[1] - prefix.length
        self.clean_logits = torch.empty(0)
        self.clean_value = self.corrupted_value = torch.empty(0)
        self.clean: Sources | None = None
        self.corrupted: Sources | None = None

    @property
    def row_parts(self) -> Parts:
        """`parts` as ranges of rows (example, position)."""
        return [(start * self.n_positions, stop * self.n_positions) for start, stop in self.parts]

    def run_clean(self, gradients: Gradients | None = None, held: Hooks | None = None) -> None:
        """The clean run, with whatever more hooks are held; it adds to the gradients if any are given."""
        self.clean, self.clean_logits = self._end(self.group.clean, gradients, held)
        self.clean_value = metrics.require_finite(self.metric, self.value(self.clean_logits).detach())

    def run_ablated(self, gradients: Gradients | None = None) -> None:
        """The corrupted run, where ablation is by patching."""
        if self.fixed is None:
            corrupted, logits = self._end(self.group.corrupted, gradients)
            self.corrupted = self._aligned(corrupted)
            self.corrupted_value = metrics.require_finite(self.metric, self.value(logits).detach())

    def forget_sources(self) -> None:
        """Let go of what the sources wrote in the runs, but for the embedding."""
        for sources in (self.clean, self.corrupted):
            if sources is not None:
                sources.forget()

    def run_sources(self) -> None:
        """The corrupted run for what its sources write alone, where ablation is by patching."""
        if self.fixed is None:
            if self.group.padded:
                self.clean, _ = self._end(self.group.clean)
            corrupted, _ = self._end(self.group.corrupted)
            self.corrupted = self._aligned(corrupted)

    def value(self, logits: Tensor) -> Tensor:
        """The metric, one number per example; logits may be of several runs of the batch, one after the other."""
        times = len(logits) // len(self.group.clean)
        clean = self.clean_logits.to(logits.device)
        labels = None if self.group.labels is None else self.group.labels.to(logits.device)
        if times > 1:
            clean, labels = clean.repeat(times, 1, 1), None if labels is None else labels.repeat(times, 1, 1)
        return metrics.evaluate(self.metric, logits, clean, labels)

    def changes(self) -> Changes:
        """What each source writes when ablated less what it writes in the clean run."""
        ablated = self.corrupted if self.fixed is None else self.fixed
        if self.clean is None or ablated is None:
            raise AssertionError("the runs come before their difference")
        return Changes(self.anatomy, self.clean, ablated, self.kind)

    def new_targets(self, n_steps: int) -> TargetGradients:
        """Gradients of all targets, none yet."""
        like = torch.empty(0, self.model.record.d_model, dtype=self.model.dtype, device=self.model.device)
        return TargetGradients(self.anatomy, len(self.group.clean) * self.n_positions, n_steps, like)

    def gradient_pass(self, held: Hooks, tokens: Tensor, gradients: Gradients) -> Tensor:
        """Forward and backward with the targets watched; the metric is summed over the batch, not averaged.

        Whatever takes the place of the stream or of a source's output, at one point after the other, is in `held`
        already. Before the clean run, `tokens` are the clean ones. Returns the logits.
        """
        targets, first, points = gradients
        held.replace(self.anatomy.stream, lambda own: own.detach().requires_grad_(True))
        targets.watch(held, first, [point.weight for point in points])
        with torch.enable_grad():
            logits = run(self.model, tokens.repeat(len(points), 1), self.prefix, self.group.n_scored)
            if self.clean is None:
                self.clean_logits = logits.detach()
            value = self.value(logits)
            if not value.requires_grad:
                raise UsageError(f"The metric {self.metric.name} does not depend on the logits; it has no gradient.")
            metrics.require_finite(self.metric, value.detach())
            value.sum().backward()
        return logits.detach()

    def _aligned(self, corrupted: Sources) -> Sources:
        """What the corrupted run writes at the positions of the clean one."""
        if not self.group.padded:
            return corrupted
        if self.clean is None:
            raise AssertionError("the clean run comes before the corrupted one")
        return corrupted.aligned_to(self.clean)

    def _end(
        self, tokens: Tensor, gradients: Gradients | None = None, held: Hooks | None = None
    ) -> tuple[Sources, Tensor]:
        with hooks() as own:
            held = held or own
            sources = Sources.watch(self.anatomy, held)
            if gradients is not None:
                logits = self.gradient_pass(held, tokens, gradients)
            else:
                with torch.no_grad():
                    logits = run(self.model, tokens, self.prefix, self.group.n_scored)
        if not bool(torch.isfinite(logits).all()):
            raise ModelError("The model's logits are not finite on these prompts; in half precision, try float32.")
        return sources, logits
