"""How good the model is, and how good its circuits are: what every other finding has to be read by."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from circuitdb.queries import plots, stability
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.reliability import enough
from circuitdb.queries.result import Result, count
from circuitdb.queries.studies.findings import Figure, Finding
from circuitdb.queries.studies.sentences import interval, joined, listed, number, percent
from circuitdb.queries.studies.subjects import ENOUGH, Subject

FEW = 10  # subtasks, below which a stability says little of the task
_BAD = 0.5
_SHOTS = (
    "All questions of a subtask stand behind the same shots, in all folds alike, and another subtask has others: "
    "reliability does not see what the choice of shots changes, so part of what differs beyond noise may be theirs. "
    "Shots drawn per example (--shots-drawn per-example) or several seeds tell."
)


def accuracy_table(subject: Subject) -> Result:
    """One row a circuit: subtask, accuracy, stderr, n."""
    found = subject.accuracies
    table = pa.table(
        {
            "subtask": texts(subject.selection.labels),
            "accuracy": numbers(found.value),
            "stderr": numbers(found.errors),
            "n": integers(found.total(i) for i in range(subject.n)),
        }
    )
    return Result(table, f"Accuracy on {count(subject.n, 'subtask')}")


def accuracy(subject: Subject, figures: tuple[Figure, ...] = (), *, chance: float | None = None) -> Finding:
    """How often is the model right? `chance` is the share of right answers of one who guesses."""
    found, labels = subject.accuracies, subject.selection.labels
    known = np.flatnonzero(found.known)
    if not len(known):
        answer = (
            "No accuracy is stored with these circuits, so nothing can be said of how good the model is at the task."
        )
        return Finding(
            "How often is the model right?", answer, commands=(subject.command("evals"),), subject=subject.name
        )
    value = found.value[known]
    mean = float(value.mean())
    best, worst = known[int(np.argmax(value))], known[int(np.argmin(value))]
    asked = int(found.n[known].sum())
    of = f" ({asked:,} questions in all)" if asked else ""
    ends = f", most often on {labels[best]} ({percent(found.value[best])}) and least on {labels[worst]} "
    ends = f"{ends}({percent(found.value[worst])})" if value.max() > value.min() else ""
    answer = (
        f"The model is right on {percent(mean)} of the questions, the mean of {count(len(known), 'subtask')}{of}{ends}."
    )
    return Finding(
        "How often is the model right?",
        answer,
        (accuracy_table(subject),),
        figures,
        (*_bad(value, chance), *_lacking(subject)),
        (subject.command("evals"),),
        subject.name,
    )


def reliability(subject: Subject) -> Finding:
    """Are the circuits measured well enough to be compared?"""
    found = subject.similarity.reliability
    known = ~np.isnan(found.whole)
    question = "Are the circuits measured well enough to be compared?"
    if subject.too_noisy:
        answer = f"No, they are too noisy to tell. {subject.too_noisy}" if known.any() else subject.too_noisy
    else:
        weak = [subject.selection.labels[i] for i in np.flatnonzero(known & (found.whole < ENOUGH))]
        exception = f" {listed(weak)} {'is' if len(weak) == 1 else 'are'} below {ENOUGH}." if weak else ""
        answer = (
            f"Yes. The median reliability is {number(found.median)}: two samples of the questions give circuits that "
            f"correlate at {number(found.median)}, and no comparison can be expected to exceed that by much.{exception}"
        )
    needed = enough(found, tuple(member.n_examples for member in subject.members))
    used = [member.n_examples for member in subject.members if member.n_examples is not None]
    if used and needed is not None and found.median < ENOUGH:
        answer += f" They have {np.median(used):g} now."
    fixed = any(m.group.shots and m.group.shots_drawn == "fixed" for m in subject.members)
    return Finding(question, answer, (subject.reliability(),), caveats=(_SHOTS,) if fixed else (),
                   commands=(subject.command("reliability"),), subject=subject.name)  # fmt: skip


def alike(subject: Subject) -> Finding:
    """Does the model use one circuit across the task: stability, with its interval and ceiling?"""
    found = subject.similarity
    part = stability.Measured(subject.selection, found, tuple(m.n_examples for m in subject.members))
    result = stability.stability({(subject.members[0].group, ()): part}, on=subject.on)
    (row,) = result.rows()
    value, low, high, ceiling, corrected, least, most = (
        math.nan if row[name] is None else float(str(row[name]))
        for name in ("stability", "low", "high", "ceiling", "corrected", "corrected_low", "corrected_high")
    )
    n_pairs = int(str(row["n_pairs"]))
    said = f"Two circuits of distinct subtasks have a mean similarity of {number(value)}{interval(low, high)}"
    if math.isnan(value):
        said = "No two circuits of distinct subtasks have a similarity."
    elif math.isnan(ceiling):
        said += f", over {count(n_pairs, 'pair')}; what noise allows is not known, for want of reliabilities."
    else:
        said += f", over {count(n_pairs, 'pair')}, where noise allows {number(ceiling)}."
        if not math.isnan(corrected):
            said += f" Corrected for noise that is {number(corrected)}{interval(least, most)}."
    verdict = ""
    if not subject.too_noisy and not math.isnan(least):
        if least >= 1:
            verdict = "That is one circuit for all of the task."
        elif most < 1:
            verdict = "So the subtasks do not all use one circuit."
        else:
            verdict = "So one circuit for all of the task can't be excluded."
    short = subject.n <= 16
    table = found.wide(corrected=False) if short else found.result()
    figures = [
        Figure(
            "similarity",
            "Similarity of every two circuits, with each one's reliability beside its row.",
            f"Heat map of {subject.n} by {subject.n} circuits; mean similarity of distinct subtasks {number(value)}.",
            lambda: plots.similarity(found),
        )
    ]
    if not math.isnan(ceiling):
        figures.append(
            Figure(
                "similarity-corrected",
                "The same, divided by what the two reliabilities allow; grey where one is not over 0.",
                f"Heat map of {subject.n} by {subject.n} circuits; corrected mean similarity {number(corrected)}.",
                lambda: plots.similarity(found, corrected=True),
            )
        )
    tables = [result, table]
    if short:
        wide = found.wide(corrected=True)
        tables.append(Result(wide.table, wide.title))  # its notes are those of the plain one
    return Finding(
        "Does the model use one circuit across the task?",
        joined([subject.warning, said, verdict]),
        tuple(tables),
        tuple(figures),
        (*few(subject), *parted(subject)),
        (subject.command("stability"), subject.command("similarity"), subject.command("similarity", "--corrected")),
        subject.name,
    )


def few(subject: Subject) -> tuple[str, ...]:
    """A warning where the task is parted into few subtasks."""
    n = len({member.subtask for member in subject.members})
    if n >= FEW:
        return ()
    return (f"These are {count(n, 'subtask')}, too few to say much of the whole task: intervals and p are rough.",)


def parted(subject: Subject) -> tuple[str, ...]:
    """A warning where the command at the terminal answers group by group, for unequal numbers of examples."""
    found = sorted({member.group.examples for member in subject.members if member.group.examples is not None})
    if len(found) < 2:
        return ()
    return (
        f"Here circuits of {listed([str(n) for n in found])} examples are taken together; at the terminal each number "
        "is a group of its own, so that the numbers differ.",
    )


def _bad(value: np.ndarray, chance: float | None) -> list[str]:
    """What must be said of a model that is bad at the task."""
    mean = float(value.mean())
    if chance is not None:
        if mean <= chance + 0.1:
            return [
                f"Guessing would be right on {percent(chance)}: the model hardly does the task, so its circuits are of "
                "something else than solving it."
            ]
        return []
    n_bad = int(np.count_nonzero(value < _BAD))
    if not n_bad:
        return []
    which = "all subtasks" if n_bad == len(value) else f"{n_bad} of {count(len(value), 'subtask')}"
    return [
        f"On {which} fewer than half of its answers are right: the circuits there are, for a good part, those of wrong "
        "answers."
    ]


def _lacking(subject: Subject) -> list[str]:
    lacking = [subject.selection.labels[i] for i in np.flatnonzero(~subject.accuracies.known)]
    return [f"No accuracy is stored for {listed(lacking)}."] if lacking else []
