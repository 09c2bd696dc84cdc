"""Which edges many hard circuits agree on: core, consensus, and what only one of them has.

A replicate is one circuit cut in one way; circuits of other subtasks, seeds or examples, and cuts of other sizes, are
replicates alike. An edge's inclusion is the share of the replicates that it is in.

By chance circuits are independent, but not the cuts of one: in how many of them an edge is stays as it is, and only
which edge it is changes (`chance`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from circuitdb.errors import UsageError
from circuitdb.graph import GraphShape
from circuitdb.queries import arguments, chance
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.containment import cut_notes
from circuitdb.queries.cuts import Cut, hards
from circuitdb.queries.matrix import ScoreMatrix
from circuitdb.queries.result import Result, count


def inclusion(
    matrix: ScoreMatrix, cuts: Sequence[Cut], shape: GraphShape, *, consensus: float = 0.8, least: float = 0.0
) -> Result:
    """One row an edge that is in any replicate: see `Database.inclusion`."""
    consensus = _part("consensus", consensus)
    least = _part("least", least)
    if not cuts:
        raise UsageError("There is no cut to count the edges of; name at least one, such as top=200.")
    n_circuits, n_edges = matrix.scores.shape
    n_replicates = n_circuits * len(cuts)
    counts = np.zeros((n_circuits, n_edges), np.int64)
    notes = list(matrix.notes)
    for cut, found in zip(cuts, hards(matrix.scores, cuts, shape), strict=True):
        counts += found.members
        notes += cut_notes(found, cut, matrix.labels, n_edges)
    often = counts.sum(axis=0)
    # A product, as in 0.8 * 5, is a hair over the whole number that it stands for.
    needed = max(1, int(np.ceil(consensus * n_replicates - 1e-9)))
    by_chance = chance.expected_by_count(counts, len(cuts))
    chosen = np.flatnonzero((often > 0) & (often >= least * n_replicates - 1e-9))
    chosen = chosen[np.lexsort((chosen, -often[chosen]))]
    owners = np.count_nonzero(counts, axis=0)
    only = np.where(owners == 1, counts.argmax(axis=0), -1) if n_circuits > 1 else np.full(n_edges, -1)
    kinds = np.where(often == n_replicates, "core", np.where(often >= needed, "consensus", "some"))
    names = np.array(shape.edge_names, object)
    table = pa.table(
        {
            "edge": texts(names[chosen].tolist()),
            "inclusion": numbers(often[chosen] / max(n_replicates, 1)),
            "n_circuits": integers(owners[chosen].tolist()),
            "kind": texts(kinds[chosen].tolist()),
            "only_in": texts(None if i < 0 else matrix.labels[i] for i in only[chosen].tolist()),
            "edge_id": integers(chosen.tolist(), bits=32),
        }
    )
    parts = [
        f"{int((often == n_replicates).sum()) if n_replicates else 0:,} in all (core; {by_chance[-1]:.3g} by chance)",
        f"{int((often >= needed).sum()):,} in at least {consensus:g} of them (consensus; "
        f"{by_chance[needed:].sum():.3g} by chance)",
        f"{int((only >= 0).sum()):,} in one circuit only",
        f"{int((often > 0).sum()):,} in any",
    ]
    how = f"cut to {cuts[0].describe(n_edges)}" if len(cuts) == 1 else f"cut in {len(cuts)} ways"
    title = f"Edges of {count(n_circuits, 'circuit')}, each {how}: {', '.join(parts)}"
    return Result(table, title, tuple(dict.fromkeys(notes)))


def _part(name: str, value: object) -> float:
    share = arguments.real(f"{name} is a share of the circuits, such as 0.8", value)
    if not 0 <= share <= 1:
        raise UsageError(f"{name} is a share from 0 to 1, not {share:g}.")
    return share
