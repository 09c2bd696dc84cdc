"""The sports study of Sun (2025): does chain of thought raise stability, and accuracy with it?

Circuits are of sentences about athletes, parted by sport or at random, and of several prompt styles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
import pyarrow as pa

from circuitdb.queries import exchanges, studyplots
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.database import Database
from circuitdb.queries.exchanges import Mean
from circuitdb.queries.filters import Where
from circuitdb.queries.pairing import Matrix
from circuitdb.queries.proportions import Difference, difference, wilson
from circuitdb.queries.result import Result, count
from circuitdb.queries.selection import Member
from circuitdb.queries.studies import conditions, hard, quality, report_of, training
from circuitdb.queries.studies.boolean import CHANCE
from circuitdb.queries.studies.findings import Figure, Finding, Findings
from circuitdb.queries.studies.sentences import interval, joined, listed, number, p_value, percent, points
from circuitdb.queries.studies.subjects import Accuracies, Subject, chosen, subjects

THOUGHT, FEW_SHOT, ZERO_SHOT = "chain-of-thought", "few-shot", "zero-shot"
_STYLE, _LEVEL = "prompt_style", 0.05
_COMPARED = ((THOUGHT, FEW_SHOT), (THOUGHT, ZERO_SHOT), (FEW_SHOT, ZERO_SHOT))
_KEY = (
    "How often is the model right, with which prompt?",
    "Are the circuits measured well enough to be compared?",
    f"Is the circuit as stable with {THOUGHT} prompts as with {FEW_SHOT} ones?",
    f"Is the model more often right with {THOUGHT} prompts than with {FEW_SHOT} ones?",
)  # of which the summary has the first sentences
_PAPER = (
    "The paper has stability rise from about 0.55 to 0.75 on Llama-3.1-8B and from 0.60 to 0.80 on Gemma-2-9B, and "
    "accuracy from 75 to 88% and from 80 to 93%."
)
_RANDOM = (
    "Random parts hold questions of one kind: their circuits differ by sampling alone, so the stability over them is "
    "little else than a reliability."
)


def findings(db: Database, *, on: str = "signed", **where: Unpack[Where]) -> Findings:
    """What the circuits of the sports task say of a model, one set of findings a model and partition.

    `on` is signed or magnitude, as in `Database.similarity`; the filters are those of all questions. Raises UsageError
    where there are circuits, but none of subtasks that are a sport or a random part (`sport`, or `part` and `parts`).
    """
    selection, everything = chosen(db, where, lambda member: bool(_partition(member)), "sports, by sport or in parts")
    parts: dict[str, list[Member]] = {}
    several = len({member.group.model_id for member in selection.members}) > 1
    for member in selection.members:
        name = f"{member.group.model}, {_partition(member)}" if several else _partition(member)
        parts.setdefault(name, []).append(member)
    named = parts if len(parts) > 1 else dict(zip([""], parts.values(), strict=False))
    found = [one for subject in subjects(db, named, everything, on=on) for one in _findings(db, subject)]
    found += training.across(db, selection, everything, on=on)
    title = "Sports understanding: does chain of thought raise stability?"
    return report_of.assembled(db, "sports", title, found, selection, _KEY)


def _partition(member: Member) -> str:
    """By sport, in so many random parts, or neither."""
    if "sport" in member.parameters:
        return "by sport"
    return f"{member.parameters['parts']} random parts" if {"part", "parts"} <= set(member.parameters) else ""


def _findings(db: Database, subject: Subject) -> list[Finding]:
    styles = list(dict.fromkeys(str(member.group.prompt_style) for member in subject.members))
    first = [_accuracy(subject, styles), _reliability(subject, styles)]
    there = [pair for pair in _COMPARED if set(pair) <= set(styles)]
    if not there:
        known = listed(style for style in styles if style != "None") if styles != ["None"] else "none that is known"
        answer = f"These circuits are of one prompt style ({known}); nothing of it can be compared. "
        answer += "Ingest the same subtasks with another one."
        question = "Does chain of thought change the circuit?"
        return [*first, Finding(question, answer, subject=subject.name), hard.contained(db, subject)]
    found = list(first)
    for pair in there:
        found.append(_stability(db, subject, pair))
        found.append(_circuits(db, subject, pair))
        found.append(_gain(subject, pair))
    return [*found, hard.contained(db, subject)]


def _places(subject: Subject, style: str) -> list[int]:
    return [i for i, member in enumerate(subject.members) if str(member.group.prompt_style) == style]


def _accuracy(subject: Subject, styles: list[str]) -> Finding:
    question = _KEY[0]
    found = subject.accuracies
    rows = {style: _pooled(found, _places(subject, style)) for style in styles}
    known = {style: row for style, row in rows.items() if row.n_subtasks}
    if not known:
        answer = (
            "No accuracy is stored with these circuits, so nothing can be said of how good the model is at the task."
        )
        return Finding(question, answer, commands=(subject.command("evals"),), subject=subject.name)
    said = listed(
        f"{percent(row.share)}{interval(row.low, row.high, 'percent')} with {style} prompts"
        for style, row in known.items()
    )
    n_lacking = int(np.count_nonzero(~found.known))
    caveats = [f"No accuracy is stored for {count(n_lacking, 'circuit')}."] if n_lacking else []
    weak = [style for style, row in known.items() if row.share <= CHANCE + 0.1]
    if weak:
        caveats.append(
            f"Guessing would be right on {percent(CHANCE)}: with {listed(weak)} prompts the model hardly does the "
            "task, and its circuits there are of something else."
        )
    table = pa.table(
        {
            "prompt_style": texts(str(member.group.prompt_style) for member in subject.members),
            "subtask": texts(member.subtask for member in subject.members),
            "accuracy": numbers(found.value),
            "stderr": numbers(found.errors),
            "n": integers(found.total(i) for i in range(subject.n)),
        }
    )
    mean, low, high = (np.array([getattr(row, name) for row in known.values()]) for name in ("share", "low", "high"))
    figure = Figure(
        "accuracy",
        "Accuracy with each prompt style over all questions, with its 95% interval (Wilson); dotted: guessing.",
        f"{count(len(known), 'dot')}: {listed(f'{style} {percent(row.share)}' for style, row in known.items())}.",
        lambda: studyplots.intervals(list(known), mean, low, high, "share of right answers", line=CHANCE),
    )
    return Finding(question, f"The model is right on {said}.",
                   (Result(table, f"Accuracy of {count(subject.n, 'circuit')}"),), (figure,), tuple(caveats),
                   (subject.command("evals"),), subject.name)  # fmt: skip


def _reliability(subject: Subject, styles: list[str]) -> Finding:
    found = quality.reliability(subject)
    medians = {style: _median(subject.similarity.reliabilities[_places(subject, style)]) for style in styles}
    told = listed(f"{number(median)} with {style} prompts" for style, median in medians.items())
    return Finding(found.question, f"{found.answer} The medians are {told}." if len(styles) > 1 else found.answer,
                   found.tables, found.figures, found.caveats, found.commands, found.subject)  # fmt: skip


def _stability(db: Database, subject: Subject, pair: tuple[str, str]) -> Finding:
    words = (f"with {pair[0]} prompts", f"with {pair[1]} ones")
    found = conditions.stability(db, subject, _STYLE, pair, words)
    caveats = [*found.caveats, *quality.few(subject)]
    if any("part" in member.parameters for member in subject.members):
        caveats.append(_RANDOM)
    if pair == (THOUGHT, FEW_SHOT):
        caveats.append(_PAPER)
    return Finding(found.question, found.answer, found.tables, found.figures, tuple(caveats), found.commands,
                   found.subject)  # fmt: skip


def _circuits(db: Database, subject: Subject, pair: tuple[str, str]) -> Finding:
    """Is it another circuit?"""
    question = f"Is the circuit of {pair[0]} prompts another one than that of {pair[1]} ones?"
    found, members = subject.similarity, subject.members
    second = {members[i].subtask: i for i in _places(subject, pair[1])}
    both = [(i, second[members[i].subtask]) for i in _places(subject, pair[0]) if members[i].subtask in second]
    test = conditions.separation(db, subject, _STYLE, pair)
    if not both:
        answer = "No subtask has circuits of both. " + test
        return Finding(question, answer.rstrip(), subject=subject.name)
    rows, columns = np.array(both).T
    plain, ceiling = found.matrix[rows, columns], found.ceiling[rows, columns]
    overall, share = exchanges.mean(plain), exchanges.ratio(plain, ceiling)
    limit = exchanges.mean(ceiling).mean
    noise = "" if math.isnan(limit) else f" where noise allows {number(limit)}"
    said = f"On one subtask the two circuits have a mean similarity of {number(overall.mean)}"
    said += f"{interval(overall.low, overall.high)}{noise}, over {count(overall.n, 'subtask')}."
    if share.n:
        said += f" Corrected for noise that is {number(share.mean)}{interval(share.low, share.high)}."
    table = pa.table(
        {
            "subtask": texts(members[i].subtask for i in rows),
            "similarity": numbers(plain),
            "reliability_first": numbers(found.reliabilities[rows]),
            "reliability_second": numbers(found.reliabilities[columns]),
            "ceiling": numbers(ceiling),
            "corrected": numbers(found.corrected[rows, columns]),
        }
    )
    title = f"Circuits of {pair[0]} (first) and {pair[1]} (second) prompts: {count(len(both), 'subtask')}"
    return Finding(
        question,
        joined([subject.warning, said, test]),
        (Result(table, title),),
        caveats=_differing(subject, pair),
        commands=(subject.command("similarity", "--long"),),
        subject=subject.name,
    )


def _differing(subject: Subject, pair: tuple[str, str]) -> tuple[str, ...]:
    """What else than the prompt differs between the two."""
    fields = ("method", "steps", "metric", "positions", "shots", "seed", "examples", "ablation")
    groups = [{subject.members[i].group for i in _places(subject, style)} for style in pair]
    apart = [name for name in fields if len({getattr(group, name) for group in groups[0] | groups[1]}) > 1]
    if not apart:
        return ()
    return (f"They differ in {listed(name.replace('_', ' ') for name in apart)} too, not only in the prompt.",)


def _gain(subject: Subject, pair: tuple[str, str]) -> Finding:
    """What does it gain in accuracy, subtask by subtask?"""
    question = f"Is the model more often right with {pair[0]} prompts than with {pair[1]} ones?"
    found, members = subject.accuracies, subject.members
    second = {members[i].subtask: i for i in _places(subject, pair[1]) if found.known[i]}
    both = [
        (i, second[members[i].subtask])
        for i in _places(subject, pair[0])
        if found.known[i] and members[i].subtask in second
    ]
    if not both:
        answer = "That can't be said: no subtask has an accuracy with both."
        return Finding(question, answer, subject=subject.name)
    rows, columns = np.array(both).T
    effect: Matrix = found.value[rows] - found.value[columns]
    overall = exchanges.mean_gap(effect)
    table = pa.table(
        {
            "subtask": texts(members[i].subtask for i in rows),
            "accuracy_first": numbers(found.value[rows]),
            "accuracy_second": numbers(found.value[columns]),
            "gain": numbers(effect),
            "stderr": numbers(np.hypot(found.errors[rows], found.errors[columns])),
        }
    )
    note = (
        "stderr takes the questions of the two as independent; where they are the same ones it is too large, as a rule."
    )
    title = f"Accuracy with {pair[0]} (first) less that with {pair[1]} (second) prompts"
    figure = Figure(
        "gain",
        f"{title}, subtask by subtask.",
        f"{count(len(both), 'dot')}, mean {points(overall.mean)}.",
        lambda: studyplots.intervals([members[i].subtask for i in rows], effect, np.full(len(rows), math.nan),
                                     np.full(len(rows), math.nan), "difference of accuracies", line=0.0),
    )  # fmt: skip
    one, two = (_pooled(found, places.tolist()) for places in (rows, columns))
    gap = difference(one.share, one.n, two.share, two.n)
    return Finding(question, _gain_sentence(gap, overall), (Result(table, title, (note,)),), (figure,),
                   quality.few(subject), (subject.command("evals"),), subject.name)  # fmt: skip


def _gain_sentence(gap: Difference, overall: Mean) -> str:
    if math.isnan(gap.p):
        verdict = ""
    elif gap.p >= _LEVEL:
        verdict = "Not that can be told. "
    else:
        verdict = "Yes. " if gap.effect > 0 else "No, less often. "
    said = f"{verdict}Over all questions the difference is {points(gap.effect)}"
    test = "" if math.isnan(gap.p) else f"{interval(gap.low, gap.high, 'points')}, {p_value(gap.p)} by Fisher's test"
    return f"{said}{test}; over {count(overall.n, 'subtask')} it has {p_value(overall.p)} by sign flips."


@dataclass(frozen=True)
class _Pooled:
    """The accuracy over all questions of some circuits, with its 95% interval; `n` of them, 0 where not known."""

    share: float
    low: float
    high: float
    n: int
    n_subtasks: int


def _pooled(found: Accuracies, places: Sequence[int]) -> _Pooled:
    known = [i for i in places if found.known[i]]
    value, n = found.value[known], found.n[known]
    if not known:
        return _Pooled(math.nan, math.nan, math.nan, 0, 0)
    if not n.all():
        return _Pooled(float(value.mean()), math.nan, math.nan, 0, len(known))
    share, total = float((value * n).sum() / n.sum()), int(n.sum())
    return _Pooled(share, *wilson(share, total), total, len(known))


def _median(values: Matrix) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if known.size else math.nan
