"""The H0 barcode of circuits: when families are born and when they join, as alpha falls from 1.

Circuits are points, 1 - similarity is their distance, and a family is a connected component of pairs at alpha or more.
At alpha = 1 every circuit is a family of its own. As alpha falls families join: of two the younger ends, by the elder
rule the one of fewer circuits, and of equals the one that begins later. One of each set that can be joined never ends.
The bars are exactly the joins of single linkage; seen upwards, as alpha rises, each end of a bar is the birth of a
family.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from circuitdb.errors import UsageError
from circuitdb.queries import arguments
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.linkage import Tree, ceilings, tree
from circuitdb.queries.pairing import Matrix
from circuitdb.queries.result import Result, count, enumeration
from circuitdb.queries.similarity import Similarity

SHARE = 0.8  # of the births: the paper's band


@dataclass(frozen=True)
class Bar:
    """A family from the alpha at which it joins another, up to 1: its circuits, and those it joins.

    `joins` is NaN, and `into` empty, where it joins none; `join` is the place of the join in the tree. `eldest` is the
    circuit that it is at alpha = 1, of each bar another one: at any alpha over `joins` the bar is the family of it.
    """

    joins: float
    members: tuple[int, ...]
    into: tuple[int, ...]
    join: int | None
    eldest: int


def bars(found: Tree) -> list[Bar]:
    """The bars of single linkage, one a circuit: those that never end first, then the longest."""
    members = found.members()
    pairs = [_elder(join, members) for join in found.joins.tolist()]
    eldest = list(range(found.n))
    for winner, _ in pairs:
        eldest.append(eldest[winner])
    ended = [
        Bar(float(height), tuple(members[loser]), tuple(members[winner]), i, eldest[loser])
        for i, ((winner, loser), height) in enumerate(zip(pairs, found.heights, strict=True))
        if not math.isnan(height)
    ]
    whole = found.cut(-math.inf)
    lasting = set(range(found.n)) - {bar.eldest for bar in ended}
    endless = [
        Bar(math.nan, tuple(np.flatnonzero(whole == whole[circuit]).tolist()), (), None, circuit)
        for circuit in sorted(lasting, key=lambda circuit: int(whole[circuit]))
    ]
    return [*endless, *reversed(ended)]


def band(heights: Matrix, share: float = SHARE) -> tuple[float, float] | None:
    """The narrowest (low, high) of alpha in which at least this share of the joins lie; None without a join."""
    known = np.sort(heights[~np.isnan(heights)])
    if not len(known):
        return None
    held = wanted_births(share, len(known))
    widths = known[held - 1 :] - known[: len(known) - held + 1]
    start = int(np.argmin(widths))
    return float(known[start]), float(known[start + held - 1])


def wanted_births(share: float, n: int) -> int:
    """How many of `n` are at least this share; one where there are any."""
    return min(max(math.ceil(round(share * n, 9)), 1), n)


def checked_share(share: float) -> float:
    """A share of the families, over 0 and at most 1. Raises UsageError for another number."""
    share = arguments.real("share is a share of the families, such as 0.8", share)
    if not 0 < share <= 1:
        raise UsageError(f"share={share:g} is no share of the families; give one over 0 and at most 1.")
    return share


def barcode(similarity: Similarity, *, corrected: bool = False, share: float = SHARE) -> Result:
    """The bars, one row each: see `Database.barcode`."""
    share = checked_share(share)
    values = similarity.values(corrected=corrected)
    found = tree(values)
    listed = bars(found)
    ends = np.array([bar.joins for bar in listed], np.float64)
    of_joins = ceilings(found, values, similarity.ceiling)
    limits = np.array([math.nan if bar.join is None else of_joins[bar.join] for bar in listed], np.float64)
    labels = similarity.labels
    table = pa.table(
        {
            "bar": integers(range(1, len(listed) + 1), bits=32),
            "joins_at": numbers(ends),
            "ceiling": numbers(limits),
            "length": numbers(1 - ends),
            "size": integers((len(bar.members) for bar in listed), bits=32),
            "circuits": texts(enumeration(labels[i] for i in bar.members) for bar in listed),
            "into": texts(enumeration(labels[i] for i in bar.into) or None for bar in listed),
        }
    )
    title = f"H0 barcode of {count(len(values), 'circuit')} ({similarity.kind(corrected)}): bars from alpha = 1 down"
    notes = list(similarity.notes_on_alpha(corrected))
    if (found_band := band(found.heights, share)) is not None:
        low, high = found_band
        notes.append(
            f"{share:.0%} of the joins of families lie between alpha = {low:.3f} and {high:.3f}, the narrowest such "
            "band."
        )
    if (ends > 1).any():
        notes.append("A bar that ends over 1 has a length below 0: its family is joined at alpha = 1 already.")
    return Result(table, title, tuple(notes))


def _elder(join: list[int], members: list[list[int]]) -> tuple[int, int]:
    """(the cluster that goes on, the one that ends)."""
    first, second = join
    a, b = members[first], members[second]
    return (first, second) if (-len(a), a[0]) <= (-len(b), b[0]) else (second, first)
