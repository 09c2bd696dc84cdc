"""Similarity of circuits: Spearman's rho over all edges, plain and corrected for the noise of both circuits.

The corrected similarity is rho / sqrt(reliability_a reliability_b) (correction for attenuation, Spearman 1904): what
the two circuits would correlate at if each were scored on endless examples. The divisor is the plain one's ceiling.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb.queries import reliability
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.matrix import ScoreMatrix
from circuitdb.queries.ranks import Matrix, spearman
from circuitdb.queries.reliability import Reliabilities, reliabilities
from circuitdb.queries.result import Answer, Result, count, square

_BESIDE = "the reason is beside each."
_ELSEWHERE = "`similarity --long`, or .result() in Python, gives the reason of each."


@dataclass(frozen=True, repr=False)
class Similarity(Answer):
    """The similarity of every two circuits of a selection, with what it is worth.

    Attributes:
        circuit_ids, labels: of the rows and columns of the matrices.
        on: signed or magnitude.
        matrix: [circuit, circuit], Spearman's rho in -1..1; symmetric, 1 on the diagonal; NaN where undefined.
        ceiling: [circuit, circuit], sqrt(reliability_a reliability_b); NaN unless both are over 0.
        corrected: [circuit, circuit], matrix / ceiling, 1 on the diagonal. Not cut at 1: see the notes.
        reliability: of each circuit.
        n_edges: [circuit, circuit], edges that were compared.
        title, notes: what it is; warnings and explanations.
        prefers_corrected: whether `wide()` shows the corrected matrix.
    """

    circuit_ids: tuple[int, ...]
    labels: tuple[str, ...]
    on: str
    matrix: Matrix
    ceiling: Matrix
    corrected: Matrix
    reliability: Reliabilities
    n_edges: npt.NDArray[np.int64]
    title: str
    notes: tuple[str, ...] = ()
    prefers_corrected: bool = False

    @property
    def reliabilities(self) -> npt.NDArray[np.float64]:
        """[circuit], from the agreement of the folds of each circuit; NaN where unknown."""
        return self.reliability.whole

    @cached_property
    def reasons(self) -> dict[tuple[int, int], str]:
        """Why a pair (row, column), row <= column, has no similarity or no corrected one."""
        lacking = np.argwhere(np.triu(np.isnan(self.corrected)))
        return {(a, b): self._reason(a, b) for a, b in lacking.tolist()}

    def values(self, *, corrected: bool = False) -> Matrix:
        """The plain or the corrected matrix."""
        return self.corrected if corrected else self.matrix

    def arrow(self) -> pa.Table:
        """The pairs as a table."""
        return self.table

    @cached_property
    def table(self) -> pa.Table:
        """The pairs, one row each: a_id, a, b_id, b, similarity, ceiling, corrected, n_edges, reason."""
        first, second = np.triu_indices(len(self.labels), 1)
        reasons = [self.reasons.get(pair) for pair in zip(first.tolist(), second.tolist(), strict=True)]
        return pa.table(
            {
                "a_id": integers((self.circuit_ids[i] for i in first), bits=32),
                "a": texts(self.labels[i] for i in first),
                "b_id": integers((self.circuit_ids[i] for i in second), bits=32),
                "b": texts(self.labels[i] for i in second),
                "similarity": numbers(self.matrix[first, second]),
                "ceiling": numbers(self.ceiling[first, second]),
                "corrected": numbers(self.corrected[first, second]),
                "n_edges": integers(self.n_edges[first, second].tolist()),
                "reason": texts(reasons),
            }
        )

    def result(self) -> Result:
        """The pairs, one row each, a before b."""
        return Result(self.table, self.title, self.notes)

    def wide(self, corrected: bool | None = None) -> Result:
        """The matrix: one row a circuit, with its reliability, then one column a circuit."""
        chosen = self.prefers_corrected if corrected is None else corrected
        values = self.values(corrected=chosen)
        title = f"{self.title}{', corrected for attenuation' if chosen else ''}"
        return Result(square(self.labels, values, reliability=self.reliabilities), title, self.notes_elsewhere)

    @property
    def notes_elsewhere(self) -> tuple[str, ...]:
        """The notes for a table without the pairs' column of reasons."""
        return tuple(note.replace(_BESIDE, _ELSEWHERE) for note in self.notes)

    def _reason(self, a: int, b: int) -> str:
        if math.isnan(self.matrix[a, b]):
            if self.n_edges[a, b] < 2:
                return "fewer than two edges have a score in both"
            constant = dict.fromkeys(self.labels[i] for i in (a, b) if math.isnan(self.matrix[i, i]))
            whose = " and of ".join(constant) or "one of them, over the edges that both have,"
            return f"the scores of {whose} are all equal"
        for i in (a, b):
            if math.isnan(self.reliabilities[i]):
                return f"no corrected value: {self.labels[i]} has no reliability ({self.reliability.reasons[i]})"
        weak = a if self.reliabilities[a] <= 0 else b
        return (
            f"no corrected value: the folds of {self.labels[weak]} do not agree "
            f"(reliability {self.reliabilities[weak]:.3f})"
        )


def similarity(matrix: ScoreMatrix, *, corrected: bool = False) -> Similarity:
    """Compare every two circuits of a matrix; its folds, if they were read, give reliability and correction."""
    found = reliabilities(matrix)
    correlations = spearman(matrix.scores)
    with np.errstate(invalid="ignore"):
        roots = np.sqrt(np.where(found.whole > 0, found.whole, np.nan))
    ceiling = np.outer(roots, roots)
    attenuated = correlations.rho / ceiling
    known = ~np.isnan(np.diag(attenuated))
    attenuated[known, known] = 1.0
    return Similarity(
        matrix.circuit_ids,
        matrix.labels,
        matrix.on,
        correlations.rho,
        ceiling,
        attenuated,
        found,
        correlations.n_edges,
        f"Similarity of {count(len(matrix.labels), 'circuit')}: Spearman's rho, {matrix.on} scores",
        (*matrix.notes, *_notes(matrix, correlations.rho, attenuated, found)),
        corrected,
    )


def _notes(matrix: ScoreMatrix, rho: Matrix, corrected: Matrix, found: Reliabilities) -> list[str]:
    upper = np.triu_indices(len(rho), 1)
    notes = []
    warning = reliability.low(found, matrix.n_examples)
    if warning and len(rho) > 1:
        notes.append(warning)
    undefined = int(np.count_nonzero(np.isnan(rho[upper])))
    if undefined:
        notes.append(f"{count(undefined, 'pair')} of {len(upper[0]):,} have no similarity; {_BESIDE}")
    over = int(np.count_nonzero(corrected[upper] > 1))
    if over:
        notes.append(
            f"{count(over, 'corrected similarity is', 'corrected similarities are')} over 1: a reliability is an "
            "estimate too, and where it falls short the correction overshoots; read these as no different from 1."
        )
    return notes
