"""Hard circuits on pairs of prompts: the mean metric of each, and what it writes.

A circuit is a set of edges, [n_edges] booleans in the order of `shape.edge_names`; all others are ablated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from circuitdb.errors import UsageError
from circuitdb.ingest import metrics, prefix
from circuitdb.ingest.ablation import Ablation
from circuitdb.ingest.anatomy import read_anatomy
from circuitdb.ingest.batch import Batch, Group
from circuitdb.ingest.checks import check_group, check_model, check_tokens
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
_Found = TypeVar("_Found")


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
    check_model(model)
    check_tokens(model, clean, "clean")
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
        done = 0

        def sums(batch: Batch) -> Tensor:
            nonlocal done
            n = len(batch.group.clean)

            def within(n_circuits: int) -> None:
                if progress is not None:
                    progress((done + n * n_circuits / len(kept)) / n_examples)

            ends = torch.stack([batch.clean_value.sum(), batch.corrupted_value.sum()]).cpu().double()
            found = torch.cat([ends, self._values(batch, kept, within)])
            done += n
            return found

        totals = torch.stack(self._each_batch(groups, metric, references, sums)).sum(0) / n_examples
        clean, ablated = totals[:2].tolist()
        return CircuitValues(totals[2:].numpy(), clean, ablated, n_examples)

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

        The corrupted prompts go on with the same tokens, so that both runs stay aligned, up to the model's context.
        Raises UsageError for what can't be, as an ablation by the mean at each position, which no written token has
        one at.
        """
        if self.ablation == MEAN_POSITIONAL:
            raise UsageError("A mean at each position is known for prompts alone; generate with another ablation.")
        if not isinstance(circuit, np.ndarray):
            raise UsageError("A circuit must be a numpy array of booleans, [n_edges].")
        if isinstance(n_tokens, bool) or not isinstance(n_tokens, int) or n_tokens < 0:
            raise UsageError(f"A circuit writes a whole number of tokens, none or more, not {n_tokens!r}.")
        kl = metrics.find("kl")
        check_tokens(self.model, prompts, "clean")
        check_group(self.model, _unlabelled(prompts, corrupted), kl, n_folds=1)
        if not len(prompts):
            raise UsageError("There are no prompts to go on from.")
        kept, written = self._cells(circuit[None]), prompts[:, :0]

        def next_tokens(batch: Batch) -> Tensor:
            return run_circuits(batch, kept)[:, -1].argmax(-1).cpu()

        for _ in range(n_tokens):
            if prompts.shape[1] + written.shape[1] > self.model.n_context:
                break
            clean, other = (torch.cat([tokens, written], dim=1) for tokens in (prompts, corrupted))
            parts = self._each_batch([_unlabelled(clean, other)], kl, references, next_tokens)
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

    def _each_batch(
        self,
        groups: Sequence[Group],
        metric: Metric,
        references: Sequence[Tensor] | None,
        work: Callable[[Batch], _Found],
    ) -> list[_Found]:
        """`work` on every batch, its clean and ablated runs made; halved and done again where memory runs out."""
        around = [group.corrupted for group in groups] if references is None else references
        found = []
        with plain_modes(self.model), ungrouped(self.anatomy):
            size = self.memory.batch_size(groups[0].clean.shape[1], sum(len(group.clean) for group in groups))
            ablation = Ablation(self.ablation, self.model, self.anatomy, around, size)
            for group in groups:
                shared = self.ablation == PATCHING
                start = prefix.shared_length(group.clean, group.corrupted, group.n_scored) if shared else 0
                cached = prefix.compute(self.model, group.clean[0, :start].to(self.model.device))
                fixed, at = ablation.fixed(group.clean.shape[1]), 0
                while at < len(group.clean):
                    size = self.memory.batch_size(group.clean.shape[1] - start, len(group.clean) - at)
                    own = group.take(torch.arange(at, at + size), self.model.device)
                    batch = Batch(self.model, self.anatomy, metric, own, cached, [(0, size)], fixed)
                    failure = None
                    try:
                        _run_ends(batch)
                        found.append(work(batch))
                        at += size
                    except (RuntimeError, MemoryError) as error:
                        failure = self._exhausted(error)
                    if failure is not None:  # outside of the handler, which holds on to the tensors of the failed pass
                        if size == 1:
                            raise self.memory.too_small(failure)
                        self.memory.shrink(size, failure)
        return found

    def _values(self, batch: Batch, kept: Tensor, progress: Callable[[int], None]) -> Float[Tensor, " circuit"]:
        """The metric summed over a batch, of each circuit; as many circuits in a pass as fit."""
        n, at, found = len(batch.group.clean), 0, [torch.zeros(0, dtype=torch.float64)]
        while at < len(kept):
            rows = self.memory.circuit_rows(batch.n_positions, batch.group.n_scored)
            chosen = kept[at : at + max(1, rows // n)]
            failure = None
            try:
                found.append(batch.value(run_circuits(batch, chosen)).reshape(-1, n).sum(1).cpu().double())
                at += len(chosen)
                progress(at)
            except (RuntimeError, MemoryError) as error:
                if len(chosen) == 1:
                    raise
                failure = self._exhausted(error)
            if failure is not None:
                self.memory.shrink_rows(n * len(chosen))
        return torch.cat(found)

    def _exhausted(self, error: Exception) -> str:
        """What an error says of memory that ran out; any other error is raised again."""
        if not self.memory.exhausted(error):
            raise error
        return str(error).splitlines()[0]


def _run_ends(batch: Batch) -> None:
    """The whole model's run of a batch, and that with every edge ablated."""
    batch.run_clean()
    batch.run_ablated()
    if batch.fixed is not None:
        batch.corrupted_value = batch.value(fully_ablated(batch))


def _unlabelled(clean: Tensor, corrupted: Tensor) -> Group:
    return Group(clean, corrupted, None, torch.zeros(len(clean), dtype=torch.int64))
