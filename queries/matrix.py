"""From the file to aligned arrays: one row of scores a circuit, one column an edge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb.errors import UsageError
from circuitdb.queries import named
from circuitdb.queries.selection import Selection

FloatArray = npt.NDArray[np.float32]
SIDES = ("signed", "magnitude")
_ROWS_AT_ONCE = 32_000_000  # bounds the Arrow copy of the rows: 16 bytes each


@dataclass(frozen=True)
class ScoreMatrix:
    """The scores of circuits of one graph.

    Attributes:
        circuit_ids, labels, n_examples: of each row.
        scores: float32 [circuit, edge], in edge order; NaN where a score is NULL.
        folds: float32 [fold, edge] of each circuit, or None where they were not read.
        on: signed or magnitude, what the numbers are.
        notes: what an answer made of these must say.
    """

    circuit_ids: tuple[int, ...]
    labels: tuple[str, ...]
    n_examples: tuple[int | None, ...]
    scores: FloatArray
    folds: tuple[FloatArray, ...] | None = None
    on: str = "signed"
    notes: tuple[str, ...] = ()

    def seen(self, on: str) -> ScoreMatrix:
        """The matrix itself for `signed`, absolute values for `magnitude`. Raises UsageError for anything else."""
        if on not in SIDES:
            raise UsageError(f"on={on!r} is neither 'signed' (the scores as they are) nor 'magnitude' (without sign).")
        if on == self.on:
            return self
        if self.on == "magnitude":
            raise UsageError("These scores are magnitudes; their signs are gone.")
        folds = None if self.folds is None else tuple(np.abs(fold) for fold in self.folds)
        return replace(self, scores=np.abs(self.scores), folds=folds, on=on)


def read(connection: duckdb.DuckDBPyConnection, selection: Selection, *, folds: bool = False) -> ScoreMatrix:
    """Read the scores of a selection of circuits of one graph, and with `folds` those of their folds too."""
    members = selection.members
    n_edges = members[0].n_edges if members else 0
    scores = np.full((len(members), n_edges), np.nan, np.float32)
    _fill(connection, "scores", scores, {member.circuit_id: i for i, member in enumerate(members)})
    parts = None
    if folds:
        stops = np.cumsum([0, *(member.n_folds for member in members)])
        stacked = np.full((int(stops[-1]), n_edges), np.nan, np.float32)
        _fill(connection, "fold_scores", stacked, {m.circuit_id: int(i) for m, i in zip(members, stops, strict=False)})
        parts = tuple(np.split(stacked, stops[1:-1])) if members else ()
    return ScoreMatrix(
        selection.ids, selection.labels, tuple(m.n_examples for m in members), scores, parts, notes=selection.notes
    )


def _fill(connection: duckdb.DuckDBPyConnection, query: str, out: FloatArray, first_row: Mapping[int, int]) -> None:
    """Put the rows of a query into `out`; `first_row` is the row of a circuit, or of its fold 0."""
    circuits = sorted(first_row)
    per_circuit = max(out.size // max(len(circuits), 1), 1)
    step = max(_ROWS_AT_ONCE // per_circuit, 1)
    for start in range(0, len(circuits) if out.size else 0, step):
        block = circuits[start : start + step]
        table = named.run(connection, query, circuits=block, first=block[0], last=block[-1])
        row_of = np.zeros(block[-1] + 1, np.int64)
        row_of[block] = [first_row[circuit] for circuit in block]
        for batch in table.to_batches():
            ids, *fold, edges, scores = map(_array, batch.columns)
            _place(out, row_of, ids, fold, edges, scores)


def _array(column: pa.Array) -> npt.NDArray[Any]:
    """A column without a copy, NULL as NaN. Its own to_numpy would import pandas, a third of a second."""
    return np.from_dlpack(column.fill_null(np.nan) if column.null_count else column)


def _place(
    out: FloatArray,
    row_of: npt.NDArray[np.int64],
    ids: npt.NDArray[np.int32],
    fold: Sequence[npt.NDArray[np.int32]],
    edges: npt.NDArray[np.int32],
    scores: FloatArray,
) -> None:
    """Scatter a batch, right for rows in any order; runs of consecutive edges go as wholes."""
    breaks = (ids[1:] != ids[:-1]) | (edges[1:] - edges[:-1] != 1)
    for number in fold:
        breaks |= number[1:] != number[:-1]
    starts = np.concatenate(([0], np.flatnonzero(breaks) + 1))
    if len(starts) > 2 + len(edges) // 64:
        out[row_of[ids] + sum(fold), edges] = scores
        return
    rows = row_of[ids[starts]] + sum(number[starts] for number in fold)
    stops = np.append(starts[1:], len(edges))
    for row, start, stop in zip(rows.tolist(), starts.tolist(), stops.tolist(), strict=True):
        out[row, edges[start] : edges[start] + stop - start] = scores[start:stop]
