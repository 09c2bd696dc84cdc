"""Whether pairs can be scored at all: types, shapes, token ids, labels, folds; one sentence for what is wrong."""

from __future__ import annotations

from torch import Tensor, int64

from circuitdb.errors import UsageError
from circuitdb.ingest.alignment import LEFT_PAD, check_known
from circuitdb.ingest.batch import Group
from circuitdb.ingest.metrics import Metric
from circuitdb.ingest.models import LoadedModel


def check_group(model: LoadedModel, group: Group, metric: Metric, n_folds: int) -> None:
    """Raises UsageError for the first thing that is wrong with a group of pairs."""
    for name, tokens in (("clean", group.clean), ("corrupted", group.corrupted)):
        check_tokens(model, tokens, name)
    check_known(group.align)
    if len(group.clean) != len(group.corrupted) or (group.padded and group.align != LEFT_PAD):
        raise UsageError(
            f"The clean tokens have shape {tuple(group.clean.shape)}, the corrupted {tuple(group.corrupted.shape)}; "
            f"every pair must have equal length{' (or align=' + repr(LEFT_PAD) + ')' if group.padded else ''}."
        )
    scored, n_both = group.n_scored, min(group.clean.shape[1], group.corrupted.shape[1])
    if isinstance(scored, bool) or not isinstance(scored, int) or not 1 <= scored <= n_both:
        raise UsageError(f"Of {n_both} positions a whole number from 1 up to all can be scored, not {scored!r}.")
    if metric.needs_labels and group.labels is None:
        both = "[batch, 2] ids of the answer and the corrupted answer"
        what = both if metric.needs_contrast else "[batch, 1] ids of the answer"
        raise UsageError(f"The metric {metric.name} needs labels: {what}.")
    if group.labels is not None:
        _check_labels(model, group.labels, group, metric)
    if group.fold.shape != (len(group.clean),) or (len(group.fold) and int(group.fold.max()) >= n_folds):
        raise UsageError(f"Every pair needs a fold from 0 to {n_folds - 1}.")


def check_model(model: object) -> None:
    """Raises UsageError for anything that `load_model` did not give."""
    if not isinstance(model, LoadedModel):
        raise UsageError(f"The model is of type {type(model).__name__}; give one from load_model.")


def check_tokens(model: LoadedModel, tokens: object, name: str) -> None:
    """Raises UsageError unless `tokens` are ids [batch, pos] that the model can take."""
    if not isinstance(tokens, Tensor):
        raise UsageError(f"The {name} tokens are of type {type(tokens).__name__}; give a torch tensor.")
    if tokens.dtype != int64 or tokens.ndim != 2 or tokens.shape[1] == 0:
        raise UsageError(
            f"The {name} tokens are {tokens.dtype} of shape {tuple(tokens.shape)}; they must be int64 [batch, pos]."
        )
    if tokens.numel() and not (int(tokens.min()) >= 0 and int(tokens.max()) < model.n_vocab):
        raise UsageError(f"The {name} tokens have ids outside the model's vocabulary of {model.n_vocab:,}.")
    if tokens.shape[1] > model.n_context:
        raise UsageError(f"Prompts of {tokens.shape[1]} tokens exceed the model's context of {model.n_context}.")


def _check_labels(model: LoadedModel, labels: Tensor, group: Group, metric: Metric) -> None:
    n, scored = len(group.clean), group.n_scored
    wanted = [(n,), (n, scored)] if scored == 1 else [(n, scored)]
    choices = "2 or more" if metric.needs_contrast else "1 or more"
    least = 2 if metric.needs_contrast else 1
    right = isinstance(labels, Tensor) and labels.dtype == int64 and labels.ndim >= 2
    if not right or tuple(labels.shape[:-1]) not in wanted or labels.shape[-1] < least:
        what = f"{labels.dtype} of shape {tuple(labels.shape)}" if isinstance(labels, Tensor) else type(labels).__name__
        shape = f"[{n}, 2]" if scored == 1 else f"[{n}, {scored}, 2]"
        raise UsageError(f"The labels are {what}; they must be an int64 tensor {shape} ({choices} choices).")
    if labels.numel() and not (int(labels.min()) >= -1 and int(labels.max()) < model.n_vocab):
        raise UsageError(f"The labels have ids outside the model's vocabulary of {model.n_vocab:,}.")
    if not metric.needs_labels:
        return
    by_pair = labels.reshape(n, scored, labels.shape[-1])
    if metric.needs_answer and bool((by_pair[..., 0] < 0).all(1).any()):
        raise UsageError("The labels of a pair have no answer at any scored position.")
    if not metric.needs_contrast:
        return
    ordered = by_pair[..., 1:].sort(-1).values
    if bool(((ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] >= 0)).any()):
        raise UsageError("The labels of a pair name one token twice among those that the answer is compared with.")
    same = ((by_pair[..., :1] == by_pair[..., 1:]) | (by_pair[..., 1:] < 0)).all(2).all(1).nonzero()
    if len(same):
        raise UsageError(f"The labels of pair {int(same[0])} are one token; answer and corrupted answer must differ.")
