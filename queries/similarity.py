"""Similarity of circuits, as a rule Spearman's rho over all edges, plain and corrected for the noise of both circuits.

The corrected similarity is rho / sqrt(reliability_a reliability_b) (correction for attenuation, Spearman 1904): what
the two circuits would correlate at if each were scored on endless examples. The divisor is the plain one's ceiling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb.queries import reliability
from circuitdb.queries.coefficients import BY_SIZE, NAMES
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.comparison import EVERY_EDGE, Comparison
from circuitdb.queries.jackknife import Deleted, pair_errors, pair_intervals
from circuitdb.queries.matrix import ScoreMatrix, Subjects
from circuitdb.queries.measures import Measures, measured
from circuitdb.queries.pairing import Matrix
from circuitdb.queries.reliability import Reliabilities, stepped_up
from circuitdb.queries.result import Answer, Result, count, square

_BESIDE = "the reason is beside each."
_ELSEWHERE = "`similarity --long`, or .result() in Python, gives the reason of each."


@dataclass(frozen=True)
class Bounds:
    """Intervals of every pair, [circuit, circuit] each: of 95%, from folds left out; NaN where there is none."""

    low: Matrix
    high: Matrix
    corrected_low: Matrix
    corrected_high: Matrix

    def part(self, rows: Sequence[int]) -> Bounds:
        """The same for some of the circuits."""
        chosen = np.ix_(rows, rows)
        return Bounds(*(getattr(self, field.name)[chosen] for field in fields(self)))


@dataclass(frozen=True, repr=False)
class Similarity(Answer):
    """The similarity of every two circuits of a selection, with what it is worth.

    Attributes:
        circuit_ids, labels: of the rows and columns of the matrices.
        on: signed or magnitude.
        matrix: [circuit, circuit] in -1..1; symmetric, 1 on the diagonal; NaN where undefined.
        ceiling: [circuit, circuit], sqrt(reliability_a reliability_b); NaN unless both are over 0.
        corrected: [circuit, circuit], matrix / ceiling, 1 on the diagonal. Not cut at 1: see the notes.
        reliability: of each circuit.
        n_edges: [circuit, circuit], edges that were compared.
        title, notes: what it is; warnings and explanations.
        prefers_corrected: whether `wide()` shows the corrected matrix.
        short: the coefficient in a few words.
        bounds: intervals of the pairs, where they were asked for.
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
    short: str = "rho"
    bounds: Bounds | None = None

    @property
    def reliabilities(self) -> npt.NDArray[np.float64]:
        """[circuit], from the agreement of the folds of each circuit; NaN where unknown."""
        return self.reliability.whole

    @cached_property
    def reasons(self) -> dict[tuple[int, int], str]:
        """Why a pair (row, column), row <= column, has no similarity or no corrected one."""
        lacking = np.argwhere(np.triu(np.isnan(self.corrected)))
        return {(a, b): self._reason(a, b) for a, b in lacking.tolist()}

    @property
    def median_ceiling(self) -> float:
        """Of the pairs that have one; NaN if none has."""
        known = self.ceiling[np.triu_indices(len(self.ceiling), 1)]
        known = known[~np.isnan(known)]
        return float(np.median(known)) if known.size else math.nan

    def values(self, *, corrected: bool = False) -> Matrix:
        """The plain or the corrected matrix."""
        return self.corrected if corrected else self.matrix

    def kind(self, corrected: bool) -> str:
        """For titles: which of its matrices, of which scores."""
        how = "" if self.short == "rho" else f"{self.short}, "
        return f"{how}{'corrected similarity' if corrected else 'similarity'}, {self.on} scores"

    def arrow(self) -> pa.Table:
        """The pairs as a table."""
        return self.table

    @cached_property
    def table(self) -> pa.Table:
        """The pairs, one row each: a_id, a, b_id, b, similarity, ceiling, corrected, n_edges, reason.

        With intervals low, high, corrected_low and corrected_high too.
        """
        first, second = np.triu_indices(len(self.labels), 1)
        reasons = [self.reasons.get(pair) for pair in zip(first.tolist(), second.tolist(), strict=True)]
        return pa.table(
            {
                "a_id": integers((self.circuit_ids[i] for i in first), bits=32),
                "a": texts(self.labels[i] for i in first),
                "b_id": integers((self.circuit_ids[i] for i in second), bits=32),
                "b": texts(self.labels[i] for i in second),
                "similarity": numbers(self.matrix[first, second]),
                **self._bounds(("low", "high"), first, second),
                "ceiling": numbers(self.ceiling[first, second]),
                "corrected": numbers(self.corrected[first, second]),
                **self._bounds(("corrected_low", "corrected_high"), first, second),
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

    def part(self, rows: Sequence[int]) -> Similarity:
        """The same circuits' similarity for some of them; the notes stay those of all."""
        chosen = np.ix_(rows, rows)
        found = self.reliability
        return replace(
            self,
            circuit_ids=tuple(self.circuit_ids[i] for i in rows),
            labels=tuple(self.labels[i] for i in rows),
            matrix=self.matrix[chosen],
            ceiling=self.ceiling[chosen],
            corrected=self.corrected[chosen],
            n_edges=self.n_edges[chosen],
            bounds=None if self.bounds is None else self.bounds.part(rows),
            reliability=replace(
                found,
                folds=found.folds[list(rows)],
                whole=found.whole[list(rows)],
                reasons=tuple(found.reasons[i] for i in rows),
            ),
        )

    @property
    def notes_elsewhere(self) -> tuple[str, ...]:
        """The notes for a table without the pairs' column of reasons."""
        return tuple(note.replace(_BESIDE, _ELSEWHERE) for note in self.notes)

    def notes_on_alpha(self, corrected: bool) -> tuple[str, ...]:
        """The notes for a table of alphas, which has no column of ceilings."""
        if corrected or math.isnan(self.median_ceiling):
            return self.notes_elsewhere
        ceiling = f"The median ceiling of a pair is {self.median_ceiling:.3f}; alpha is to be read against it."
        return (*self.notes_elsewhere, ceiling)

    def _bounds(
        self, names: tuple[str, str], first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]
    ) -> dict[str, pa.Array]:
        if self.bounds is None:
            return {}
        return {name: numbers(getattr(self.bounds, name)[first, second]) for name in names}

    def _reason(self, a: int, b: int) -> str:
        if math.isnan(self.matrix[a, b]):
            if self.n_edges[a, b] < 2:
                return "fewer than two edges have a score in both"
            if self.reliability.kind in BY_SIZE:
                return "one of them has no score other than zero, or all of its edges are among the strongest"
            constant = dict.fromkeys(self.labels[i] for i in (a, b) if math.isnan(self.matrix[i, i]))
            whose = " and of ".join(constant) or "one of them, over the edges that both have,"
            return f"the scores of {whose} are all equal"
        if not self.reliability.correctable:
            return f"no corrected value: there is none for {NAMES[self.reliability.kind]}"
        for i in (a, b):
            if math.isnan(self.reliabilities[i]):
                return f"no corrected value: {self.labels[i]} has no reliability ({self.reliability.reasons[i]})"
        weak = a if self.reliabilities[a] <= 0 else b
        return (
            f"no corrected value: the folds of {self.labels[weak]} do not agree "
            f"(reliability {self.reliabilities[weak]:.3f})"
        )


def similarity(matrix: ScoreMatrix, how: Comparison = EVERY_EDGE, *, corrected: bool = False) -> Similarity:
    """Compare every two circuits of a matrix; its folds, if they were read, give reliability and correction."""
    return assembled(matrix.subjects, measured(matrix, how), how, corrected=corrected)


def assembled(
    subjects: Subjects, measures: Measures, how: Comparison = EVERY_EDGE, *, corrected: bool = False
) -> Similarity:
    """The similarity of circuits that were measured."""
    found = stepped_up(measures.halves, subjects.n_folds, how.kind)
    ceiling, attenuated = correction(measures.values, found, found)
    known = ~np.isnan(np.diag(attenuated))
    attenuated[known, known] = 1.0
    return Similarity(
        subjects.circuit_ids,
        subjects.labels,
        subjects.on,
        measures.values,
        ceiling,
        attenuated,
        found,
        measures.n_edges,
        f"Similarity of {count(len(subjects.labels), 'circuit')}: {how.words}, {subjects.on} scores",
        (*subjects.notes, *_notes(subjects, measures.values, attenuated, found), *_lacking_folds(measures.deleted)),
        corrected,
        how.short,
        None if measures.deleted is None else _bounds(measures.values, attenuated, found, measures.deleted),
    )


def side_by_side(subjects: Subjects, parts: Sequence[tuple[Sequence[int], Similarity]], how: Comparison) -> Similarity:
    """The similarity of circuits of which only those of one part, at these rows, are compared with each other."""
    n, kind = len(subjects.labels), how.kind
    matrix, ceiling, corrected = (np.full((n, n), np.nan) for _ in range(3))
    n_edges, halves, whole = np.zeros((n, n), np.int64), np.full(n, np.nan), np.full(n, np.nan)
    reasons: list[str | None] = [None] * n
    for rows, part in parts:
        block = np.ix_(rows, rows)
        for out, own in ((matrix, part.matrix), (ceiling, part.ceiling), (corrected, part.corrected)):
            out[block] = own
        n_edges[block] = part.n_edges
        halves[list(rows)], whole[list(rows)] = part.reliability.folds, part.reliability.whole
        for row, reason in zip(rows, part.reliability.reasons, strict=True):
            reasons[row] = reason
    found = Reliabilities(halves, whole, tuple(reasons), kind)
    title = f"Similarity of {count(n, 'circuit')} of several graph shapes: {how.words}, {subjects.on} scores"
    return Similarity(
        subjects.circuit_ids, subjects.labels, subjects.on, matrix, ceiling, corrected, found, n_edges, title,
        subjects.notes, short=how.short,
    )  # fmt: skip


def _bounds(values: Matrix, corrected: Matrix, whole: Reliabilities, found: Deleted) -> Bounds:
    plain = pair_intervals(values, pair_errors(found, whole, corrected=False), found)
    if not whole.correctable:
        return Bounds(*plain, corrected, corrected)
    return Bounds(*plain, *pair_intervals(corrected, pair_errors(found, whole, corrected=True), found))


def _lacking_folds(found: Deleted | None) -> list[str]:
    """What must be said of intervals."""
    if found is None or len(found.n_folds) < 2:
        return []
    few = int(np.count_nonzero(~found.enough))
    if few:
        lack = count(few, "circuit has", "circuits have")
        return [f"{lack} fewer than three folds of examples, so that their pairs have no interval."]
    return ["The intervals are of 95%, by leaving out each fold of the examples of both circuits in turn."]


def correction(values: Matrix, first: Reliabilities, second: Reliabilities) -> tuple[Matrix, Matrix]:
    """([row, column] ceiling sqrt(reliability_a reliability_b), values / ceiling); NaN unless both are over 0.

    Where a kind has no correction the ceiling is the agreement of the halves, and the second is NaN.
    """
    with np.errstate(invalid="ignore"):
        rows, columns = (np.sqrt(np.where(found.whole > 0, found.whole, np.nan)) for found in (first, second))
    ceiling = np.outer(rows, columns)
    return ceiling, values / ceiling if first.correctable else np.full(values.shape, np.nan)


def _notes(subjects: Subjects, rho: Matrix, corrected: Matrix, found: Reliabilities) -> list[str]:
    upper = np.triu_indices(len(rho), 1)
    warnings = (reliability.low(found, subjects.n_examples), reliability.uncorrectable(found.kind))
    notes = [warning for warning in warnings if warning and len(rho) > 1]
    undefined = int(np.count_nonzero(np.isnan(rho[upper])))
    if undefined:
        notes.append(f"{count(undefined, 'pair')} of {len(upper[0]):,} have no similarity; {_BESIDE}")
    return [*notes, *overshooting(corrected[upper])]


def overshooting(corrected: Matrix) -> list[str]:
    """The explanation of corrected similarities over 1, where there are some."""
    over = int(np.count_nonzero(corrected > 1))
    if not over:
        return []
    return [
        f"{count(over, 'corrected similarity is', 'corrected similarities are')} over 1: a reliability is an "
        "estimate too, and where it falls short the correction overshoots; read these as no different from 1."
    ]


def capped(values: Matrix, what: str) -> tuple[str, ...]:
    """A note that corrected similarities over 1 count as 1 in something, where there are some."""
    over = (values[np.triu_indices(len(values), 1)] > 1).any()
    return (f"{what}, a corrected similarity over 1 counts as 1.",) if over else ()
