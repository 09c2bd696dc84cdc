"""Is (a, b) like (b, a), and is one of them done better? Commutativity of the circuit and of the accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from circuitdb.queries import exchanges, studyplots
from circuitdb.queries.columns import numbers, texts
from circuitdb.queries.exchanges import Mean
from circuitdb.queries.generalisation import swapped
from circuitdb.queries.pairing import Matrix
from circuitdb.queries.proportions import Difference, difference, holm
from circuitdb.queries.result import Result, count
from circuitdb.queries.studies.digits import A, B, cell, joined_at
from circuitdb.queries.studies.findings import Figure, Finding
from circuitdb.queries.studies.quality import few
from circuitdb.queries.studies.sentences import interval, joined, listed, number, p_value, points
from circuitdb.queries.studies.subjects import Subject

Pair = tuple[int, int]
_LARGE = 0.2  # the paper's gap in accuracy
_LEVEL = 0.05  # of p, under which a difference is told
PAPER_PARTING = 0.53


@dataclass(frozen=True)
class Mirrored:
    """The circuits of (a, b) and (b, a), a > b: their places, and the difference of digits of each pair."""

    pairs: tuple[Pair, ...]
    apart: tuple[int, ...]

    @classmethod
    def of(cls, subject: Subject) -> Mirrored:
        """Those of a subject."""
        pairs = []
        for i, j, _ in swapped(subject.selection, A, B):
            a, b = cell(subject.members[i])
            pairs.append((i, j) if a > b else (j, i))
        return cls(tuple(pairs), tuple(cell(subject.members[i])[0] - cell(subject.members[i])[1] for i, _ in pairs))

    def of_each(self, values: Matrix) -> Matrix:
        """[pair], from [circuit, circuit]."""
        return np.array([values[i, j] for i, j in self.pairs], np.float64)


def commutativity(subject: Subject, mirrored: Mirrored) -> Finding:
    """Is (a, b) computed as (b, a)?"""
    question = "Is (a, b) computed by the circuit of (b, a)?"
    found = subject.similarity
    if not mirrored.pairs:
        answer = "That can't be said: no two subtasks are (a, b) and (b, a) with other digit counts."
        return Finding(question, answer, subject=subject.name)
    plain, ceiling, corrected = map(mirrored.of_each, (found.matrix, found.ceiling, found.corrected))
    test = exchanges.matching(found.matrix, mirrored.pairs, mirrored.apart)
    overall, limit = exchanges.mean(plain), exchanges.mean(ceiling)
    share = exchanges.ratio(plain, ceiling)
    parts = joined_at(found.matrix)
    apart = mirrored.of_each(parts)
    table = pa.table(
        {
            "first": texts(found.labels[i] for i, _ in mirrored.pairs),
            "second": texts(found.labels[j] for _, j in mirrored.pairs),
            "similarity": numbers(plain),
            "reliability_first": numbers(np.array([found.reliabilities[i] for i, _ in mirrored.pairs])),
            "reliability_second": numbers(np.array([found.reliabilities[j] for _, j in mirrored.pairs])),
            "ceiling": numbers(ceiling),
            "corrected": numbers(corrected),
            "one_family_up_to": numbers(apart),
        }
    )
    noise = "" if math.isnan(limit.mean) else f" where noise allows {number(limit.mean)}"
    said = (
        f"The circuits of (a, b) and (b, a) have a mean similarity of {number(overall.mean)}"
        f"{interval(overall.low, overall.high)}{noise}, over {count(overall.n, 'pair')}."
    )
    if share.n:
        said += f" Corrected for noise that is {number(share.mean)}{interval(share.low, share.high)}."
    return Finding(
        question,
        joined([subject.warning, said, _verdict(subject, share), _matched(test, found.matrix), _parted(apart)]),
        (Result(table, f"Circuits of (a, b) and (b, a): {count(len(mirrored.pairs), 'pair')}"),),
        caveats=(*few(subject), *_few_ways(test)),
        commands=(subject.command("commutativity", "--parameter", A, "--parameter", B),),
        subject=subject.name,
    )


def gaps(subject: Subject, mirrored: Mirrored) -> Finding:
    """How large is the gap in accuracy between (a, b) and (b, a)?"""
    question = "Is (a, b) answered as well as (b, a)?"
    accuracies = subject.accuracies
    pairs = [(i, j) for i, j in mirrored.pairs if accuracies.known[i] and accuracies.known[j]]
    if not pairs:
        return Finding(
            question, "That can't be said: no (a, b) and (b, a) both have an accuracy.", subject=subject.name
        )
    found = [
        difference(accuracies.value[i], accuracies.total(i), accuracies.value[j], accuracies.total(j)) for i, j in pairs
    ]
    labels = [(subject.selection.labels[i], subject.selection.labels[j]) for i, j in pairs]
    effect, stderr, low, high, p = (
        np.array([getattr(one, name) for one in found], np.float64) for name in ("effect", "stderr", "low", "high", "p")
    )
    together = exchanges.mean_gap(effect)
    table = pa.table(
        {
            "first": texts(a for a, _ in labels),
            "second": texts(b for _, b in labels),
            "accuracy_first": numbers(np.array([accuracies.value[i] for i, _ in pairs])),
            "accuracy_second": numbers(np.array([accuracies.value[j] for _, j in pairs])),
            "gap": numbers(effect),
            "stderr": numbers(stderr),
            "low": numbers(low),
            "high": numbers(high),
            "p": numbers(p),
            "p_of_all": numbers(holm(p)),
        }
    )
    figure = Figure(
        "accuracy-gaps",
        "Accuracy of (a, b), a longer, less that of (b, a), with 95% intervals.",
        f"{count(len(pairs), 'dot')}, from {points(float(effect.min()))} to {points(float(effect.max()))}.",
        lambda: studyplots.intervals(
            [f"{a} less {b}" for a, b in labels], effect, low, high, "difference of accuracies", line=0.0
        ),
    )
    return Finding(
        question,
        _gap_sentences(found, labels, holm(p), together),
        (Result(table, f"Accuracy of (a, b) less that of (b, a): {count(len(pairs), 'pair')}", (
            "low and high are 95% intervals (Newcombe), p is Fisher's exact one, p_of_all the same for all pairs "
            "taken together (Holm).",)),),
        (figure,),
        commands=(subject.command("commutativity", "--parameter", A, "--parameter", B),),
        subject=subject.name,
    )  # fmt: skip


def _verdict(subject: Subject, share: Mean) -> str:
    if subject.too_noisy or math.isnan(share.low):
        return ""
    if share.high < 1:
        return "So they are different circuits, beyond noise: the model does not treat the operands alike."
    return "So they may well be one circuit." if share.low > 0 else "So that can't be told from these pairs."


def _matched(test: exchanges.Matching, values: Matrix) -> str:
    if math.isnan(test.exchanged) or test.ways == 1:
        return ""
    what = "alike than circuits whose operands differ by as many digits, the other way round, in other subtasks"
    said = (
        f"They are more {what}"
        if test.p < _LEVEL
        else f"That they are more {what} can't be told"
        if test.mean > test.exchanged
        else f"They are no more {what}"
    )
    return f"{said} ({number(test.exchanged)} if the partners are exchanged; {p_value(test.p)})."


def _parted(apart: Matrix) -> str:
    known = apart[~np.isnan(apart)]
    if not known.size:
        return ""
    low, high = float(known.min()), float(known.max())
    if len(known) == 1:
        return f"The two are of one family up to alpha = {number(low)} (in the paper {PAPER_PARTING}, on Gemma-2-2B)."
    return (
        f"As alpha rises the first of them part at {number(low)}, and the last at {number(high)} (in the paper the two "
        f"families part at {PAPER_PARTING}, on Gemma-2-2B)."
    )


def _few_ways(test: exchanges.Matching) -> tuple[str, ...]:
    if test.ways == 1:
        return ("No two pairs differ by as many digits, so partners can't be exchanged and there is no p.",)
    if test.ways < 100:
        return (f"Partners can be exchanged in {test.ways} ways only, so p can't be below {1 / test.ways:.2g}.",)
    return ()


def _gap_sentences(
    found: Sequence[Difference], labels: Sequence[tuple[str, str]], adjusted: Matrix, together: Mean
) -> str:
    largest = max(range(len(found)), key=lambda i: abs(found[i].effect))
    gap, (first, second) = found[largest], labels[largest]
    better, worse = (first, second) if gap.effect > 0 else (second, first)
    if gap.effect == 0:
        return f"Yes, exactly: there is no gap in any of {count(len(found), 'pair')}."
    error = "" if math.isnan(gap.stderr) else f", standard error {points(gap.stderr)}"
    if not math.isnan(gap.p):
        # Of many gaps the largest is large by choice, so its p is the one that holds for all together.
        error += f", {p_value(float(adjusted[largest]))}{' with all pairs tested together' * (len(found) > 1)}"
    if len(found) == 1:
        return f"{better} is answered better than {worse} by {points(abs(gap.effect))}{error}."
    sentences = [
        f"The largest gap is {points(abs(gap.effect))}: {better} is answered better than {worse}{error}.",
        f"{_counted(sum(abs(one.effect) > _LARGE + 1e-9 for one in found), len(found))} over 20 points.",
    ]
    told = [labels[i] for i in np.flatnonzero(adjusted < _LEVEL).tolist()]
    if np.isnan(adjusted).all():
        sentences.append("How many questions they are of is not stored, so no gap can be tested.")
    elif told:
        names = listed(f"{a} and {b}" for a, b in told)
        sentences.append(f"More than chance, with all pairs tested together: {names}.")
    else:
        sentences.append("With all pairs tested together no gap is more than chance could make.")
    if together.n > 1:
        side = "higher" if together.mean > 0 else "lower" if together.mean < 0 else "apart"
        sentences.append(
            f"With the longer operand first accuracy is on average {points(abs(together.mean))} "
            f"{side}{interval(together.low, together.high, 'points')}, "
            f"{p_value(together.p)} by sign flips."
        )
    return joined(sentences)


def _counted(n: int, of: int) -> str:
    return f"None of {count(of, 'gap')} is" if not n else f"{n} of {count(of, 'gap')} {'is' if n == 1 else 'are'}"
