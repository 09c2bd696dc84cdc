"""Hard circuits on pairs of prompts: the mean metric of each, and what it writes.

A circuit is a set of edges, [n_edges] booleans in the order of `shape.edge_names`; all others are ablated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from circuitdb.errors import UsageError
from circuitdb.ingest import metrics
from circuitdb.ingest.alignment import EQUAL
from circuitdb.ingest.anatomy import read_anatomy
from circuitdb.ingest.batch import Batch, Group
from circuitdb.ingest.checks import check_group, check_model, check_tokens
from circuitdb.ingest.circuit_run import fully_ablated, run_circuits
from circuitdb.ingest.memory import Memory
from circuitdb.ingest.methods import MEAN_POSITIONAL, PATCHING, check_known
from circuitdb.ingest.metrics import Metric
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.preflight import preflight
from circuitdb.ingest.rounds import Rounds

Circuits = npt.NDArray[np.bool_]
Progress = Callable[[float], None]
# Relative rounding of a metric by type; in float64 Hugging Face's norms are float32 still.
_ROUNDING = {torch.float64: 1e-6, torch.float32: 1e-5}
_ROUNDING_HALF = 2e-2


@dataclass(frozen=True)
class CircuitValues:
    """Mean metrics over the examples: of each circuit [n_circuits], of the whole model, and with every edge ablated.

    `rounding` is how far apart two runs of the same can be in the type that the model computes in.
    """

    values: npt.NDArray[np.float64]
    clean: float
    ablated: float
    rounding: float
    n_examples: int

    @property
    def has_gap(self) -> bool:
        """Whether ablating every edge changes the metric by more than rounding."""
        return math.isfinite(self.clean - self.ablated) and abs(self.clean - self.ablated) > self.rounding

    @property
    def faithfulness(self) -> npt.NDArray[np.float64]:
        """(value - ablated) / (clean - ablated) [n_circuits]: 1 like the model, 0 like nothing; NaN without a gap."""
        if not self.has_gap:
            return np.full_like(self.values, np.nan)
        return (self.values - self.ablated) / (self.clean - self.ablated)


def evaluate_circuits(
    model: LoadedModel,
    clean: Tensor,
    corrupted: Tensor,
    circuits: Circuits,
    *,
    metric: str = "kl",
    labels: Tensor | None = None,
    scored: int = 1,
    align: str = EQUAL,
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
        align: `equal`, or `left-pad` for corrupted prompts of another length, as for `score_edges`.
        ablation: `patching`, `zero`, `mean` or `mean-positional`.
        reference: [n, pos] token ids that the means are taken over; by default the corrupted prompts.
        batch_size: pairs in one pass; by default as many as fit in memory.

    Raises:
        UsageError: shapes, types, token ids or options that can't be.
        ModelError: a model whose edges can't be told apart.
    """
    check_model(model)
    check_tokens(model, clean, "clean")
    group = Group(clean, corrupted, labels, torch.zeros(len(clean), dtype=torch.int64), scored, align)
    runner = CircuitRunner(model, ablation=ablation, batch_size=batch_size)
    around = None if reference is None else [reference]
    return runner.evaluate([group], circuits, metrics.find(metric), references=around)


class CircuitRunner:
    """Runs hard circuits of one checked model, as many in a pass as fit."""

    def __init__(self, model: LoadedModel, *, ablation: str = PATCHING, batch_size: int | None = None) -> None:
        """Raises UsageError for an unknown ablation, ModelError for a model whose edges can't be told apart."""
        check_known(ablation)
        self.model, self.ablation = model, ablation
        self.anatomy, self.memory = read_anatomy(model), Memory(model, 0, batch_size)
        self.rounds = Rounds(model, self.anatomy, self.memory, ablation)
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
        n_examples = sum(len(group.clean) for group in groups)
        if n_examples == 0:
            raise UsageError("There are no examples to run circuits on.")
        shape, done = torch.from_numpy(self.anatomy.shape.mask), 0
        # In half precision the two ends are run like the circuits, so that all of them are rounded alike.
        alike = self.model.dtype.itemsize == 2
        run = torch.cat([kept, shape[None], torch.zeros_like(shape)[None]]) if alike else kept

        def sums(batch: Batch) -> Tensor:
            nonlocal done
            n = len(batch.group.clean)

            def within(n_circuits: int) -> None:
                if progress is not None:
                    progress((done + n * n_circuits / len(run)) / n_examples)

            _run_ends(batch)
            sizes = (batch.clean_value.abs() + batch.corrupted_value.abs()).sum() / 2
            ends = torch.stack([batch.clean_value.sum(), batch.corrupted_value.sum(), sizes]).cpu().double()
            found = torch.cat([ends, self._values(batch, run, within)])
            done += n
            return found

        clean, ablated, size, *values = (
            torch.stack(self._each(groups, metric, references, sums)).sum(0) / n_examples
        ).tolist()
        if alike:
            *values, clean, ablated = values
        rounding = size * _ROUNDING.get(self.model.dtype, _ROUNDING_HALF)
        return CircuitValues(np.array(values), clean, ablated, rounding, n_examples)

    def generate(
        self,
        prompts: Tensor,
        corrupted: Tensor,
        circuit: Circuits,
        n_tokens: int,
        *,
        references: Sequence[Tensor] | None = None,
        align: str = EQUAL,
    ) -> Float[Tensor, "batch token"]:
        """What one circuit [n_edges] writes after prompts [batch, pos], greedily: ids [batch, n_tokens].

        The corrupted prompts go on with the same tokens, so that both runs stay aligned, up to the model's context;
        with the alignment `left-pad` they may have another length.
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
        group = _unlabelled(prompts, corrupted, align)
        check_group(self.model, group, kl, n_folds=1)
        if not len(prompts):
            raise UsageError("There are no prompts to go on from.")
        kept, written = self._cells(circuit[None]), prompts[:, :0]

        def next_tokens(batch: Batch) -> Tensor:
            batch.run_sources()
            return run_circuits(batch, kept)[:, -1].argmax(-1).cpu()

        for _ in range(n_tokens):
            if group.n_positions + written.shape[1] > self.model.n_context:
                break
            clean, other = (torch.cat([tokens, written], dim=1) for tokens in (prompts, corrupted))
            parts = self._each([_unlabelled(clean, other, align)], kl, references, next_tokens)
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

    def _each(
        self,
        groups: Sequence[Group],
        metric: Metric,
        references: Sequence[Tensor] | None,
        work: Callable[[Batch], Tensor],
    ) -> list[Tensor]:
        """`work` on every batch."""
        found: list[Tensor] = []
        self.rounds.each(
            groups,
            metric,
            references,
            parts=lambda group: [(0, len(group.clean))],
            work=lambda _number, _chosen, batch: found.append(work(batch)),
        )
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
                failure = self.memory.failure(error)
            if failure is not None:
                self.memory.shrink_rows(n * len(chosen))
        return torch.cat(found)


def _run_ends(batch: Batch) -> None:
    """The whole model's run of a batch, and that with every edge ablated."""
    batch.run_clean()
    batch.run_ablated()
    if batch.fixed is not None:
        batch.corrupted_value = batch.value(fully_ablated(batch))


def _unlabelled(clean: Tensor, corrupted: Tensor, align: str) -> Group:
    return Group(clean, corrupted, None, torch.zeros(len(clean), dtype=torch.int64), align=align)
