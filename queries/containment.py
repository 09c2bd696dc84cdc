"""Containment of hard circuits: how much of one circuit's strongest edges is among another's.

1. A soft circuit is cut to its n edges of the largest absolute score; ties go to the lower edge id. An edge of score
   zero or NULL is never in: nothing flows through it, or nothing is known of it.
2. The edges that two cuts share are counted for all pairs by one sparse matrix product.
3. Two random cuts would share some too: a cut of n of N edges holds n / N of any other by chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb.errors import UsageError
from circuitdb.queries import arguments
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.matrix import FloatArray, ScoreMatrix
from circuitdb.queries.result import Answer, Result, count, enumeration, square


@dataclass(frozen=True, repr=False)
class Containment(Answer):
    """The overlap of every two hard circuits.

    Attributes:
        circuit_ids, labels: of the rows and columns of `shared`.
        n: [circuit], edges of each hard circuit; fewer than asked for where fewer have a score other than zero.
        n_tied: [circuit], edges of equal strength of which the cut took some and left some; 0 if it split none.
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
        """Ordered pairs, one row each: a_id, a, b_id, b, n, n_tied, shared, share_of_a, jaccard, expected_share."""
        first, second = np.nonzero(~np.eye(len(self.labels), dtype=bool))
        shared = self.shared[first, second]
        with np.errstate(invalid="ignore", divide="ignore"):
            jaccard = shared / (self.n[first] + self.n[second] - shared)
        return pa.table(
            {
                "a_id": integers((self.circuit_ids[i] for i in first), bits=32),
                "a": texts(self.labels[i] for i in first),
                "b_id": integers((self.circuit_ids[i] for i in second), bits=32),
                "b": texts(self.labels[i] for i in second),
                "n": integers(self.n[first].tolist()),
                "n_tied": integers(self.n_tied[first].tolist()),
                "shared": integers(shared.tolist()),
                "share_of_a": numbers(self.shares[first, second]),
                "jaccard": numbers(jaccard),
                "expected_share": numbers(self.n[second] / max(self.n_edges, 1)),
            }
        )

    def result(self) -> Result:
        """The ordered pairs, one row each."""
        return Result(self.table, self.title, self.notes)

    def wide(self) -> Result:
        """One row a circuit a, one column a circuit b: the share of a that is in b."""
        title = f"{self.title}; the row's share that is in the column"
        return Result(square(self.labels, self.shares), title, self.notes)


def containment(matrix: ScoreMatrix, top: int = 200) -> Containment:
    """Cut every circuit of a matrix to its `top` edges and compare: see `Database.containment`."""
    top = arguments.whole("number of edges (top)", top)
    if top < 1:
        raise UsageError(f"A hard circuit has at least one edge; top={top} is too few.")
    chosen = [strongest(row, top) for row in matrix.scores]
    n_edges = matrix.scores.shape[1]
    n = np.array([len(edges) for edges, _ in chosen], np.int64)
    n_tied = np.array([tied for _, tied in chosen], np.int64)
    notes = list(matrix.notes)
    if n_tied.any():
        whose = enumeration(f"{label} {tied:,}" for label, tied in zip(matrix.labels, n_tied, strict=True) if tied)
        notes.append(
            f"The cut splits a tie in {whose}: only the lower edge ids of so many edges of equal strength (n_tied) are "
            "in, and the shares depend on that choice."
        )
    if (n < top).any():
        whose = enumeration(f"{label} {size:,}" for label, size in zip(matrix.labels, n, strict=True) if size < top)
        notes.append(f"Fewer than {top:,} edges have a score other than zero: {whose}.")
    return Containment(
        matrix.circuit_ids,
        matrix.labels,
        n,
        n_tied,
        _overlaps([edges for edges, _ in chosen], n_edges),
        n_edges,
        f"Containment of {count(len(chosen), 'circuit')}, each cut to its {top:,} strongest of {n_edges:,} edges",
        tuple(notes),
    )


def strongest(scores: FloatArray, top: int) -> tuple[npt.NDArray[np.int64], int]:
    """(ids of the `top` edges of [edge] by |score|, ascending; number of edges tied at the cut if it splits a tie).

    Fewer where fewer have a score other than zero.
    """
    strength = np.nan_to_num(np.abs(scores), nan=0.0)
    if top >= np.count_nonzero(strength):
        return np.flatnonzero(strength), 0
    cut = np.partition(strength, len(strength) - top)[len(strength) - top]
    above, at = np.flatnonzero(strength > cut), np.flatnonzero(strength == cut)
    taken = top - len(above)
    return np.sort(np.concatenate((above, at[:taken]))), 0 if taken == len(at) else len(at)


def _overlaps(chosen: list[npt.NDArray[np.int64]], n_edges: int) -> npt.NDArray[np.int64]:
    if not chosen:
        return np.zeros((0, 0), np.int64)
    from scipy.sparse import csr_array  # a fifth of a second to import

    columns = np.concatenate(chosen)
    stops = np.cumsum([0, *map(len, chosen)])
    member = csr_array((np.ones(len(columns), np.int64), columns, stops), shape=(len(chosen), n_edges))
    return np.asarray((member @ member.T).toarray(), np.int64)
