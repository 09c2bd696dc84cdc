"""Births of families over alpha: by which alpha, and in which band of it, has a share of them appeared?

As alpha rises families part, and what was one is two: where two are joined at a similarity h, one is born just above
alpha = h. All births are thus the joins of the tree, counted from below.

1. The share of the families that has appeared by alpha is that of the births at alpha or lower.
2. A share S has appeared by the lowest alpha at which that is S or more.
3. The narrowest band that holds S may lie anywhere: the shortest interval with that many births in it (of equally short
   ones, the lowest).

What is one family at every alpha, and what is apart at every alpha, was never born: neither counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np
import pyarrow as pa

from circuitdb.errors import UsageError
from circuitdb.queries.barcode import band, checked_share, wanted_births
from circuitdb.queries.columns import integers, numbers
from circuitdb.queries.families import merges
from circuitdb.queries.pairing import Matrix
from circuitdb.queries.result import Result, count
from circuitdb.queries.similarity import Similarity

SHARES = (0.5, 0.8, 0.9)
_BORN = "A family is born where two part as alpha rises; those that are apart at every alpha are not counted."


def family_births(similarity: Similarity, *, corrected: bool = False, every_pair: bool = False) -> Result:
    """The births at every alpha that has some: see `Database.family_births`."""
    heights = merges(similarity.values(corrected=corrected), every_pair=every_pair)
    alphas, born = np.unique(heights, return_counts=True)
    so_far = np.cumsum(born)
    table = pa.table(
        {
            "alpha": numbers(alphas),
            "n_born": integers(born.tolist(), bits=32),
            "n_so_far": integers(so_far.tolist(), bits=32),
            "share": numbers(so_far / max(len(heights), 1)),
        }
    )
    return Result(table, _title(similarity, heights, corrected, every_pair), _notes(similarity, corrected))


def family_bands(
    similarity: Similarity,
    shares: float | Iterable[float] = SHARES,
    *,
    corrected: bool = False,
    every_pair: bool = False,
) -> Result:
    """Where in alpha each of these shares of the families appears: see `Database.family_bands`."""
    several = isinstance(shares, Iterable) and not isinstance(shares, str)
    wanted = [checked_share(share) for share in cast("Iterable[float]", shares if several else (shares,))]
    if not wanted:
        raise UsageError("shares names no share of the families; give one or more, such as 0.5.")
    heights = merges(similarity.values(corrected=corrected), every_pair=every_pair)
    needed = [wanted_births(share, len(heights)) for share in wanted]
    bands = [band(heights, share) or (np.nan, np.nan) for share in wanted]
    by = [heights[n - 1] if n else np.nan for n in needed]
    low, high = np.array(bands, np.float64).T
    table = pa.table(
        {
            "share": numbers(np.array(wanted, np.float64)),
            "n_born": integers(needed, bits=32),
            "appeared_by": numbers(np.array(by, np.float64)),
            "low": numbers(low),
            "high": numbers(high),
            "width": numbers(high - low),
        }
    )
    explanation = "low to high is the narrowest band in which n_born of them are born; appeared_by counts from below."
    title = _title(similarity, heights, corrected, every_pair)
    return Result(table, title, (*_notes(similarity, corrected), explanation))


def _title(similarity: Similarity, heights: Matrix, corrected: bool, every_pair: bool) -> str:
    names = ("class", "classes") if every_pair else ("family", "families")
    what = f"{count(len(heights), f'birth of {names[1]}', f'births of {names[1]}')} over alpha"
    how = ", every pair in a class" if every_pair else ""
    return f"{what}, of {count(len(similarity.labels), 'circuit')} ({similarity.kind(corrected)}{how})"


def _notes(similarity: Similarity, corrected: bool) -> tuple[str, ...]:
    return (*similarity.notes_on_alpha(corrected), _BORN)
