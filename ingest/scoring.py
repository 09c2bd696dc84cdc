"""Edge scores of a model on pairs of clean and corrupted prompts: batches, folds, and a method for each batch.

Scores are changes of the mean metric: per-example metrics are summed and divided once by the number of examples, so
batch size and order do not matter beyond rounding.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from circuitdb.errors import UsageError
from circuitdb.graph import GraphShape
from circuitdb.ingest import methods, metrics
from circuitdb.ingest.activation_scores import activation_scores
from circuitdb.ingest.alignment import EQUAL
from circuitdb.ingest.anatomy import read_anatomy
from circuitdb.ingest.batch import Batch, Group
from circuitdb.ingest.checks import check_group, check_model, check_tokens
from circuitdb.ingest.circuit_run import fully_ablated
from circuitdb.ingest.exact_scores import exact_scores
from circuitdb.ingest.memory import Memory
from circuitdb.ingest.models import LoadedModel, plain_modes
from circuitdb.ingest.path_scores import path_scores
from circuitdb.ingest.preflight import preflight
from circuitdb.ingest.rounds import Rounds

Progress = Callable[[float], None]


@dataclass(frozen=True)
class EdgeScores:
    """A soft circuit: `scores` [n_edges] and `folds` [n_folds, n_edges], float32, in the order of `shape.edge_names`.

    A score is the change of the mean metric when the edge is ablated (positive: the metric rises), to first order for
    all methods but `exact`. Fold scores are the same over each fold's examples alone, `by_example` [n_examples,
    n_edges] over each example alone, in the order they were given, or None. `metric_clean` and `metric_corrupted` are
    means over examples of the metric of the whole model, and with every edge ablated.
    """

    shape: GraphShape
    scores: npt.NDArray[np.float32]
    folds: npt.NDArray[np.float32]
    by_example: npt.NDArray[np.float32] | None
    n_examples: int
    batch_size: int
    metric_clean: float
    metric_corrupted: float

    @property
    def names(self) -> list[str]:
        """Names of the edges, in the order of the scores."""
        return self.shape.edge_names

    @property
    def n_nonfinite(self) -> int:
        """Scores that are not finite."""
        return int(np.count_nonzero(~np.isfinite(self.scores)))


def score_edges(
    model: LoadedModel,
    clean: Tensor,
    corrupted: Tensor,
    *,
    method: str = "eap-ig",
    steps: int | None = None,
    grid: str | None = None,
    ablation: str = "patching",
    reference: Tensor | None = None,
    metric: str = "kl",
    labels: Tensor | None = None,
    scored: int = 1,
    align: str = EQUAL,
    folds: int = 1,
    by_example: bool = False,
    edges: Sequence[int] | npt.NDArray[np.int64] | None = None,
    batch_size: int | None = None,
    share_prefix: bool = True,
    progress: Progress | None = None,
) -> EdgeScores:
    """Score every edge of the model on pairs of token ids.

    Args:
        model: from `load_model`.
        clean: [batch, pos] int64 token ids.
        corrupted: [batch, pos]; row i is the partner of row i of `clean`, position by position.
        method: `eap-ig`, `eap`, `clean-corrupted`, `eap-ig-activations` or `exact`.
        steps: points of the integration grid, 5 by default.
        grid: `right` (the default), `left`, `midpoint` or `gauss-legendre`.
        ablation: `patching`, `zero`, `mean` or `mean-positional`.
        reference: [n, pos] token ids that the means are taken over; by default the corrupted prompts.
        metric: `kl`, `logit-difference`, `prob-difference`, `nll`, `kl-published`, or one that you registered.
        labels: [batch, choice] or [batch, scored, choice] token ids: the answer, then what it is compared with (the
            corrupted answer, or a set); -1 is no token.
        scored: how many of the last positions the metric is summed over.
        align: `equal`, or `left-pad` for corrupted prompts of another length, whose positions are matched from the end.
        folds: disjoint parts of the pairs (every folds-th) whose scores are kept apart as well.
        by_example: keep each example's scores as well.
        edges: ids of the edges to patch, for `exact` alone; the others score NaN.
        batch_size: pairs in one pass; by default as many as fit in memory.
        share_prefix: compute what all prompts begin with only once; exact.
        progress: called with the share of the work done, 0..1.

    Returns:
        EdgeScores: one float32 score per edge.

    Raises:
        UsageError: shapes, types, token ids or options that can't be.
        ModelError: a model whose edges can't be scored right; checked once per model, before any work.
    """
    check_model(model)
    check_tokens(model, clean, "clean")
    scorer = Scorer(model, method=method, steps=steps, grid=grid, ablation=ablation, metric=metric, folds=folds,
                    by_example=by_example, batch_size=batch_size, share_prefix=share_prefix, edges=edges)  # fmt: skip
    group = Group(clean, corrupted, labels, torch.arange(len(clean)) % folds, scored, align)
    return scorer.score([group], progress, references=None if reference is None else [reference])


class Scorer:
    """A method with its options, bound to a checked model; scores pairs of different lengths as one circuit."""

    def __init__(
        self,
        model: LoadedModel,
        *,
        method: str,
        steps: int | None,
        grid: str | None,
        metric: str,
        folds: int,
        batch_size: int | None,
        ablation: str = methods.PATCHING,
        by_example: bool = False,
        share_prefix: bool = True,
        edges: Sequence[int] | npt.NDArray[np.int64] | None = None,
    ) -> None:
        """Raises UsageError for impossible options, ModelError for a model that can't be scored right."""
        if isinstance(folds, bool) or not isinstance(folds, int) or folds < 1:
            raise UsageError(f"The pairs need a whole number of folds, at least one fold, not {folds!r}.")
        self.model, self.n_folds, self.by_example = model, folds, by_example
        self.metric, self.method, self.ablation = metrics.find(metric), methods.find(method), ablation
        methods.check_ablation(self.method, ablation)
        self.points = methods.points(self.method, *methods.with_defaults(self.method, steps, grid), self.metric)
        self.anatomy = read_anatomy(model)
        model.notes = self.anatomy.notes
        self.edges = _edge_mask(self.anatomy.shape, self.method, edges)
        self.memory = Memory(model, len(self.points), batch_size)
        self.rounds = Rounds(model, self.anatomy, self.memory, ablation, share_prefix=share_prefix)
        preflight(model, self.anatomy)

    def probe(self, n_edges: int) -> Scorer:
        """The same without folds and, for exact, of only so many edges spread evenly: for measuring its speed."""
        few = copy.copy(self)
        few.n_folds, few.by_example = 1, False
        if self.method.name == "exact":
            ids = np.linspace(0, self.anatomy.shape.n_edges - 1, min(n_edges, self.anatomy.shape.n_edges)).astype(int)
            few.edges = _edge_mask(self.anatomy.shape, self.method, np.unique(ids))
        return few

    def score(
        self,
        groups: Sequence[Group],
        progress: Progress | None = None,
        *,
        references: Sequence[Tensor] | None = None,
    ) -> EdgeScores:
        """Score all groups together; `references` are prompts that means are taken over.

        Raises UsageError for bad token ids, ModelError for a model that gives NaN or a pair that doesn't fit in memory.
        """
        for group in groups:
            check_group(self.model, group, self.metric, self.n_folds)
        n_examples = sum(len(group.clean) for group in groups)
        if n_examples == 0:
            raise UsageError("There are no examples to score.")
        if n_examples < self.n_folds:
            raise UsageError(f"{n_examples} pairs can't be split into {self.n_folds} folds.")
        with plain_modes(self.model):
            tally = _Tally(self, groups, n_examples, progress or (lambda _share: None))

            def work(number: int, chosen: Tensor, batch: Batch) -> None:
                tally.add(number, chosen, batch, self._scores(tally, batch))

            self.rounds.each(groups, self.metric, references, tally.parts, work)
            return tally.result()

    def _scores(self, tally: _Tally, batch: Batch) -> Float[Tensor, "part source target"]:
        """Scores of one batch, its runs made."""
        n = len(batch.group.clean)

        def progress(share: float) -> None:
            tally.progress((tally.n_done + share * n) / tally.n_examples)

        if self.method.name == "exact":
            rows = self.memory.exact_rows(batch.n_positions, batch.group.n_scored)
            scores = exact_scores(batch, self.edges, rows, progress)
        elif self.method.name == "eap-ig-activations":
            scores = activation_scores(batch, self.points, progress)
        else:
            scores = path_scores(batch, self.points)
        if batch.fixed is not None:
            batch.corrupted_value = batch.value(fully_ablated(batch))
        return scores


class _Tally:
    """Sums over the batches done so far."""

    def __init__(self, scorer: Scorer, groups: Sequence[Group], n_examples: int, progress: Progress) -> None:
        shape = scorer.anatomy.shape
        self.shape, self.n_folds, self.n_examples, self.progress = shape, scorer.n_folds, n_examples, progress
        self.mask, self.unscored = torch.from_numpy(shape.mask), shape.mask & ~scorer.edges
        self.sums = torch.zeros(scorer.n_folds, shape.n_sources, shape.n_targets, dtype=torch.float64)
        self.counts = torch.zeros(scorer.n_folds, dtype=torch.int64)
        self.totals = torch.zeros(2, dtype=torch.float64)
        self.starts = np.cumsum([0, *(len(group.clean) for group in groups)])
        self.by_example = np.zeros((n_examples, shape.n_edges), np.float32) if scorer.by_example else None
        self.n_done, self.largest = 0, 0

    def parts(self, group: Group) -> list[tuple[int, int]]:
        """Ranges of a batch's examples that are kept apart: its folds, or each example."""
        if self.by_example is not None:
            return [(i, i + 1) for i in range(len(group.clean))]
        _, counts = torch.unique_consecutive(group.fold, return_counts=True)
        stops = counts.cumsum(0).tolist()
        return list(zip([0, *stops[:-1]], stops, strict=True))

    def add(self, number: int, chosen: Tensor, batch: Batch, scores: Tensor) -> None:
        """A batch's scores, by part."""
        folds = batch.group.fold
        for part, (start, _stop) in enumerate(batch.parts):
            self.sums[int(folds[start])] += scores[part]
        if self.by_example is not None:
            rows = int(self.starts[number]) + chosen.numpy()
            self.by_example[rows] = scores[:, self.mask].float().numpy()
        self.counts += torch.bincount(folds, minlength=self.n_folds)
        self.totals += torch.stack([batch.clean_value.sum(), batch.corrupted_value.sum()]).cpu().double()
        self.n_done += len(chosen)
        self.largest = max(self.largest, len(chosen))
        self.progress(self.n_done / self.n_examples)

    def result(self) -> EdgeScores:
        """The means."""
        unscored = self.unscored[self.shape.mask]
        whole = (self.sums.sum(0) / self.n_examples)[self.mask].float().numpy()
        parts = (self.sums / self.counts[:, None, None])[:, self.mask].float().numpy()
        for scores in (whole, parts, self.by_example):
            if scores is not None:
                scores[..., unscored] = np.nan
        clean, corrupted = (self.totals / self.n_examples).tolist()
        return EdgeScores(self.shape, whole, parts, self.by_example, self.n_examples, self.largest, clean, corrupted)


def _edge_mask(
    shape: GraphShape, method: methods.Method, edges: Sequence[int] | npt.NDArray[np.int64] | None
) -> npt.NDArray[np.bool_]:
    """[source, target]: the edges to score. Raises UsageError for ids that are none, or where all must be scored."""
    if edges is None:
        return shape.mask
    if method.name != "exact":
        raise UsageError(f"{method.name} scores all edges at once; only exact can be asked for some of them.")
    try:
        ids = np.asarray(edges)
    except ValueError:  # lists of unequal length
        ids = np.empty(0)
    if ids.ndim != 1 or ids.dtype.kind not in "iu" or not len(ids):
        raise UsageError("The edges to patch must be a list of edge ids.")
    if ids.min() < 0 or ids.max() >= shape.n_edges:
        raise UsageError(f"The edges to patch must be ids from 0 to {shape.n_edges - 1:,}.")
    mask = np.zeros_like(shape.mask)
    mask[shape.edge_sources[ids], shape.edge_targets[ids]] = True
    return mask
