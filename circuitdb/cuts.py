"""Hard circuits from scores: the strongest edges, with ties broken by edge id.

An edge without a score comes last, so that the whole graph can still be kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from circuitdb.errors import UsageError


@dataclass(frozen=True)
class Cut:
    """The edges that are kept, [n_edges] booleans, and how many that were not tie with the weakest of them."""

    kept: npt.NDArray[np.bool_]
    n_tied: int


def strongest(strength: npt.NDArray[np.floating], n: int) -> Cut:
    """The n edges of largest strength [n_edges]. Raises UsageError for an n that is not from 0 to all."""
    if not 0 <= n <= strength.size:
        raise UsageError(f"A circuit can keep 0 to {strength.size:,} edges, not {n:,}.")
    ranked = np.where(np.isnan(strength), -np.inf, strength)
    kept = np.zeros(strength.size, dtype=bool)
    if n == 0:
        return Cut(kept, 0)
    kept[np.argsort(-ranked, kind="stable")[:n]] = True
    return Cut(kept, int(np.count_nonzero(ranked[~kept] == ranked[kept].min())))
