"""Containment of hard circuits: how much of one circuit's edges is among another's, beside what chance would share.

1. Every soft circuit is cut to a hard one: see `cuts`.
2. The edges that two of them share are counted on packed bits, 64 edges at a time.
3. Random circuits of the same sizes would share some too: see `chance`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb.graph import GraphShape
from circuitdb.queries import chance
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.cuts import Cut, Hard, Members, each
from circuitdb.queries.matrix import ScoreMatrix
from circuitdb.queries.result import Answer, Result, count, enumeration, square


@dataclass(frozen=True, repr=False)
class Containment(Answer):
    """The overlap of every two hard circuits.

    Attributes:
        circuit_ids, labels: of the rows and columns of `shared`.
        n: [circuit], edges of each hard circuit; fewer than asked for where fewer can be in.
        n_tied: [circuit], edges left out although they tie with the weakest that is in.
        shared: [circuit, circuit], edges in both.
        n_edges: edges of the graph.
        title, notes: what it is; warnings and explanations.
    """

    circuit_ids: tuple[int, ...]
    labels: tuple[str, ...]
    n: npt.NDArray[np.int64]
    n_tied: npt.NDArray[np.int64]
    shared: npt.NDArray[np.int64]
    n_edges: int
    title: str
    notes: tuple[str, ...] = ()

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """[a, b]: the share of a that is in b, 0..1; NaN where a is empty."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.shared / self.n[:, None]

    def arrow(self) -> pa.Table:
        """The ordered pairs as a table."""
        return self.table

    @cached_property
    def table(self) -> pa.Table:
        """Ordered pairs, one row each.

        a_id, a, b_id, b, n_a, n_b, n_tied (of a), shared, share_of_a, mutual (the lesser of both shares), jaccard; by
        chance expected_share, expected_mutual, expected_jaccard, and p_value: how often chance shares as many or more.
        """
        return self._pairs(*np.nonzero(~np.eye(len(self.labels), dtype=bool)))

    def pair(self, a: int, b: int) -> dict[str, Any]:
        """The row of `table` for the circuits of two rows of `shared`, without making the whole table."""
        (row,) = self._pairs(np.array([a]), np.array([b])).to_pylist()
        return cast("dict[str, Any]", row)

    @property
    def chance(self) -> npt.NDArray[np.float64]:
        """[circuit]: the mean over the others of the share of it that a random circuit of their size would hold.

        NaN where a circuit is empty, or there is no other.
        """
        if len(self.n) < 2:
            return np.full(len(self.n), np.nan)
        by_chance = (self.n.sum() - self.n) / (len(self.n) - 1) / max(self.n_edges, 1)
        return np.where(self.n > 0, by_chance, np.nan)

    def _pairs(self, first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> pa.Table:
        n_a, n_b, shared = self.n[first], self.n[second], self.shared[first, second]
        expected = chance.expected_shared(self.n_edges, n_a, n_b)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = {
                "share_of_a": shared / n_a,
                "mutual": shared / np.maximum(n_a, n_b),
                "jaccard": shared / (n_a + n_b - shared),
                "expected_share": np.where(n_a > 0, n_b / max(self.n_edges, 1), np.nan),
                "expected_mutual": expected / np.maximum(n_a, n_b),
            }
        return pa.table(
            {
                "a_id": integers((self.circuit_ids[i] for i in first), bits=32),
                "a": texts(self.labels[i] for i in first),
                "b_id": integers((self.circuit_ids[i] for i in second), bits=32),
                "b": texts(self.labels[i] for i in second),
                "n_a": integers(n_a.tolist()),
                "n_b": integers(n_b.tolist()),
                "n_tied": integers(self.n_tied[first].tolist()),
                "shared": integers(shared.tolist()),
                **{name: numbers(values) for name, values in ratios.items()},
                "expected_jaccard": numbers(chance.expected_jaccard(self.n_edges, n_a, n_b)),
                "p_value": numbers(chance.at_least(self.n_edges, n_a, n_b, shared)),
            }
        )

    def result(self) -> Result:
        """The ordered pairs, one row each."""
        return Result(self.table, self.title, self.notes)

    def wide(self) -> Result:
        """One row a circuit a, one column a circuit b: the share of a that is in b; `chance` beside it."""
        title = f"{self.title}; the row's share that is in the column"
        return Result(square(self.labels, self.shares, chance=self.chance), title, self.notes)


def containment(matrix: ScoreMatrix, cut: Cut, shape: GraphShape) -> Containment:
    """Cut every circuit of a matrix and compare: see `Database.containment`."""
    return containments(matrix, [cut], shape)[0]


def containments(matrix: ScoreMatrix, cuts: Sequence[Cut], shape: GraphShape) -> list[Containment]:
    """The same by several cuts, of which only the counts are kept: see `Database.containments`."""
    n_edges = matrix.scores.shape[1]
    return [
        Containment(
            matrix.circuit_ids,
            matrix.labels,
            found.n,
            found.n_tied,
            overlaps(found.members),
            n_edges,
            f"Containment of {count(len(found.n), 'circuit')}, each cut to {cut.describe(n_edges)}",
            (*matrix.notes, *cut_notes(found, cut, matrix.labels, n_edges)),
        )
        for cut, found in zip(cuts, each(matrix.scores, cuts, shape), strict=True)
    ]


def edges(matrix: ScoreMatrix, found: Hard, cut: Cut, shape: GraphShape) -> Result:
    """The edges of the hard circuit of a matrix of one: see `Database.hard_circuit`."""
    chosen = np.flatnonzero(found.members.any(axis=0))
    names = np.array(shape.edge_names, object)[chosen]
    table = pa.table(
        {
            "edge": texts(names.tolist()),
            "source": texts(name.partition("->")[0] for name in names),
            "target": texts(name.partition("->")[2] for name in names),
            "score": numbers(matrix.scores[:, chosen].ravel().astype(np.float64)),
            "edge_id": integers(chosen.tolist(), bits=32),
        }
    )
    which = f"{count(len(chosen), 'edge')} of circuit {', '.join(map(str, matrix.circuit_ids))}"
    title = f"{which} ({', '.join(matrix.labels)}), cut to {cut.describe(shape.n_edges)}"
    notes = (*matrix.notes, *cut_notes(found, cut, matrix.labels, shape.n_edges))
    return Result(table, title, notes)


def cut_notes(found: Hard, cut: Cut, labels: Sequence[str], n_edges: int) -> list[str]:
    """What must be said of a cut: ties that it splits, circuits that fall short, circuits that are empty."""
    notes = []
    if found.n_tied.any():
        whose = enumeration(f"{label} {tied:,}" for label, tied in zip(labels, found.n_tied, strict=True) if tied)
        notes.append(
            f"The cut splits a tie, leaving out so many edges as strong as the weakest that is in (n_tied): {whose}. "
            "Those of lower edge ids are in, and the shares depend on that choice."
        )
    wanted = cut.size(n_edges)
    short = (found.n == 0) if cut.threshold is not None or cut.prune else (found.n < wanted)
    if short.any():
        whose = enumeration(f"{label} {size:,}" for label, size in zip(labels, found.n, strict=True) if size < wanted)
        if cut.prune or cut.threshold is not None:
            reason = "Nothing is left of"
            whose = enumeration(label for label, empty in zip(labels, short, strict=True) if empty)
            notes.append(f"{reason} {whose}.")
        else:
            sign = "a positive score" if cut.signed else "a score other than zero"
            met = f"{sign} and a way to the logits" if cut.greedy is not None else sign
            notes.append(f"Fewer than {wanted:,} edges have {met}: {whose}.")
    return notes


def overlaps(members: Members) -> npt.NDArray[np.int64]:
    """[circuit, circuit]: the edges that two circuits share, of [circuit, edge]; symmetric, sizes on the diagonal."""
    n, n_edges = members.shape
    width = -(-n_edges // 64) * 64
    padded = np.zeros((n, width // 8), np.uint8)
    padded[:, : -(-n_edges // 8)] = np.packbits(members, axis=1)
    words = padded.view(np.uint64)
    shared = np.zeros((n, n), np.int64)
    for i in range(n):
        shared[i, i:] = np.bitwise_count(words[i:] & words[i]).sum(axis=1, dtype=np.int64)
    return np.triu(shared) + np.triu(shared, 1).T
