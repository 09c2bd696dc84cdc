"""Hard circuits from scores: the strongest edges, with ties broken by edge id.

An edge without a score comes last, so that the whole graph can still be kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from circuitdb.errors import UsageError
from circuitdb.sorting import ascending

Strength = npt.NDArray[np.floating]


@dataclass(frozen=True)
class Strongest:
    """The edges that are kept, [n_edges] booleans, and how many that were not tie with the weakest of them."""

    kept: npt.NDArray[np.bool_]
    n_tied: int


def strongest(strength: Strength, n: int) -> Strongest:
    """The n edges of largest strength [n_edges]. Raises UsageError for an n that is not from 0 to all."""
    if not 0 <= n <= strength.size:
        raise UsageError(f"A circuit can keep 0 to {strength.size:,} edges, not {n:,}.")
    if n == 0:
        return Strongest(np.zeros(strength.size, dtype=bool), 0)
    known = _known(strength)
    weakest = np.partition(known, known.size - n)[known.size - n]
    kept = known > weakest
    tied = np.flatnonzero(known == weakest)
    n_in = n - int(np.count_nonzero(kept))
    kept[tied[:n_in]] = True
    return Strongest(kept, len(tied) - n_in)


def by_strength(strength: Strength) -> npt.NDArray[np.int64]:
    """All edges by falling strength [n_edges]: the first n are those that `strongest` keeps."""
    rising = -_known(strength)
    if rising.dtype == np.float32:
        return ascending(rising)[0]
    return np.argsort(rising, kind="stable")


def _known(strength: Strength) -> Strength:
    return np.where(np.isnan(strength), strength.dtype.type(-np.inf), strength)
