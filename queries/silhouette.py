"""How much nearer a circuit is to its own family than to the next one (Rousseeuw 1987)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from circuitdb.queries.pairing import Matrix


def silhouettes(values: Matrix, family: npt.NDArray[np.int64]) -> Matrix:
    """[circuit]: (b - a) / max(a, b) in -1..1, from similarities [circuit, circuit] and the family of each.

    a is the mean distance to the others of its family, b the least mean distance to those of another one; the distance
    is 1 - similarity, at least 0. 0 for a family of one, NaN where all are of one family or no similarity is known.
    """
    names, place = np.unique(family, return_inverse=True)
    member = place[:, None] == np.arange(len(names))[None, :]
    distance = np.clip(1 - values, 0, None)
    known = ~np.isnan(distance) & ~np.eye(len(values), dtype=bool)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (np.where(known, distance, 0) @ member) / (known.astype(np.float64) @ member)
        own = means[np.arange(len(values)), place]
        nearest = np.fmin.reduce(np.where(member, np.nan, means), axis=1, initial=np.inf)
        nearest = np.where(np.isinf(nearest), np.nan, nearest)
        found = np.where(own == nearest, 0.0, (nearest - own) / np.maximum(own, nearest))
    alone = member.sum(axis=0)[place] == 1
    return np.where(alone & ~np.isnan(nearest), 0.0, found)
