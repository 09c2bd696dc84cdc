"""A test between two conditions: with and without parentheses, few-shot and chain of thought, two models.

1. Stability of each condition is the mean similarity of its circuits of distinct subtasks; the effect is the
   difference. The separation is the mean of the two, less the mean similarity across the conditions: over 0 where the
   condition changes the circuit.
2. Under the hypothesis that the condition makes no difference its labels can be exchanged (`conditions`; Fisher 1935,
   Pitman 1937). p = (1 + b) / (1 + m), with b of m relabellings at least as extreme (Phipson and Smyth 2010): two-sided
   for a difference, one-sided for the separation.
3. The interval of an effect comes from resampled subtasks, as that of a stability (`resampling`).

Conditions of different graph shapes have no similarity across them: then there are the differences of stability with
their intervals, and neither separation nor p.

All of it for the similarities as they are, and divided by their ceilings: a condition that is measured worse looks less
stable than it is.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from circuitdb.queries import arguments
from circuitdb.queries.columns import numbers, texts
from circuitdb.queries.comparison import EVERY_EDGE, Comparison
from circuitdb.queries.conditions import Conditions, relabelled, resampled
from circuitdb.queries.pairing import Mask, Matrix
from circuitdb.queries.resampling import LEAST, RESAMPLES, SEED, interval, pair_means
from circuitdb.queries.result import Result, count
from circuitdb.queries.similarity import Similarity

RELABELLINGS = 9_999
_FEW = 1_000  # relabellings as good as different, below which it is said what p can't be less than
_TINY = 1e-12  # by which equal effects may differ
Effects: TypeAlias = "dict[str, tuple[Matrix, Matrix]]"


def contrast(
    found: Similarity,
    two: Conditions,
    by: str,
    *,
    relabellings: int = RELABELLINGS,
    how: Comparison = EVERY_EDGE,
    unlike: str | None = None,
) -> Result:
    """One row a statistic: see `Database.compare`.

    `unlike` says why no circuit of the one condition can be compared with one of the other, if none can.
    """
    relabellings = arguments.amount("relabelling", relabellings)
    own = two.first[None].astype(np.float64)
    labels, weights = relabelled(two, relabellings if unlike is None else 0), resampled(two)
    observed, permuted = effects(found, two, own, 1 - own), effects(found, two, labels, 1 - labels)
    drawn = effects(found, two, weights * two.first, weights * ~two.first)
    n = min(len(np.unique(two.unit[side])) for side in (two.first, ~two.first))
    rows = []
    for name, (one, other) in observed.items():
        effect = float(one[0] - other[0])
        chance = permuted[name][0] - permuted[name][1]
        low, high = interval(effect, drawn[name][0] - drawn[name][1], n)
        rows.append((name, float(one[0]), float(other[0]), effect, low, high, _p(name, effect, chance)))
    columns = list(zip(*rows, strict=True))
    table = pa.table(
        {
            "statistic": texts(columns[0]),
            "first": numbers(np.array(columns[1])),
            "second": numbers(np.array(columns[2])),
            "effect": numbers(np.array(columns[3])),
            "low": numbers(np.array(columns[4])),
            "high": numbers(np.array(columns[5])),
            "p": numbers(np.array(columns[6])),
        }
    )
    title = f"{by} {two.names[0]} (first) against {two.names[1]} (second): {how.words}, {found.on} scores"
    notes = [*found.notes_elsewhere, *_explained(two, relabellings, unlike)]
    return Result(table, title, tuple(dict.fromkeys(notes)))


def effects(found: Similarity, two: Conditions, first: Matrix, second: Matrix) -> Effects:
    """Of each statistic the two values whose difference is the effect, [sample] each.

    `first` and `second` [sample, circuit] are how often each circuit counts in the conditions.
    """
    apart = two.unit[:, None] != two.unit[None, :]
    known = apart & ~np.isnan(found.matrix)
    both = known & ~np.isnan(found.ceiling)
    ceilings = _means(found.ceiling, both, first, second)
    statistics: Effects = {"ceiling": ceilings[:2]}
    for name, mask in (("", known), ("corrected ", both)) if found.reliability.correctable else (("", known),):
        means = _means(found.matrix, mask, first, second)
        if name:
            with np.errstate(invalid="ignore", divide="ignore"):
                means = means[0] / ceilings[0], means[1] / ceilings[1], means[2] / ceilings[2]
        statistics[f"{name}stability"] = means[:2]
        statistics[f"{name}separation"] = (means[0] + means[1]) / 2, means[2]
    return statistics


def _means(values: Matrix, allowed: Mask, first: Matrix, second: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """The mean within the first condition, within the second, and across them, [sample] each."""
    return (
        pair_means(values, allowed, first),
        pair_means(values, allowed, second),
        pair_means(values, allowed, first, second),
    )


def _p(name: str, effect: float, chance: Matrix) -> float:
    known = chance[np.isfinite(chance)]
    if math.isnan(effect) or not known.size:
        return math.nan
    extreme = known >= effect - _TINY if "separation" in name else np.abs(known) >= abs(effect) - _TINY
    return float(1 + np.count_nonzero(extreme)) / (1 + known.size)


def _explained(two: Conditions, relabellings: int, unlike: str | None) -> list[str]:
    n_shared, ways = int(np.count_nonzero(two.shared)), two.relabellings
    how = f"within the {count(n_shared, 'subtask')} that both have" if n_shared else "between the subtasks"
    intervals = f"intervals are of nominally 95%, from {RESAMPLES:,} resamples of the subtasks (seed {SEED})."
    if unlike is not None:
        notes = [
            f"{unlike}. Each stability is over the pairs of its own condition; the separation takes pairs across them, "
            "and p exchanges circuits between them, so that both are NULL.",
            f"The {intervals}",
        ]
    else:
        notes = [
            f"p: {relabellings:,} random exchanges of the labels {how} (seed {SEED}), two-sided, but one-sided for the "
            f"separation; the {intervals}",
            "first and second of a separation are the mean similarity within the conditions and across them.",
        ]
    if unlike is None and two.least_p > 1 / _FEW:
        opposite = " and of each the opposite is as extreme," if two.least_p * ways > 1.5 else ""
        notes.append(
            f"There are only {ways:,} different exchanges,{opposite} so that p can't be below {two.least_p:.2g}."
        )
    if min(len(np.unique(two.unit[side])) for side in (two.first, ~two.first)) < LEAST:
        notes.append(f"An interval takes {LEAST} subtasks of each condition or more; low and high are NULL for fewer.")
    return notes
