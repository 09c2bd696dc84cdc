"""Circuits as points of a plane: the nearer, the more alike.

- mds: classical scaling (Torgerson 1952) of the distance sqrt(2 (1 - similarity)). For a correlation that is the
  distance of standardised scores (for rho, of ranks), so that the map is their principal components.
- t-sne: van der Maaten and Hinton 2008, by scikit-learn, with a fixed seed. Keeps neighbours, not distances.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from circuitdb.errors import UsageError
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.pairing import Matrix
from circuitdb.queries.result import Result, count, enumeration
from circuitdb.queries.similarity import Similarity, capped

LAYOUTS = ("mds", "t-sne")
SEED, _PERPLEXITY = 0, 30.0


def embedding(similarity: Similarity, layout: str = "mds", *, corrected: bool = False) -> Result:
    """Two coordinates of each circuit: see `Database.embedding`."""
    if layout not in LAYOUTS:
        raise UsageError(f"There is no embedding {layout!r}; there are {' and '.join(LAYOUTS)}.")
    values = similarity.values(corrected=corrected)
    placed = np.flatnonzero(~_lacking(values))
    squares = _squared_distances(values[np.ix_(placed, placed)])
    notes = [*similarity.notes_elsewhere, *capped(values, "For distances")]
    if len(placed) < len(values):
        left = enumeration(similarity.labels[i] for i in range(len(values)) if i not in set(placed.tolist()))
        notes.append(f"Left out for want of a similarity to each of the others: {left}.")
    if layout == "mds":
        points, share = classical(squares)
        notes.append(f"The two axes show {share:.0%} of the squared distances.")
    else:
        points = _t_sne(squares)
        notes.append(f"t-SNE keeps neighbours, not distances; its start is random (seed {SEED}).")
    table = pa.table(
        {
            "circuit_id": integers((similarity.circuit_ids[i] for i in placed), bits=32),
            "subtask": texts(similarity.labels[i] for i in placed),
            "x": numbers(points[:, 0]),
            "y": numbers(points[:, 1]),
            "reliability": numbers(similarity.reliabilities[placed]),
        }
    )
    title = f"Map of {count(len(placed), 'circuit')} by {layout} ({similarity.kind(corrected)})"
    return Result(table, title, tuple(notes))


def classical(squares: Matrix) -> tuple[Matrix, float]:
    """([point, 2], the share of the squared distances that they show) of squared distances [point, point].

    Of each axis the largest coordinate is positive, so that equal distances give equal maps. The share is of the
    positive eigenvalues: distances that no space has make some negative.
    """
    n = len(squares)
    if n < 2:
        return np.zeros((n, 2)), 1.0
    centre = np.eye(n) - 1 / n
    sizes, axes = np.linalg.eigh(-0.5 * centre @ squares @ centre)
    sizes, axes = sizes[::-1], axes[:, ::-1]
    positive = np.clip(sizes, 0, None)
    points = axes[:, :2] * np.sqrt(positive[:2])
    points *= np.where(points[np.abs(points).argmax(axis=0), range(points.shape[1])] < 0, -1.0, 1.0)
    return points, float(positive[:2].sum() / positive.sum()) if positive.sum() else 1.0


def _squared_distances(values: Matrix) -> Matrix:
    squares = np.clip(2 * (1 - values), 0, None)
    np.fill_diagonal(squares, 0)
    return squares


def _lacking(values: Matrix) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """[circuit]: left out, those that lack most similarities first, until all are known."""
    missing = np.isnan(values) & ~np.eye(len(values), dtype=bool)
    out = np.zeros(len(values), bool)
    while missing.any():
        worst = int(missing.sum(axis=1).argmax())
        out[worst] = True
        missing[worst, :] = missing[:, worst] = False
    return out


def _t_sne(squares: Matrix) -> Matrix:
    n = len(squares)
    if n < 3:
        raise UsageError(f"t-SNE needs three circuits or more; there {'is' if n == 1 else 'are'} {n}.")
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise UsageError("t-SNE needs scikit-learn: `pip install scikit-learn`, or take the mds map.") from error
    start = np.random.default_rng(SEED).standard_normal((n, 2)) * 1e-4
    fitted = TSNE(metric="precomputed", init=start, perplexity=min(_PERPLEXITY, (n - 1) / 3), random_state=SEED)
    return np.asarray(fitted.fit_transform(np.sqrt(squares)), np.float64)
