"""The boolean study of Sun (2025): do parentheses change the circuit, and do they cost accuracy?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb.queries import exchanges, studyplots
from circuitdb.queries.columns import numbers, texts
from circuitdb.queries.database import Database
from circuitdb.queries.filters import Where
from circuitdb.queries.pairing import Matrix
from circuitdb.queries.proportions import Difference, difference, holm, mean_difference, wilson
from circuitdb.queries.result import Result, count
from circuitdb.queries.selection import Member
from circuitdb.queries.studies import conditions, hard, quality, report_of, training
from circuitdb.queries.studies.findings import Figure, Finding, Findings
from circuitdb.queries.studies.sentences import interval, joined, number, p_value, points
from circuitdb.queries.studies.subjects import Subject, by_group, chosen, subjects

CHANCE = 0.5  # two answers, as many of each
_PARENTHESES, _OPERATORS, _VALUES = "parentheses", "operators", ("False", "True")
_KEY = (
    "How often is the model right?",
    "Are the circuits measured well enough to be compared?",
    "Do parentheses change the circuit?",
    "Do parentheses cost accuracy?",
)  # of which the summary has the first sentences


@dataclass(frozen=True)
class Pair:
    """Two circuits of the same operators and length: their places, and what they have in common in words."""

    operators: str
    words: str
    without: int
    with_: int


def findings(db: Database, *, on: str = "signed", **where: Unpack[Where]) -> Findings:
    """What the circuits of boolean expressions say of a model, one set of findings a model and scoring.

    `on` is signed or magnitude, as in `Database.similarity`; the filters are those of all questions. Raises UsageError
    where there are circuits, but none of subtasks that are with or without parentheses (`parentheses`, `operators`).
    """
    selection, everything = chosen(db, where, _fits, "boolean expressions with and without parentheses (boolean)")
    parts = subjects(db, by_group(selection), everything, on=on, intervals=True)
    found = [one for subject in parts for one in _findings(db, subject)]
    found += training.across(db, selection, everything, on=on)
    return report_of.assembled(
        db, "boolean", "Boolean expressions: what do parentheses change?", found, selection, _KEY
    )


def pairs(members: Sequence[Member]) -> list[Pair]:
    """The circuits without parentheses, each with those of the same operators and length that have them."""
    found = []
    for i, without in enumerate(members):
        if without.parameters[_PARENTHESES]:
            continue
        for j, with_ in enumerate(members):
            same = all(without.parameters.get(name) == with_.parameters.get(name) for name in (_OPERATORS, "length"))
            if same and with_.parameters[_PARENTHESES]:
                depth, length = with_.parameters.get("depth"), with_.parameters.get("length")
                words = [str(without.parameters[_OPERATORS])]
                words += [f"length {length}"] if length is not None else []
                words += [f"depth {depth}"] if depth is not None else []
                found.append(Pair(words[0], ", ".join(words), i, j))
    return found


def _fits(member: Member) -> bool:
    return isinstance(member.parameters.get(_PARENTHESES), bool) and _OPERATORS in member.parameters


def _findings(db: Database, subject: Subject) -> list[Finding]:
    first = [quality.accuracy(subject, (_accuracy_figure(subject),), chance=CHANCE), quality.reliability(subject)]
    if subject.n < 2:
        return [*first, report_of.nothing_to_compare(subject)]
    together = pairs(subject.members)
    tested = []
    if conditions.both(subject, _PARENTHESES, _VALUES):
        tested = [conditions.stability(db, subject, _PARENTHESES, _VALUES, ("without parentheses", "with them"))]
    return [
        *first,
        _circuits(db, subject, together),
        _accuracies(subject, together),
        *tested,
        quality.alike(subject),
        hard.contained(db, subject),
        hard.core(db, subject),
    ]


def _circuits(db: Database, subject: Subject, together: Sequence[Pair]) -> Finding:
    """Is the circuit with parentheses another one?"""
    question = "Do parentheses change the circuit?"
    if not together:
        answer = "That can't be said: no operators and length are there both with and without parentheses."
        return Finding(question, answer, subject=subject.name)
    found = subject.similarity
    first, second = (np.array([getattr(pair, side) for pair in together]) for side in ("without", "with_"))
    nothing = np.full(found.matrix.shape, math.nan)
    bounds = found.bounds
    low, high, least, most = (
        (nothing if bounds is None else getattr(bounds, name))[first, second]
        for name in ("low", "high", "corrected_low", "corrected_high")
    )
    plain, ceiling, corrected = (values[first, second] for values in (found.matrix, found.ceiling, found.corrected))
    sentences = []
    for operators, rows in _by_operators(together).items():
        if len(rows) == 1:
            (i,) = rows
            sentences.append(_change(together[i].words, plain[i], ceiling[i], corrected[i], least[i], most[i]))
        else:
            sentences.append(_changes(operators, first[rows], plain[rows], ceiling[rows], most[rows]))
    test = conditions.separation(db, subject, _PARENTHESES, _VALUES)
    table = pa.table(
        {
            "expressions": texts(pair.words for pair in together),
            "without": texts(found.labels[i] for i in first),
            "with": texts(found.labels[j] for j in second),
            "similarity": numbers(plain),
            "low": numbers(low),
            "high": numbers(high),
            "reliability_without": numbers(found.reliabilities[first]),
            "reliability_with": numbers(found.reliabilities[second]),
            "ceiling": numbers(ceiling),
            "corrected": numbers(corrected),
            "corrected_low": numbers(least),
            "corrected_high": numbers(most),
        }
    )
    figure = Figure(
        "parentheses",
        "Similarity of the circuits without and with parentheses, with 95% intervals; bar: its ceiling.",
        f"{count(len(together), 'dot')}, from {number(float(np.nanmin(plain, initial=1)))} to "
        f"{number(float(np.nanmax(plain, initial=-1)))}.",
        lambda: studyplots.intervals([p.words for p in together], plain, low, high, "similarity", limits=ceiling),
    )
    folds = () if bounds is not None else ("An interval of a pair takes three folds of the examples of every circuit.",)
    return Finding(
        question,
        joined([subject.warning, *sentences, test]),
        (Result(table, f"Circuits without and with parentheses: {count(len(together), 'pair')}"),),
        (figure,),
        (_MEANING, *folds),
        (subject.command("similarity", "--long"), subject.command("compare", "--by", _PARENTHESES)),
        subject.name,
    )


_MEANING = "Parentheses change what an expression means, so another circuit for them is no fault of the model."


def _change(words: str, plain: float, ceiling: float, corrected: float, least: float, most: float) -> str:
    if math.isnan(plain):
        return f"With {words} the two circuits have no similarity."
    said = f"With {words} the two circuits have a similarity of {number(plain)}"
    if math.isnan(ceiling):
        return f"{said}; what noise allows is not known."
    said += f" where noise allows {number(ceiling)}, corrected {number(corrected)}{interval(least, most)}"
    if math.isnan(most):
        return f"{said}."
    if most < 1:
        return f"{said}: the circuit changes, beyond noise."
    return f"{said}: that it stays the same can't be excluded."


def _changes(operators: str, without: npt.NDArray[np.int64], plain: Matrix, ceiling: Matrix, most: Matrix) -> str:
    """The same of several lengths or depths."""
    own, bound = (exchanges.clustered(values, without) for values in (plain, ceiling))
    mean, limit = exchanges.mean(own), exchanges.mean(bound)
    lacking = np.isnan(plain + ceiling)
    both = (exchanges.clustered(np.where(lacking, math.nan, values), without) for values in (plain, ceiling))
    share = exchanges.ratio(*both)
    n_pairs = int(np.count_nonzero(~np.isnan(plain)))
    if not n_pairs:
        return f"With {operators} no two circuits have a similarity."
    said = (
        f"With {operators} the two circuits of {count(n_pairs, 'pair')} have a mean similarity of {number(mean.mean)}"
    )
    said += f"{interval(mean.low, mean.high)}"
    if not share.n:
        return f"{said}; what noise allows is not known."
    said += f" where noise allows {number(limit.mean)}, corrected {number(share.mean)}{interval(share.low, share.high)}"
    known = most[~np.isnan(most)]
    beyond = f"; the circuit changes beyond noise in {int((known < 1).sum())} of {len(known)}" if len(known) else ""
    return f"{said}{beyond}."


def _by_operators(together: Sequence[Pair]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for i, pair in enumerate(together):
        found.setdefault(pair.operators, []).append(i)
    return found


def _accuracies(subject: Subject, together: Sequence[Pair]) -> Finding:
    """What do parentheses cost?"""
    question = "Do parentheses cost accuracy?"
    accuracies = subject.accuracies
    known = [pair for pair in together if accuracies.known[pair.without] and accuracies.known[pair.with_]]
    if not known:
        answer = "That can't be said: no two circuits without and with parentheses both have an accuracy."
        return Finding(question, answer, subject=subject.name)
    found = [
        difference(accuracies.value[p.without], accuracies.total(p.without), accuracies.value[p.with_],
                   accuracies.total(p.with_))
        for p in known
    ]  # fmt: skip
    sentences = []
    for operators, rows in _by_operators(known).items():
        gaps = [found[i] for i in rows]
        words = known[rows[0]].words if len(rows) == 1 else f"{operators}, the mean of {len(rows)} pairs,"
        sentences.append(_cost(words, gaps, [known[i].without for i in rows]))
    effect, stderr, low, high, p = (
        np.array([getattr(gap, name) for gap in found], np.float64) for name in ("effect", "stderr", "low", "high", "p")
    )
    table = pa.table(
        {
            "expressions": texts(pair.words for pair in known),
            "accuracy_without": numbers(_of(accuracies.value, [pair.without for pair in known])),
            "accuracy_with": numbers(_of(accuracies.value, [pair.with_ for pair in known])),
            "cost": numbers(effect),
            "stderr": numbers(stderr),
            "low": numbers(low),
            "high": numbers(high),
            "p": numbers(p),
            "p_of_all": numbers(holm(p)),
        }
    )
    figure = Figure(
        "cost",
        "Accuracy without parentheses less that with them, with 95% intervals.",
        f"{count(len(known), 'dot')} with intervals, from {points(float(effect.min()))} to "
        f"{points(float(effect.max()))}.",
        lambda: studyplots.intervals([p.words for p in known], effect, low, high, "difference of accuracies", line=0.0),
    )
    note = (
        "low and high are 95% intervals (Newcombe), p is Fisher's exact one, p_of_all the same for all pairs taken "
        "together (Holm)."
    )
    return Finding(
        question,
        joined(sentences),
        (Result(table, f"Accuracy without less that with parentheses: {count(len(known), 'pair')}", (note,)),),
        (figure,),
        commands=(subject.command("evals"),),
        subject=subject.name,
    )


def _cost(words: str, gaps: Sequence[Difference], without: Sequence[int]) -> str:
    """What parentheses cost with one set of operators, over its lengths and depths."""
    if len(set(without)) == len(gaps):
        gap = gaps[0] if len(gaps) == 1 else mean_difference(gaps)
        effect, low, high, p = gap.effect, gap.low, gap.high, gap.p
    else:  # several depths stand against one circuit without parentheses
        mean = exchanges.mean_gap(exchanges.clustered(np.array([gap.effect for gap in gaps]), np.array(without)))
        effect, low, high, p = mean.mean, mean.low, mean.high, mean.p
    test = interval(low, high, "points") + ("" if math.isnan(p) else f", {p_value(p)}")
    if not effect:
        return f"With {words} they cost nothing{test}."
    return f"With {words} they {'cost' if effect > 0 else 'gain'} {points(abs(effect))}{test}."


def _accuracy_figure(subject: Subject) -> Figure:
    """The accuracy on every subtask with its interval, and guessing as a line."""
    found = subject.accuracies
    bounds = np.array(
        [
            wilson(float(value), n) if n and not math.isnan(value) else (math.nan, math.nan)
            for value, n in zip(found.value, found.n.tolist(), strict=True)
        ]
    ).reshape(-1, 2)
    return Figure(
        "accuracy",
        "Accuracy on each subtask with 95% intervals (Wilson); dotted: guessing.",
        f"{count(int(found.known.sum()), 'dot')}, one a subtask.",
        lambda: studyplots.intervals(
            subject.selection.labels, found.value, bounds[:, 0], bounds[:, 1], "share of right answers", line=CHANCE
        ),
    )


def _of(values: Matrix, places: Sequence[int]) -> Matrix:
    return np.array([values[i] for i in places], np.float64)
