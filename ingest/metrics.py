"""What is attributed: a number per example from the logits at the scored position.

`kl`                KL(clean || run) = sum_t p_clean(t) (log p_clean(t) - log p_run(t)), in nats
`logit-difference`  logit of the answer less logit of the corrupted answer
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from circuitdb.errors import UsageError

Logits = Float[Tensor, "batch vocab"]
Labels = Int[Tensor, "batch 2"]
PerExample = Float[Tensor, " batch"]


@dataclass(frozen=True)
class Metric:
    """A metric with what its callers must know of it.

    `value(logits, clean_logits, labels)` is one number per example. `needs_labels`: it compares the two tokens of
    `labels`, answer and corrupted answer. `flat_at_clean`: its gradient at the clean run is zero by construction.
    """

    name: str
    value: Callable[[Logits, Logits, Labels | None], PerExample]
    needs_labels: bool
    flat_at_clean: bool


def kl(logits: Logits, clean_logits: Logits, labels: Labels | None = None) -> PerExample:
    """KL(clean || run) of the next-token distributions, in nats."""
    run, clean = logits.log_softmax(-1), clean_logits.log_softmax(-1)
    return (clean.exp() * (clean - run)).sum(-1)


def logit_difference(logits: Logits, clean_logits: Logits, labels: Labels | None) -> PerExample:
    """Logit of the answer (labels[:, 0]) less logit of the corrupted answer (labels[:, 1])."""
    if labels is None:
        raise UsageError("The metric logit-difference needs labels: the answer's and the corrupted answer's token ids.")
    picked = logits.gather(-1, labels)
    return picked[:, 0] - picked[:, 1]


METRICS = {
    "kl": Metric("kl", kl, needs_labels=False, flat_at_clean=True),
    "logit-difference": Metric("logit-difference", logit_difference, needs_labels=True, flat_at_clean=False),
}


def find(name: str) -> Metric:
    """The metric of that name. Raises UsageError, naming those there are."""
    if not isinstance(name, str) or name not in METRICS:
        raise UsageError(f"There is no metric {name!r}; choose one of {', '.join(METRICS)}.")
    return METRICS[name]


def scored_logits(logits: Float[Tensor, "batch pos vocab"]) -> Logits:
    """Logits at the last position, in float32 at least, so that half-precision models lose nothing in the softmax."""
    last = logits[:, -1]
    return last if last.dtype == torch.float64 else last.float()
