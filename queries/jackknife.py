"""How far noise in the scores moves a similarity: each fold of the examples left out in turn (Quenouille 1956, Tukey).

1. A circuit of k folds, three or more, is scored anew from every k - 1 of them: the mean of these folds' scores.
2. Each of these is compared with every whole circuit, and its reliability follows from the folds that are left.
3. The variance of a statistic is the sum over the circuits it depends on of (k - 1) / k times the squared deviations of
   its k values from their mean: circuits are scored on examples of their own, so that their noise is independent.

Folds are not drawn with replacement: a fold drawn twice would stand in both halves of a split and feign reliability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from circuitdb.queries.coefficients import coefficient
from circuitdb.queries.comparison import EVERY_EDGE, Comparison
from circuitdb.queries.matrix import FloatArray, ScoreMatrix
from circuitdb.queries.pairing import Mask, Matrix
from circuitdb.queries.reliability import Reliabilities, agreement, stepped_up
from circuitdb.queries.resampling import LEVEL, NO_INTERVAL, Interval, around, t_quantile

_LEAST, _ROWS_AT_ONCE = 3, 256


@dataclass(frozen=True)
class Deleted:
    """Circuits with one fold left out, those of a circuit together.

    Attributes:
        circuit: [row], the place of the circuit in the matrix.
        values: [row, circuit], its similarity to every whole circuit.
        halves: [row], the agreement of the halves of the folds that are left.
        n_folds: [circuit], folds of the whole.
    """

    circuit: npt.NDArray[np.int64]
    values: Matrix
    halves: Matrix
    n_folds: npt.NDArray[np.int64]

    def reliability(self, kind: str) -> Matrix:
        """[row]: the reliability from the folds that are left."""
        return stepped_up(self.halves, (self.n_folds[self.circuit] - 1).tolist(), kind).whole

    @property
    def enough(self) -> Mask:
        """[circuit]: whether it has the folds for this."""
        return self.n_folds >= _LEAST

    def part(self, circuits: Sequence[int]) -> Deleted:
        """The same for some of the circuits, by their places."""
        rows = np.concatenate([np.empty(0, np.int64), *(np.flatnonzero(self.circuit == i) for i in circuits)])
        place = {circuit: i for i, circuit in enumerate(circuits)}
        circuit = np.array([place[i] for i in self.circuit[rows].tolist()], np.int64)
        return Deleted(
            circuit,
            self.values[np.ix_(rows, np.array(circuits, np.int64))],
            self.halves[rows],
            self.n_folds[list(circuits)],
        )

    def spread(self, statistic: Matrix) -> Matrix:
        """[circuit, ...]: the jackknife variance of [row, ...] by the folds of each circuit; NaN for too few folds."""
        found = np.full((len(self.n_folds), *statistic.shape[1:]), np.nan)
        starts = np.flatnonzero(np.diff(self.circuit, prepend=-1))
        if len(starts):
            sizes = self.n_folds[self.circuit[starts]].reshape(-1, *[1] * (statistic.ndim - 1))
            means = np.add.reduceat(statistic, starts, axis=0) / sizes
            squares = (statistic - np.repeat(means, sizes.ravel(), axis=0)) ** 2
            found[self.circuit[starts]] = np.add.reduceat(squares, starts, axis=0) * (sizes - 1) / sizes
        return found


def deleted(matrix: ScoreMatrix, how: Comparison = EVERY_EDGE) -> Deleted:
    """Leave out each fold of each circuit that has three or more, of a matrix that was read with its folds."""
    folds = matrix.folds or ()
    n_folds = np.array([len(parts) for parts in folds] or [0] * len(matrix.labels), np.int64)
    circuit = np.repeat(np.arange(len(n_folds)), np.where(n_folds >= _LEAST, n_folds, 0))
    values, halves = np.full((len(circuit), len(n_folds)), np.nan), np.full(len(circuit), np.nan)
    # Whole circuits at a time, so that memory is bounded.
    step = max(_ROWS_AT_ONCE // max(int(n_folds.max(initial=1)), 1), 1)
    for start in range(0, len(n_folds), step):
        rows = np.flatnonzero((circuit >= start) & (circuit < start + step))
        if len(rows):
            whole = np.concatenate([_left(folds[i]) for i in np.unique(circuit[rows])])
            found = coefficient(how.kind, whole, matrix.scores, top=how.top, joint_zeros=not how.nonzero)
            values[rows] = found.values
    place = np.arange(len(circuit)) - np.searchsorted(circuit, circuit)
    for row, (i, fold) in enumerate(zip(circuit.tolist(), place.tolist(), strict=True)):
        halves[row] = agreement(np.delete(folds[i], fold, axis=0), how)
    return Deleted(circuit, values, halves, n_folds)


def pair_errors(found: Deleted, whole: Reliabilities, *, corrected: bool) -> Matrix:
    """[circuit, circuit]: the standard error of each similarity; NaN where a circuit has fewer than three folds."""
    statistic = found.values
    if corrected:
        with np.errstate(invalid="ignore", divide="ignore"):
            statistic = statistic / np.sqrt(np.outer(found.reliability(whole.kind), whole.whole))
    variance = found.spread(statistic)
    errors = np.sqrt(variance + variance.T)
    np.fill_diagonal(errors, np.nan)
    return errors


def pair_intervals(values: Matrix, errors: Matrix, found: Deleted, level: float = LEVEL) -> tuple[Matrix, Matrix]:
    """(low, high) of each pair: Student's t of k_a + k_b - 2 degrees of freedom times the standard error."""
    freedom = found.n_folds[:, None] + found.n_folds[None, :] - 2
    sizes = {int(n): t_quantile(int(n), level) for n in np.unique(freedom) if n > 0}
    half = errors * np.vectorize(lambda n: sizes.get(int(n), math.nan), otypes=[float])(freedom)
    return values - half, values + half


def mean_interval(
    values: Matrix, ceiling: Matrix | None, allowed: Mask, found: Deleted, whole: Reliabilities, level: float = LEVEL
) -> Interval:
    """The interval of the mean of values over allowed pairs, divided by that of the ceiling if there is one.

    NaN where a circuit of an allowed pair has fewer than three folds.
    """
    used = allowed.any(axis=1)
    if not used.any() or not found.enough[used].all():
        return NO_INTERVAL
    mask = np.where(allowed, 1.0, 0.0)
    statistic, estimate = _replaced(values, found.values, mask, found)
    if ceiling is not None:
        with np.errstate(invalid="ignore"):
            roots = np.sqrt(np.outer(found.reliability(whole.kind), whole.whole))
        below, divisor = _replaced(ceiling, roots, mask, found)
        statistic, estimate = statistic / below, estimate / divisor
    return around(
        estimate, math.sqrt(float(found.spread(statistic)[used].sum())), int((found.n_folds[used] - 1).sum()), level
    )


def _replaced(values: Matrix, rows: Matrix, mask: Matrix, found: Deleted) -> tuple[Matrix, float]:
    """(the mean over pairs with a circuit replaced by each row in turn, the mean as it is)."""
    n_pairs, mine = mask.sum() / 2, mask[found.circuit] > 0
    total = float(np.where(mask > 0, values, 0).sum()) / 2
    changes = np.where(mine, rows - values[found.circuit], 0).sum(axis=1)
    return (total + changes) / n_pairs, total / n_pairs


def _left(folds: FloatArray) -> FloatArray:
    """[fold, edge]: the mean of all folds but each."""
    return np.stack([np.delete(folds, fold, axis=0).mean(axis=0) for fold in range(len(folds))])
