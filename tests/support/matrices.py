"""Score matrices for tests, without a database."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from circuitdb.queries.matrix import ScoreMatrix


def score_matrix(
    scores: npt.ArrayLike,
    folds: Sequence[npt.ArrayLike] | None = None,
    *,
    labels: Sequence[str] | None = None,
    n_examples: int | None = 16,
) -> ScoreMatrix:
    """A matrix of the given scores [circuit, edge], with the folds [fold, edge] of each circuit; ids from 1."""
    array = np.asarray(scores, np.float32)
    names = tuple(labels or (f"s{i}" for i in range(len(array))))
    parts = None if folds is None else tuple(np.asarray(part, np.float32) for part in folds)
    return ScoreMatrix(tuple(range(1, len(array) + 1)), names, (n_examples,) * len(array), array, parts)
