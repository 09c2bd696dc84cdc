"""What is attributed: a number per example from the logits at the scored positions, summed over them.

`kl`                KL(clean || run) = sum_t p_clean(t) (log p_clean(t) - log p_run(t)), in nats
`logit-difference`  logit of the answer less logit of the corrupted answer, or less the mean logit of a given set
`prob-difference`   probability of the answer less that of the corrupted answer, or less the sum over a given set
`nll`               -log p_run(answer), in nats: over all the answer's tokens, the answer's negative log-likelihood
`kl-published`      what the code published with Sun (2025) computes in the place of KL: probabilities are passed where
                    their logarithms belong, sum_t exp(p_clean(t)) (p_clean(t) - log p_run(t)). It is no divergence: it
                    is not 0 for equal distributions. It is here so that figures made with that code can be compared.
                    It is of the size of the vocabulary, so it is computed in float64.

A metric of one's own is a function of the same three arguments, given to `register`.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from circuitdb.errors import UsageError

Logits = Float[Tensor, "batch scored vocab"]
Labels = Int[Tensor, "batch scored choice"]
PerExample = Float[Tensor, " batch"]
Value = Callable[[Tensor, Tensor, Tensor | None], Tensor]


@dataclass(frozen=True)
class Metric:
    """A metric with what its callers must know of it.

    `value(logits, clean_logits, labels)` is one number per example, from logits [batch, scored, vocab] of the run and
    of the clean run, and labels [batch, scored, choice]: token ids of the answer, then of what it is compared with; -1
    is no token. `needs_answer`, `needs_contrast`: it reads the first, or the others. `flat_at_clean`: its gradient at
    the clean run is zero by construction. `higher_is_better`: ablating an edge that matters lowers it. `source` is a
    digest of the code of a user's own metric.
    """

    name: str
    value: Value
    needs_answer: bool = False
    needs_contrast: bool = False
    flat_at_clean: bool = False
    higher_is_better: bool = False
    source: str | None = None

    @property
    def needs_labels(self) -> bool:
        """Whether it reads any label."""
        return self.needs_answer or self.needs_contrast


def kl(logits: Logits, clean_logits: Logits, labels: Labels | None = None) -> PerExample:
    """KL(clean || run) of the next-token distributions, in nats."""
    run, clean = logits.log_softmax(-1), clean_logits.log_softmax(-1)
    return (clean.exp() * (clean - run)).sum((-2, -1))


def kl_published(logits: Logits, clean_logits: Logits, labels: Labels | None = None) -> PerExample:
    """The loss of the paper's released code; no divergence, see above."""
    if logits.device.type != "mps":  # which has no float64
        logits, clean_logits = logits.double(), clean_logits.double()
    clean = clean_logits.softmax(-1)
    return (clean.exp() * (clean - logits.log_softmax(-1))).sum((-2, -1))


def logit_difference(logits: Logits, clean_logits: Logits, labels: Labels) -> PerExample:
    """Logit of the answer (the first label) less the mean logit of the other labels; 0 where there is no other."""
    picked, given = _pick(logits, labels)
    n_others = given[..., 1:].sum(-1)
    return ((picked[..., 0] - picked[..., 1:].sum(-1) / n_others.clamp_min(1)) * n_others.clamp_max(1)).sum(-1)


def prob_difference(logits: Logits, clean_logits: Logits, labels: Labels) -> PerExample:
    """Probability of the answer (the first label) less that of all others together; 0 where there is no other."""
    picked, given = _pick(logits.softmax(-1), labels)
    return ((picked[..., 0] - picked[..., 1:].sum(-1)) * given[..., 1:].sum(-1).clamp_max(1)).sum(-1)


def nll(logits: Logits, clean_logits: Logits, labels: Labels) -> PerExample:
    """Negative logarithm of the probability of the answer (the first label), in nats."""
    picked, _ = _pick(logits.log_softmax(-1), labels[..., :1])
    return -picked.sum((-2, -1))


def _pick(
    values: Logits, labels: Labels
) -> tuple[Float[Tensor, "batch scored choice"], Int[Tensor, "batch scored choice"]]:
    """Values at the labels, 0 where there is none, and 1 or 0 for whether there is."""
    given = (labels >= 0).long()
    return values.gather(-1, labels.clamp_min(0)) * given, given


def _labelled(value: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Value:
    """A value that can't be had without labels."""

    def checked(logits: Tensor, clean_logits: Tensor, labels: Tensor | None) -> Tensor:
        if labels is None:
            raise UsageError("This metric needs labels: token ids of the answer and of what it is compared with.")
        return value(logits, clean_logits, labels)

    return checked


METRICS = {
    metric.name: metric
    for metric in (
        Metric("kl", kl, flat_at_clean=True),
        Metric("logit-difference", _labelled(logit_difference), needs_answer=True, needs_contrast=True,
               higher_is_better=True),
        Metric("prob-difference", _labelled(prob_difference), needs_answer=True, needs_contrast=True,
               higher_is_better=True),
        Metric("nll", _labelled(nll), needs_answer=True),
        Metric("kl-published", kl_published),
    )
}  # fmt: skip
_BUILT_IN = frozenset(METRICS)


def register(
    name: str,
    value: Value,
    *,
    needs_answer: bool = False,
    needs_contrast: bool = False,
    flat_at_clean: bool = False,
    higher_is_better: bool = False,
    version: str | None = None,
) -> Metric:
    """Make a metric of one's own known by a name, in this process.

    Args:
        name: what circuits scored with it are stored under.
        value: function of `logits` and `clean_logits` [batch, scored, vocab] and `labels` [batch, scored, choice] (or
            None) that returns one number per example, [batch], differentiable in `logits`. A batch may hold an example
            several times, so its size says nothing.
        needs_answer: it reads `labels[..., 0]`, the answer.
        needs_contrast: it reads `labels[..., 1:]`, what the answer is compared with.
        flat_at_clean: its gradient at the clean run is zero by construction, as that of KL.
        higher_is_better: ablating an edge that matters lowers it, as it lowers a logit difference.
        version: what tells this metric from others of its name. By default a digest of the function's text and of the
            values it closes over, which tells nothing of other functions that it calls: with those, give a version.

    Raises:
        UsageError: the name is empty or that of a built-in metric, `value` can't be called, or it is no plain function
            and has no version.
    """
    if not isinstance(name, str) or not name.strip() or name in _BUILT_IN:
        raise UsageError(f"A metric can't be called {name!r}; built-in ones are {', '.join(sorted(_BUILT_IN))}.")
    if not callable(value):
        raise UsageError(f"The metric {name} is of type {type(value).__name__}; give a function.")
    if needs_contrast and not needs_answer:
        raise UsageError(f"The metric {name} compares with the answer, so it needs the answer too.")
    flags = (needs_answer, needs_contrast, flat_at_clean, higher_is_better)
    source = hashlib.sha256(repr((_identity(name, value) if version is None else version, flags)).encode()).hexdigest()
    metric = Metric(name, value, *flags, source)
    METRICS[name] = metric
    return metric


def find(name: str) -> Metric:
    """The metric of that name. Raises UsageError, naming those there are."""
    if not isinstance(name, str) or name not in METRICS:
        raise UsageError(
            f"There is no metric {name!r}; choose one of {', '.join(METRICS)}, or register it if it is your own."
        )
    return METRICS[name]


def _identity(name: str, value: Value) -> tuple[str, ...]:
    """A function's text (its byte code, where the text is not to be had), with its defaults and what it closes over."""
    if not inspect.isfunction(value):
        raise UsageError(f"The metric {name} is no plain function; say which it is with version=, such as version='1'.")
    try:
        text = inspect.getsource(value)
    except OSError:
        text = repr((value.__code__.co_code, value.__code__.co_consts))
    held = [repr(cell.cell_contents) for cell in value.__closure__ or ()]
    return (text, repr(value.__defaults__), repr(value.__kwdefaults__), *held)


def evaluate(metric: Metric, logits: Tensor, clean_logits: Tensor, labels: Tensor | None) -> Tensor:
    """One number per example, checked, since a metric may be a user's own. Raises UsageError."""
    if metric.source is not None:  # a user's own may change what it is given
        logits, clean_logits = logits.clone(), clean_logits.clone()
    found = metric.value(logits, clean_logits, labels)
    if not isinstance(found, torch.Tensor) or found.shape != logits.shape[:1] or not found.is_floating_point():
        what = f"{found.dtype} of shape {tuple(found.shape)}" if isinstance(found, torch.Tensor) else type(found)
        raise UsageError(f"The metric {metric.name} gave {what}; it must give one real number for each example.")
    return found


def require_finite(metric: Metric, value: Tensor) -> Tensor:
    """The values, if all are finite. Raises UsageError: what is scored by a metric must have one on every example."""
    if not bool(torch.isfinite(value).all()):
        raise UsageError(f"The metric {metric.name} is not finite on every example; it can't be attributed.")
    return value
