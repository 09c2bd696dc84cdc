"""Pairs whose prompts have unequally many tokens: the shorter stands as if padded on the left, so both end together.

Padding is never run. A masked position hands nothing to any other, so leaving it out gives what padding and masking
would, in every architecture and without their rounding: both prompts are run by themselves, each token at the position
that it has there, and the positions of the two runs are matched from the end.

An edge is ablated where both runs have a token. Where the clean run alone has one, there is nothing to put in the place
of what a source writes, so it keeps what it writes in the clean run; where the corrupted run alone has one, no target
reads.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from circuitdb.errors import UsageError

EQUAL, LEFT_PAD = ALIGNMENTS = ("equal", "left-pad")


def check_known(align: str) -> None:
    """Raises UsageError for an unknown way of aligning pairs, naming those there are."""
    if align not in ALIGNMENTS:
        raise UsageError(f"There is no alignment {align!r}; choose one of {', '.join(ALIGNMENTS)}.")


def aligned(
    corrupted: Float[Tensor, "batch pos *rest"], clean: Float[Tensor, "batch clean_pos *rest"]
) -> Float[Tensor, "batch clean_pos *rest"]:
    """What stands in the corrupted run at the positions of the clean one; the clean run's own where nothing does."""
    n_more = clean.shape[1] - corrupted.shape[1]
    return torch.cat([clean[:, :n_more], corrupted], 1) if n_more > 0 else corrupted[:, -n_more:]
