"""What two hard circuits share by chance: the hypergeometric distribution.

Of N edges, a random circuit of a edges and one of b share X, with P(X = x) = C(a, x) C(N - a, b - x) / C(N, b). Its
mean is a b / N. Edges are drawn alike here, so what any two circuits of one model have in common counts as agreement.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def expected_shared(n_edges: int, a: Counts, b: Counts) -> Floats:
    """Mean number of edges that random circuits of `a` and of `b` edges share."""
    return a * b / max(n_edges, 1)


def expected_jaccard(n_edges: int, a: Counts, b: Counts) -> Floats:
    """Mean of shared / (a + b - shared), exactly; NaN where both are empty."""

    def mean(first: int, second: int) -> float:
        shared, chances = distribution(n_edges, first, second)
        return float((chances * shared / (first + second - shared)).sum()) if first + second else np.nan

    pairs, which = np.unique(np.sort(np.stack((a, b), axis=-1), axis=-1), axis=0, return_inverse=True)
    return np.array([mean(x, y) for x, y in pairs.tolist()], np.float64)[which]


def at_least(n_edges: int, a: Counts, b: Counts, shared: Counts) -> Floats:
    """P(X >= shared): how often chance alone gives so many shared edges or more."""
    pairs, which = np.unique(np.sort(np.stack((a, b), axis=-1), axis=-1), axis=0, return_inverse=True)
    found = np.empty(len(which))
    order = np.argsort(which, kind="stable")
    for own in np.split(order, np.flatnonzero(np.diff(which[order])) + 1) if len(order) else []:
        first, second = pairs[which[own[0]]].tolist()
        values, chances = distribution(n_edges, first, second)
        tail = np.append(np.cumsum(chances[::-1])[::-1], 0.0)
        tail[0] = 1.0
        found[own] = tail[np.clip(shared[own] - values[0], 0, len(chances))]
    return np.clip(found, 0.0, 1.0)


def expected_by_count(counts: Counts, n_cuts: int) -> Floats:
    """[k + 1]: how many edges are by chance in exactly 0, 1, ..., k of all cuts; `n_cuts` are those of each circuit.

    `counts` [circuit, edge] is in how many of its circuit's cuts an edge is. Cuts of one circuit are not independent:
    they are nested, or grown from the same edges. So by chance each circuit keeps its counts, in random order of its
    edges, and only the circuits are independent; with one cut a circuit these are random circuits of their sizes.
    """
    n_edges = counts.shape[1]
    chances = np.ones(1)
    for own in counts:
        chances = np.convolve(chances, np.bincount(own, minlength=n_cuts + 1) / max(n_edges, 1))
    return np.asarray(n_edges * chances, np.float64)


def distribution(n_edges: int, a: int, b: int) -> tuple[Counts, Floats]:
    """(values of X, their chances), for random sets of `a` and of `b` of `n_edges`."""
    shared = np.arange(max(0, a + b - n_edges), min(a, b) + 1)
    factorial = _log_factorials(n_edges)
    fixed = factorial[[a, n_edges - a, b, n_edges - b]].sum() - factorial[n_edges]
    logs = fixed - factorial[shared] - factorial[a - shared] - factorial[b - shared]
    chances = np.exp(logs - factorial[n_edges - a - b + shared])
    return shared, chances / chances.sum()


@lru_cache(maxsize=4)
def _log_factorials(n: int) -> Floats:
    from scipy.special import gammaln  # a tenth of a second to import

    return np.asarray(gammaln(np.arange(n + 1) + 1.0), np.float64)
