"""From names of edges to places in a graph: each name is one of its edges, or is refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from circuitdb.errors import ScoreError, UsageError
from circuitdb.graph import GraphShape

Ids = npt.NDArray[np.int64]


def ids(shape: GraphShape, names: Sequence[str], *, where: str) -> Ids:
    """The id of each name. Raises ScoreError for one that the graph does not have, or that comes twice."""
    given = pa.array(names, pa.string())
    found = pc.index_in(given, value_set=_names(shape))
    if found.null_count:
        unknown = str(given.filter(found.is_null())[0])
        more = f", and {found.null_count - 1:,} more like it" if found.null_count > 1 else ""
        raise ScoreError(f"{where}: {_why(shape, unknown)[:-1]}{more}; its names and its sizes do not belong together.")
    places = np.asarray(found.to_numpy(), np.int64)
    often = np.bincount(places)
    if often.max(initial=0) > 1:
        twice = names[int(np.flatnonzero(often[places] > 1)[0])]
        raise ScoreError(f"{where} has the edge {twice!r} twice; which of its scores counts is not told.")
    return places


@lru_cache(maxsize=4)
def _names(shape: GraphShape) -> pa.Array:
    return pa.array(shape.edge_names, pa.string())


def _why(shape: GraphShape, name: str) -> str:
    try:
        shape.edge_id(name)
    except UsageError as error:
        return str(error)
    raise AssertionError(name)
