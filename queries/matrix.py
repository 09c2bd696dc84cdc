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
from circuitdb.graph import GraphShape
from circuitdb.queries import named
from circuitdb.queries.comparison import EVERY_EDGE, Comparison
from circuitdb.queries.features import Features
from circuitdb.queries.selection import Member, Selection

FloatArray = npt.NDArray[np.float32]
SIDES = ("signed", "magnitude")
_ROWS_AT_ONCE = 32_000_000  # bounds the Arrow copy of the rows: 16 bytes each


@dataclass(frozen=True)
class Subjects:
    """The circuits of an answer, in its order, without their scores; `notes` are what the answer must say of them."""

    circuit_ids: tuple[int, ...]
    labels: tuple[str, ...]
    n_examples: tuple[int | None, ...]
    n_folds: tuple[int, ...]
    on: str = "signed"
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, selection: Selection, on: str) -> Subjects:
        """Those of a selection."""
        members = selection.members
        return cls(
            selection.ids,
            selection.labels,
            tuple(m.n_examples for m in members),
            tuple(m.n_folds for m in members),
            on,
            selection.notes,
        )


@dataclass(frozen=True)
class ScoreMatrix:
    """The scores of circuits of one graph.

    Attributes:
        circuit_ids, labels, n_examples: of each row.
        scores: float32 [circuit, edge], in edge order; NaN where a score is NULL. Columns are fewer where a comparison
            is over some edges, and are shared projections or nodes where it says so.
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

    @property
    def subjects(self) -> Subjects:
        """The circuits, without their scores."""
        n_folds = tuple(map(len, self.folds)) if self.folds is not None else (0,) * len(self.labels)
        return Subjects(self.circuit_ids, self.labels, self.n_examples, n_folds, self.on, self.notes)

    def seen(self, on: str) -> ScoreMatrix:
        """The matrix itself for `signed`, absolute values for `magnitude`. Raises UsageError for anything else."""
        require_side(on)
        if on == self.on:
            return self
        if self.on == "magnitude":
            raise UsageError("These scores are magnitudes; their signs are gone.")
        folds = None if self.folds is None else tuple(np.abs(fold) for fold in self.folds)
        return replace(self, scores=np.abs(self.scores), folds=folds, on=on)


def require_side(on: str) -> str:
    """`on` itself. Raises UsageError unless it is signed or magnitude."""
    if on not in SIDES:
        raise UsageError(f"on={on!r} is neither 'signed' (the scores as they are) nor 'magnitude' (without sign).")
    return on


def read(
    connection: duckdb.DuckDBPyConnection,
    selection: Selection,
    *,
    folds: bool = False,
    how: Comparison = EVERY_EDGE,
) -> ScoreMatrix:
    """Read the scores of a selection of circuits, and with `folds` those of their folds too.

    The columns are those that `how` compares. Raises UsageError if they are not the same in all circuits.
    """
    selection.require_alike(how)
    members = selection.members
    graphs: dict[tuple[int, GraphShape, int | None], list[int]] = {}
    for i, member in enumerate(members):
        graphs.setdefault((member.graph_id, member.shape, member.n_kv_heads if how.shared else 0), []).append(i)
    scores = np.empty((0, 0), np.float32)
    parts: list[FloatArray] = []
    for (_, shape, n_kv_heads), rows in graphs.items():
        features = None if how.whole else Features.of(how, shape, n_kv_heads or shape.n_heads)
        whole, stacked = _read(connection, [members[i] for i in rows], features, folds=folds)
        if len(graphs) == 1:
            scores, parts = whole, stacked
        else:
            scores = scores if scores.size else np.full((len(members), whole.shape[1]), np.nan, np.float32)
            parts = parts or [np.empty((0, whole.shape[1]), np.float32)] * len(members)
            scores[rows] = whole
            for row, part in zip(rows, stacked, strict=False):
                parts[row] = part
    n_examples = tuple(member.n_examples for member in members)
    return ScoreMatrix(
        selection.ids, selection.labels, n_examples, scores, tuple(parts) if folds else None, notes=selection.notes
    )


def _read(
    connection: duckdb.DuckDBPyConnection, members: Sequence[Member], features: Features | None, *, folds: bool
) -> tuple[FloatArray, list[FloatArray]]:
    """(scores, folds of each) of circuits of one graph."""
    n_edges = members[0].n_edges
    scores = np.full((len(members), n_edges), np.nan, np.float32)
    _fill(connection, "scores", scores, {member.circuit_id: i for i, member in enumerate(members)})
    scores = scores if features is None else features.take(scores)
    if not folds:
        return scores, []
    stops = np.cumsum([0, *(member.n_folds for member in members)])
    stacked = np.full((int(stops[-1]), n_edges), np.nan, np.float32)
    _fill(connection, "fold_scores", stacked, {m.circuit_id: int(i) for m, i in zip(members, stops, strict=False)})
    stacked = stacked if features is None else features.take(stacked)
    return scores, np.split(stacked, stops[1:-1])


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
