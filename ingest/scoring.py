"""Edge attribution by gradients: a score for every edge from about two forward passes and one backward pass a step.

1. Prompts' common beginning is run once (`prefix`); all passes below see only the positions after it.
2. A clean and a corrupted pass give what every source wrote (`capture`).
3. A pass for each point of the method's path (`path`) gives the gradient at every target; where a point is the clean or
   the corrupted run itself, that pass serves for both.
4. One matrix product a layer makes scores of both (`contract`), kept apart by fold.

Scores are changes of the mean metric: per-example metrics are summed and divided once by the number of examples, so
batch size and order do not matter beyond rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from circuitdb.errors import ModelError, UsageError
from circuitdb.graph import GraphShape
from circuitdb.ingest import metrics, path, prefix
from circuitdb.ingest.anatomy import read_anatomy, ungrouped
from circuitdb.ingest.capture import Hooks, Sources, TargetGradients, hooks, run
from circuitdb.ingest.contract import contract, differences
from circuitdb.ingest.memory import batch_size_for
from circuitdb.ingest.metrics import Metric
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.path import Point
from circuitdb.ingest.preflight import preflight

Progress = Callable[[float], None]


@dataclass(frozen=True)
class EdgeScores:
    """A soft circuit: `scores` [n_edges] and `folds` [n_folds, n_edges], float32, in the order of `shape.edge_names`.

    A score is the change of the mean metric when the edge is ablated, to first order (positive: the metric rises). Fold
    scores are the same over each fold's examples alone. `metric_clean` and `metric_corrupted` are means over examples.
    """

    shape: GraphShape
    scores: npt.NDArray[np.float32]
    folds: npt.NDArray[np.float32]
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
    steps: int = 5,
    grid: str = "right",
    metric: str = "kl",
    labels: Tensor | None = None,
    folds: int = 1,
    batch_size: int | None = None,
    share_prefix: bool = True,
    progress: Progress | None = None,
) -> EdgeScores:
    """Score every edge of the model on pairs of token ids.

    Args:
        model: from `load_model`.
        clean: [batch, pos] int64 token ids.
        corrupted: [batch, pos]; row i is the partner of row i of `clean`, position by position.
        method: `eap-ig` or `eap`.
        steps: points of the integration grid of eap-ig.
        grid: `right` or `left`.
        metric: `kl` or `logit-difference`, at the last position.
        labels: [batch, 2], token ids of the answer and of the corrupted answer, for logit-difference.
        folds: disjoint parts of the pairs (every folds-th) whose scores are kept apart as well.
        batch_size: pairs in one pass; by default as many as fit in memory.
        share_prefix: compute what all prompts begin with only once; exact.
        progress: called with the share of the work done, 0..1.

    Returns:
        EdgeScores: one float32 score per edge.

    Raises:
        UsageError: shapes, types, token ids or options that can't be.
        ModelError: a model whose edges can't be scored right; checked once per model, before any work.
    """
    if not isinstance(model, LoadedModel):
        raise UsageError(f"The model is of type {type(model).__name__}; give one from load_model.")
    if not isinstance(clean, Tensor):
        raise UsageError(f"The clean tokens are of type {type(clean).__name__}; give a torch tensor.")
    scorer = Scorer(model, method=method, steps=steps, grid=grid, metric=metric, folds=folds, batch_size=batch_size,
                    share_prefix=share_prefix)  # fmt: skip
    return scorer.score([Group(clean, corrupted, labels, torch.arange(len(clean)) % folds)], progress)


@dataclass(frozen=True)
class Group:
    """Pairs of one length: token ids [batch, pos], labels [batch, 2] or None, and the fold of each pair [batch].

    Plain tensors, since `Scorer.score` checks them itself and says in a sentence what is wrong.
    """

    clean: Tensor
    corrupted: Tensor
    labels: Tensor | None
    fold: Tensor


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
        share_prefix: bool = True,
    ) -> None:
        """Raises UsageError for impossible options, ModelError for a model that can't be scored right."""
        if not isinstance(folds, int) or folds < 1:
            raise UsageError(f"The pairs need a whole number of folds, at least one fold, not {folds!r}.")
        if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 1):
            raise UsageError(f"A batch needs a whole number of pairs, at least one pair, not {batch_size!r}.")
        self.model, self.n_folds, self.batch_size, self.share_prefix = model, folds, batch_size, share_prefix
        self.metric = metrics.find(metric)
        self.points = path.points(method, steps, grid, self.metric)
        self.anatomy = read_anatomy(model)
        with _plain(model):
            preflight(model, self.anatomy)

    def score(self, groups: Sequence[Group], progress: Progress | None = None) -> EdgeScores:
        """Score all groups together. Raises UsageError for bad token ids, ModelError for a model that gives NaN."""
        with _plain(self.model):
            return self._score(groups, progress)

    def _score(self, groups: Sequence[Group], progress: Progress | None) -> EdgeScores:
        for group in groups:
            _check(self.model, group, self.metric, self.n_folds)
        n_examples = sum(len(group.clean) for group in groups)
        if n_examples == 0:
            raise UsageError("There are no examples to score.")
        if n_examples < self.n_folds:
            raise UsageError(f"{n_examples} pairs can't be split into {self.n_folds} folds.")
        shape = self.anatomy.shape
        sums = torch.zeros(self.n_folds, shape.n_sources, shape.n_targets, dtype=torch.float64)
        counts = torch.zeros(self.n_folds, dtype=torch.int64)
        totals = torch.zeros(2, dtype=torch.float64)
        done, largest = 0, 0
        with ungrouped(self.anatomy):
            for group in groups:
                start = prefix.shared_length(group.clean, group.corrupted) if self.share_prefix else 0
                cached = prefix.compute(self.model, group.clean[0, :start].to(self.model.device))
                size = self.batch_size or batch_size_for(
                    self.model, group.clean.shape[1] - start, len(self.points), len(group.clean)
                )
                # Examples of one fold lie together, so that a fold is a range of rows.
                order = torch.argsort(group.fold, stable=True)
                for chosen in order.split(size):
                    batch = _Batch(self, cached, _take(group, chosen, self.model.device), totals)
                    for fold, scores in batch.scores().items():
                        sums[fold] += scores
                    counts += torch.bincount(group.fold[chosen], minlength=self.n_folds)
                    done += len(chosen)
                    largest = max(largest, len(chosen))
                    if progress is not None:
                        progress(done / n_examples)
        mask = torch.from_numpy(shape.mask)
        whole = (sums.sum(0) / n_examples)[mask].float().numpy()
        parts = (sums / counts[:, None, None])[:, mask].float().numpy()
        clean, corrupted = (totals / n_examples).tolist()
        return EdgeScores(shape, whole, parts, n_examples, largest, clean, corrupted)


@contextmanager
def _plain(model: LoadedModel) -> Iterator[None]:
    """No modes of the caller: inference mode would forbid gradients, autocast would round them."""
    with torch.inference_mode(False), torch.autocast(model.device.type, enabled=False):
        yield


class _Batch:
    """The passes over one batch of pairs."""

    def __init__(self, scorer: Scorer, cached: prefix.Prefix, group: Group, totals: Tensor) -> None:
        self.scorer, self.model, self.anatomy = scorer, scorer.model, scorer.anatomy
        self.cached, self.group, self.totals = cached, group, totals
        self.targets: TargetGradients | None = None
        self.step = 0

    def scores(self) -> dict[int, Float[Tensor, "source target"]]:
        """Summed over the batch's examples, by fold."""
        points = {point.position: point for point in self.scorer.points}
        clean, clean_logits = self._ends(self.group.clean, points.pop(1.0, None), None)
        corrupted, _ = self._ends(self.group.corrupted, points.pop(0.0, None), clean_logits)
        for point in points.values():
            between = torch.lerp(corrupted.embedding, clean.embedding, point.position)
            with hooks() as held:
                self._gradient_pass(held, self.group.clean, point, clean_logits, between)
        targets = self.targets
        if targets is None:
            raise AssertionError("a path has at least one point")
        sources = differences(self.anatomy, clean, corrupted, targets.logits.dtype)
        folds, counts = torch.unique_consecutive(self.group.fold, return_counts=True)
        rows = sources.shape[1] // len(self.group.clean)
        stops = (counts.cumsum(0) * rows).tolist()
        parts = list(zip([0, *stops[:-1]], stops, strict=True))
        return dict(zip(folds.tolist(), contract(self.anatomy, sources, targets, parts), strict=True))

    def _ends(self, tokens: Tensor, point: Point | None, clean_logits: Tensor | None) -> tuple[Sources, Tensor]:
        """The clean or corrupted run: its sources and logits, with gradients if the path has this point."""
        with hooks() as held:
            sources = Sources.watch(self.anatomy, held)
            if point is not None:
                logits = self._gradient_pass(held, tokens, point, clean_logits, None)
            else:
                with torch.no_grad():
                    logits = run(self.model, tokens, self.cached)
        if not bool(torch.isfinite(logits).all()):
            raise ModelError("The model's logits are not finite on these prompts; try --dtype float32.")
        reference = logits if clean_logits is None else clean_logits
        total = self.scorer.metric.value(logits, reference, self.group.labels).sum().cpu()
        self.totals[0 if clean_logits is None else 1] += total
        return sources, logits

    def _gradient_pass(
        self, held: Hooks, tokens: Tensor, point: Point, clean_logits: Tensor | None, embedding: Tensor | None
    ) -> Tensor:
        """Forward and backward with the targets watched; the metric is summed over the batch, not averaged."""

        def leaf(own: Tensor) -> Tensor:
            return (own if embedding is None else embedding).detach().requires_grad_(True)

        if self.targets is None:
            self.targets = self._new_targets(tokens)
        held.replace(self.anatomy.embed, leaf)
        self.targets.watch(held, self.step, point.weight)
        self.step += 1
        with torch.enable_grad():
            logits = run(self.model, tokens, self.cached)
            reference = logits.detach() if clean_logits is None else clean_logits
            self.scorer.metric.value(logits, reference, self.group.labels).sum().backward()
        return logits.detach()

    def _new_targets(self, tokens: Tensor) -> TargetGradients:
        rows = tokens.shape[0] * (tokens.shape[1] - self.cached.length)
        like = torch.empty(0, self.model.record.d_model, dtype=self.model.dtype, device=self.model.device)
        biases = [layer.reading_biases() for layer in self.anatomy.layers]
        return TargetGradients(self.anatomy, rows, len(self.scorer.points), biases, like)


def _take(group: Group, chosen: Tensor, device: torch.device) -> Group:
    labels = None if group.labels is None else group.labels[chosen].to(device)
    return Group(group.clean[chosen].to(device), group.corrupted[chosen].to(device), labels, group.fold[chosen])


def _check(model: LoadedModel, group: Group, metric: Metric, n_folds: int) -> None:
    for name, tokens in (("clean", group.clean), ("corrupted", group.corrupted)):
        if not isinstance(tokens, Tensor):
            raise UsageError(f"The {name} tokens are of type {type(tokens).__name__}; give a torch tensor.")
        if tokens.dtype != torch.int64 or tokens.ndim != 2 or tokens.shape[1] == 0:
            raise UsageError(
                f"The {name} tokens are {tokens.dtype} of shape {tuple(tokens.shape)}; they must be int64 [batch, pos]."
            )
        if tokens.numel() and not (int(tokens.min()) >= 0 and int(tokens.max()) < model.n_vocab):
            raise UsageError(f"The {name} tokens have ids outside the model's vocabulary of {model.n_vocab:,}.")
    if group.clean.shape != group.corrupted.shape:
        raise UsageError(
            f"The clean tokens have shape {tuple(group.clean.shape)}, the corrupted {tuple(group.corrupted.shape)}; "
            "every pair must have equal length."
        )
    if group.clean.shape[1] > model.n_context:
        raise UsageError(f"Prompts of {group.clean.shape[1]} tokens exceed the model's context of {model.n_context}.")
    if metric.needs_labels and group.labels is None:
        raise UsageError(
            f"The metric {metric.name} needs labels: [batch, 2] ids of the answer and the corrupted answer."
        )
    if group.labels is not None:
        _check_labels(model, group.labels, len(group.clean), metric)
    if group.fold.shape != (len(group.clean),) or (len(group.fold) and int(group.fold.max()) >= n_folds):
        raise UsageError(f"Every pair needs a fold from 0 to {n_folds - 1}.")


def _check_labels(model: LoadedModel, labels: Tensor, n: int, metric: Metric) -> None:
    if not isinstance(labels, Tensor) or labels.dtype != torch.int64 or tuple(labels.shape) != (n, 2):
        what = f"{labels.dtype} of shape {tuple(labels.shape)}" if isinstance(labels, Tensor) else type(labels).__name__
        raise UsageError(f"The labels are {what}; they must be an int64 tensor [{n}, 2].")
    if labels.numel() and not (int(labels.min()) >= 0 and int(labels.max()) < model.n_vocab):
        raise UsageError(f"The labels have ids outside the model's vocabulary of {model.n_vocab:,}.")
    equal = (labels[:, 0] == labels[:, 1]).nonzero()
    if metric.needs_labels and len(equal):
        raise UsageError(f"The labels of pair {int(equal[0])} are one token; answer and corrupted answer must differ.")
