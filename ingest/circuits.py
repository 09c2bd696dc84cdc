"""Hard circuits on pairs of prompts: the mean metric of each, and what it writes.

A circuit is a set of edges, [n_edges] booleans in the order of `shape.edge_names`; all others are ablated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from circuitdb.errors import ModelError, UsageError
from circuitdb.ingest import metrics, prefix
from circuitdb.ingest.ablation import Ablation
from circuitdb.ingest.anatomy import read_anatomy
from circuitdb.ingest.batch import Batch, Group
from circuitdb.ingest.checks import check_group, check_tokens
from circuitdb.ingest.circuit_run import fully_ablated, run_circuits
from circuitdb.ingest.grouped import ungrouped
from circuitdb.ingest.memory import Memory
from circuitdb.ingest.methods import ABLATIONS, MEAN_POSITIONAL, PATCHING
from circuitdb.ingest.metrics import Metric
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.preflight import preflight
from circuitdb.ingest.scoring import plain_modes

Circuits = npt.NDArray[np.bool_]
Progress = Callable[[float], None]


@dataclass(frozen=True)
class CircuitValues:
    """Mean metrics over the examples: of each circuit [n_circuits], of the whole model, and with every edge ablated."""

    values: npt.NDArray[np.float64]
    clean: float
    ablated: float
    n_examples: int

    @property
    def faithfulness(self) -> npt.NDArray[np.float64]:
        """(value - ablated) / (clean - ablated) [n_circuits]: 1 like the model, 0 like nothing; NaN without a gap."""
        gap = self.clean - self.ablated
        return (self.values - self.ablated) / gap if gap else np.full_like(self.values, np.nan)


def evaluate_circuits(
    model: LoadedModel,
    clean: Tensor,
    corrupted: Tensor,
    circuits: Circuits,
    *,
    metric: str = "kl",
    labels: Tensor | None = None,
    scored: int = 1,
    ablation: str = "patching",
    reference: Tensor | None = None,
    batch_size: int | None = None,
) -> CircuitValues:
    """Run hard circuits in the model.

    Args:
        model: from `load_model`.
        clean: [batch, pos] int64 token ids.
        corrupted: [batch, pos], the partner of each row.
        circuits: [n_circuits, n_edges] booleans: the edges that are kept.
        metric: its name, as for `score_edges`.
        labels: as for `score_edges`.
        scored: how many of the last positions the metric is summed over.
        ablation: `patching`, `zero`, `mean` or `mean-positional`.
        reference: [n, pos] token ids that the means are taken over; by default the corrupted prompts.
        batch_size: pairs in one pass; by default as many as fit in memory.

    Raises:
        UsageError: shapes, types, token ids or options that can't be.
        ModelError: a model whose edges can't be told apart.
    """
    if not isinstance(clean, Tensor):
        raise UsageError(f"The clean tokens are of type {type(clean).__name__}; give a torch tensor.")
    group = Group(clean, corrupted, labels, torch.zeros(len(clean), dtype=torch.int64), scored)
    runner = CircuitRunner(model, ablation=ablation, batch_size=batch_size)
    around = None if reference is None else [reference]
    return runner.evaluate([group], circuits, metrics.find(metric), references=around)


class CircuitRunner:
    """Runs hard circuits of one checked model, as many in a pass as fit."""

    def __init__(self, model: LoadedModel, *, ablation: str = PATCHING, batch_size: int | None = None) -> None:
        """Raises UsageError for an unknown ablation, ModelError for a model whose edges can't be told apart."""
        if ablation not in ABLATIONS:
            raise UsageError(f"There is no ablation {ablation!r}; choose one of {', '.join(ABLATIONS)}.")
        if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 1):
            raise UsageError(f"A batch needs a whole number of pairs, at least one pair, not {batch_size!r}.")
        self.model, self.ablation = model, ablation
        self.anatomy, self.memory = read_anatomy(model), Memory(model, 0, batch_size)
        with plain_modes(model):
            preflight(model, self.anatomy)

    def evaluate(
        self,
        groups: Sequence[Group],
        circuits: Circuits,
        metric: Metric,
        *,
        references: Sequence[Tensor] | None = None,
        progress: Progress | None = None,
    ) -> CircuitValues:
        """The mean metric of each circuit over all groups; `references` are prompts that means are taken over.

        Raises UsageError for circuits or token ids that can't be, ModelError where memory runs out.
        """
        kept = self._cells(circuits)
        for group in groups:
            check_group(self.model, group, metric, n_folds=1)
        for tokens in references or ():
            check_tokens(self.model, tokens, "reference")
        n_examples = sum(len(group.clean) for group in groups)
        if n_examples == 0:
            raise UsageError("There are no examples to run circuits on.")
        totals, ends, done = torch.zeros(len(kept), dtype=torch.float64), torch.zeros(2, dtype=torch.float64), 0.0
        with plain_modes(self.model), ungrouped(self.anatomy):
            for batch in self._batches(groups, metric, references):
                ends += torch.stack([batch.clean_value.sum(), batch.corrupted_value.sum()]).cpu().double()
                at = 0
                while at < len(kept):
                    found = self._values(batch, kept[at:])
                    totals[at : at + len(found)] += found
                    at += len(found)
                    done += len(found) * len(batch.group.clean)
                    if progress is not None:
                        progress(done / (len(kept) * n_examples))
        values = (totals / n_examples).numpy()
        clean, ablated = (ends / n_examples).tolist()
        return CircuitValues(values, clean, ablated, n_examples)

    def generate(
        self,
        prompts: Tensor,
        corrupted: Tensor,
        circuit: Circuits,
        n_tokens: int,
        *,
        references: Sequence[Tensor] | None = None,
    ) -> Float[Tensor, "batch token"]:
        """What one circuit [n_edges] writes after prompts [batch, pos], greedily: ids [batch, n_tokens].

        The corrupted prompts go on with the same tokens, so that both runs stay aligned. Raises UsageError for an
        ablation by the mean at each position, which no written token has one at.
        """
        if self.ablation == MEAN_POSITIONAL:
            raise UsageError("A mean at each position is known for prompts alone; generate with another ablation.")
        for name, tokens in (("clean", prompts), ("corrupted", corrupted)):
            check_tokens(self.model, tokens, name)
        kept, written = self._cells(circuit[None]), prompts[:, :0]
        for _ in range(n_tokens):
            if prompts.shape[1] + written.shape[1] > self.model.n_context:
                break
            clean, other = (torch.cat([tokens, written], dim=1) for tokens in (prompts, corrupted))
            group = Group(clean, other, None, torch.zeros(len(clean), dtype=torch.int64))
            with plain_modes(self.model), ungrouped(self.anatomy):
                parts = [
                    run_circuits(batch, kept)[:, -1].argmax(-1).cpu()
                    for batch in self._batches([group], metrics.find("kl"), references)
                ]
            written = torch.cat([written, torch.cat(parts)[:, None]], dim=1)
        return written

    def _cells(self, circuits: Circuits) -> Tensor:
        """[circuit, source, target] from [circuit, n_edges]. Raises UsageError for another shape or type."""
        shape = self.anatomy.shape
        if not isinstance(circuits, np.ndarray) or circuits.dtype != np.bool_ or circuits.ndim != 2:
            raise UsageError("Circuits must be a numpy array of booleans, [n_circuits, n_edges].")
        if circuits.shape[1] != shape.n_edges:
            raise UsageError(f"These circuits have {circuits.shape[1]:,} edges; this model has {shape.n_edges:,}.")
        cells = np.zeros((len(circuits), *shape.mask.shape), dtype=bool)
        cells[:, shape.mask] = circuits
        return torch.from_numpy(cells)

    def _batches(self, groups: Sequence[Group], metric: Metric, references: Sequence[Tensor] | None) -> Iterator[Batch]:
        """Batches whose clean and ablated runs are made. The caller holds `plain_modes` and `ungrouped`."""
        around = [group.corrupted for group in groups] if references is None else references
        size = self.memory.batch_size(groups[0].clean.shape[1], sum(len(group.clean) for group in groups))
        ablation = Ablation(self.ablation, self.model, self.anatomy, around, size)
        for group in groups:
            shared = self.ablation == PATCHING
            start = prefix.shared_length(group.clean, group.corrupted, group.n_scored) if shared else 0
            cached = prefix.compute(self.model, group.clean[0, :start].to(self.model.device))
            fixed = ablation.fixed(group.clean.shape[1])
            size = self.memory.batch_size(group.clean.shape[1] - start, len(group.clean))
            for chosen in torch.arange(len(group.clean)).split(size):
                own = group.take(chosen, self.model.device)
                batch = Batch(self.model, self.anatomy, metric, own, cached, [(0, len(chosen))], fixed)
                batch.run_clean()
                batch.run_ablated()
                if fixed is not None:
                    batch.corrupted_value = batch.value(fully_ablated(batch))
                yield batch

    def _values(self, batch: Batch, kept: Tensor) -> Float[Tensor, " circuit"]:
        """The metric summed over a batch, of the first circuits, as many as one pass takes."""
        while True:
            rows = self.memory.circuit_rows(batch.n_positions, batch.group.n_scored)
            size, n = max(1, rows // len(batch.group.clean)), len(batch.group.clean)
            failure = None
            try:
                logits = run_circuits(batch, kept[:size])
                return batch.value(logits).reshape(-1, n).sum(1).cpu().double()
            except (RuntimeError, MemoryError) as error:
                if not self.memory.exhausted(error):
                    raise
                failure = str(error).splitlines()[0]
            if size == 1:
                raise ModelError(
                    f"Memory ran out with {n} pairs on {self.model.device} ({failure}); use a smaller --batch-size."
                )
            self.memory.shrink(n, failure)
