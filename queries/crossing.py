"""Similarity of two sets of circuits: few-shot against chain of thought, model against model, step against step.

Where both sets have a circuit of the same subtask the two are a match. The mean similarity of the matches says how far
the condition leaves the circuit alone, that of all others how much any two circuits across the sets share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb.queries import reliability
from circuitdb.queries.columns import flags, integers, numbers, texts
from circuitdb.queries.comparison import EVERY_EDGE, Comparison
from circuitdb.queries.matrix import ScoreMatrix, Subjects
from circuitdb.queries.measures import Measures, measured_between
from circuitdb.queries.pairing import Mask, Matrix
from circuitdb.queries.reliability import Reliabilities, stepped_up
from circuitdb.queries.result import Answer, Result, count, enumeration, square
from circuitdb.queries.similarity import correction, overshooting


@dataclass(frozen=True, repr=False)
class Crossing(Answer):
    """The similarity of every circuit of a first set (rows) with every one of a second (columns).

    Attributes:
        rows_of, columns_of: the circuits of the two sets.
        matrix, ceiling, corrected: [row, column], as those of `Similarity`; NaN where undefined.
        n_edges: [row, column], edges that were compared.
        match: [row, column], whether the two are of one subtask of one task.
        row_reliability, column_reliability: of each circuit.
        title, notes: what it is; warnings and explanations.
        prefers_corrected: whether `wide()` shows the corrected matrix.
    """

    rows_of: Subjects
    columns_of: Subjects
    matrix: Matrix
    ceiling: Matrix
    corrected: Matrix
    n_edges: npt.NDArray[np.int64]
    match: Mask
    row_reliability: Reliabilities
    column_reliability: Reliabilities
    title: str
    notes: tuple[str, ...] = ()
    prefers_corrected: bool = False
    short: str = "rho"

    @property
    def median_ceiling(self) -> float:
        """Of the pairs that have one; NaN if none has."""
        known = self.ceiling[~np.isnan(self.ceiling)]
        return float(np.median(known)) if known.size else math.nan

    def arrow(self) -> pa.Table:
        """The pairs as a table."""
        return self.table

    @cached_property
    def table(self) -> pa.Table:
        """The pairs, one row each: a_id, a, b_id, b, same_subtask, similarity, ceiling, corrected, n_edges."""
        first, second = (places.ravel() for places in np.indices(self.matrix.shape))
        return pa.table(
            {
                "a_id": integers((self.rows_of.circuit_ids[i] for i in first), bits=32),
                "a": texts(self.rows_of.labels[i] for i in first),
                "b_id": integers((self.columns_of.circuit_ids[i] for i in second), bits=32),
                "b": texts(self.columns_of.labels[i] for i in second),
                "same_subtask": flags(self.match.ravel().tolist()),
                "similarity": numbers(self.matrix.ravel()),
                "ceiling": numbers(self.ceiling.ravel()),
                "corrected": numbers(self.corrected.ravel()),
                "n_edges": integers(self.n_edges.ravel().tolist()),
            }
        )

    def result(self) -> Result:
        """The pairs, one row each, a of the first set and b of the second."""
        return Result(self.table, self.title, self.notes)

    def wide(self, corrected: bool | None = None) -> Result:
        """The matrix: one row a circuit of the first set, with its reliability, then one column one of the second."""
        chosen = self.prefers_corrected if corrected is None else corrected
        title = f"{self.title}{', corrected for attenuation' if chosen else ''}"
        listed = [
            f"{label} {'unknown' if math.isnan(r) else f'{r:.2f}'}"
            for label, r in zip(self.columns_of.labels, self.column_reliability.whole, strict=True)
        ]
        notes = (*self.notes, *([f"Reliability of the columns: {enumeration(listed)}."] if listed else []))
        values = self.corrected if chosen else self.matrix
        table = square(self.rows_of.labels, values, self.columns_of.labels, reliability=self.row_reliability.whole)
        return Result(table, title, notes)


def crossing(
    first: ScoreMatrix, second: ScoreMatrix, match: Mask, how: Comparison = EVERY_EDGE, *, corrected: bool = False
) -> Crossing:
    """Compare every circuit of one matrix with every one of another."""
    measures = measured_between(first, second, how)
    return assembled(first.subjects, second.subjects, match, measures, how, corrected=corrected)


def assembled(
    rows: Subjects,
    columns: Subjects,
    match: Mask,
    measures: Measures,
    how: Comparison = EVERY_EDGE,
    *,
    corrected: bool = False,
) -> Crossing:
    """The similarity of two sets of circuits that were measured."""
    n = len(rows.labels)
    first = stepped_up(measures.halves[:n], rows.n_folds, how.kind)
    second = stepped_up(measures.halves[n:], columns.n_folds, how.kind)
    ceiling, attenuated = correction(measures.values, first, second)
    others = count(len(columns.labels), "circuit")
    title = f"Similarity of {count(n, 'circuit')} to {others}: {how.words}, {rows.on} scores"
    itself = np.array(rows.circuit_ids)[:, None] == np.array(columns.circuit_ids)[None, :]
    notes = [
        *dict.fromkeys((*rows.notes, *columns.notes)),
        *_selves(itself),
        *_means(measures.values, ceiling, match & ~itself, ~match & ~itself),
    ]
    joint = stepped_up(measures.halves, (*rows.n_folds, *columns.n_folds), how.kind)
    warnings = (reliability.low(joint, (*rows.n_examples, *columns.n_examples)), reliability.uncorrectable(how.kind))
    notes += [warning for warning in warnings if warning]
    if undefined := int(np.count_nonzero(np.isnan(measures.values))):
        notes.append(
            f"{count(undefined, 'pair')} of {measures.values.size:,} have no similarity: one has the same score "
            "everywhere, or they have no score in common."
        )
    return Crossing(
        rows, columns, measures.values, ceiling, attenuated, measures.n_edges, match, first, second, title,
        (*notes, *overshooting(attenuated)), corrected, how.short,
    )  # fmt: skip


def _selves(itself: Mask) -> list[str]:
    n = int(np.count_nonzero(itself))
    return [f"{count(n, 'circuit is', 'circuits are')} in both sets, and compared with itself too."] if n else []


def _means(values: Matrix, ceiling: Matrix, match: Mask, others: Mask) -> list[str]:
    """A sentence on the matches and one on the rest."""
    sentences = []
    for mask, what in ((match, "the same subtask"), (others, "distinct subtasks")):
        known = mask & ~np.isnan(values)
        if not known.any():
            continue
        bounded = known & ~np.isnan(ceiling)
        limit = f", mean ceiling {ceiling[bounded].mean():.3f}" if bounded.any() else ""
        pairs = count(int(np.count_nonzero(known)), "pair")
        sentences.append(f"Circuits of {what}: mean similarity {values[known].mean():.3f} over {pairs}{limit}.")
    return sentences
