"""Two conditions of a study, tested by `Database.compare`: stability of each, and whether one changes the circuit."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from circuitdb.queries import studyplots
from circuitdb.queries.database import Database
from circuitdb.queries.partition import GROUP_FIELDS, value_of
from circuitdb.queries.result import Result, count
from circuitdb.queries.studies.findings import Figure, Finding
from circuitdb.queries.studies.sentences import interval, joined, listed, number, p_value
from circuitdb.queries.studies.subjects import Subject

Names = tuple[str, str]
_LEVEL = 0.05


def both(subject: Subject, by: str, values: Names) -> bool:
    """Whether there are circuits of both conditions, of one of them two."""
    found = [sum(str(value_of(member, by)) == value for member in subject.members) for value in values]
    return min(found) > 0 and max(found) > 1


def separation(db: Database, subject: Subject, by: str, values: Names) -> str:
    """A sentence: are circuits of one condition more alike than those of both?"""
    if not both(subject, by, values):
        return ""
    found = _rows(db.compare(by, values, on=subject.on, circuits=subject.selection.ids))
    effect, low, high, p = (found["separation"][name] for name in ("effect", "low", "high", "p"))
    if math.isnan(effect):
        return ""
    more = "more" if effect > 0 else "less"
    return (
        f"Over all of them circuits of one condition are {number(abs(effect))} {more} alike than circuits of the two"
        f"{interval(low, high)}, {p_value(p)} by exchanging the conditions."
    )


def stability(db: Database, subject: Subject, by: str, values: Names, words: Names) -> Finding:
    """How stable is the circuit within each of two conditions, the first less the second?"""
    result = db.compare(by, values, on=subject.on, circuits=subject.selection.ids)
    found = _rows(result)
    plain, ceiling, corrected = (found.get(name) for name in ("stability", "ceiling", "corrected stability"))
    question = f"Is the circuit as stable {words[0]} as {words[1]}?"
    command = subject.command("compare", "--by", by, *(part for value in values for part in ("--value", value)))
    if plain is None or math.isnan(plain["effect"]):
        answer = "That can't be said: stability takes two subtasks of each condition."
        return Finding(question, answer, (result,), commands=(command,), subject=subject.name)
    one, two = plain["first"], plain["second"]
    said = f"Stability is {number(one)} {words[0]} and {number(two)} {words[1]}"
    if ceiling is not None and not math.isnan(ceiling["first"] + ceiling["second"]):
        said += f", where noise allows {number(ceiling['first'])} and {number(ceiling['second'])}"
    difference = f"The difference is {number(plain['effect'])}{interval(plain['low'], plain['high'])}, "
    difference += f"{p_value(plain['p'])}."
    noise = ""
    if corrected is not None and not math.isnan(corrected["effect"]):
        noise = f"Corrected for noise it is {number(corrected['effect'])}"
        noise += f"{interval(corrected['low'], corrected['high'])}, {p_value(corrected['p'])}."
    within = _within(db, subject, by, dict(zip(values, words, strict=True)))
    return Finding(
        question,
        joined([subject.warning, _verdict(subject, plain, corrected, words), f"{said}.", difference, noise]),
        (within, result),
        (_figure(within, by, dict(zip(values, words, strict=True))),),
        tuple(note for note in result.notes if "can't be below" in note),
        (subject.command("stability", *(() if by in GROUP_FIELDS else ("--by", by))), command),
        subject.name,
    )


def _verdict(subject: Subject, plain: dict[str, float], corrected: dict[str, float] | None, words: Names) -> str:
    """The answer in a word, by the corrected stabilities where there are some."""
    best = plain if corrected is None or math.isnan(corrected["p"]) else corrected
    if subject.too_noisy or math.isnan(best["p"]):
        return ""
    if best["p"] >= _LEVEL:
        return "That they differ can't be told."
    return f"It is {'more' if best['effect'] > 0 else 'less'} stable {words[0]}."


def _within(db: Database, subject: Subject, by: str, words: dict[str, str]) -> Result:
    """The stability of each condition with its interval: a row a condition, and a way of scoring."""
    names = () if by in GROUP_FIELDS else (by,)
    found = db.stability(by=names, on=subject.on, circuits=subject.selection.ids)
    kept = [str(value) in words for value in found.table[by].to_pylist()]
    return Result(found.table.filter(pa.array(kept, pa.bool_())), found.title, found.notes)


def _figure(within: Result, by: str, words: dict[str, str]) -> Figure:
    labels = [words[str(value)] for value in within.table[by].to_pylist()]
    value, low, high, ceiling = (
        np.array([math.nan if v is None else v for v in within.table[name].to_pylist()], np.float64)
        for name in ("stability", "low", "high", "ceiling")
    )
    seen = listed(f"{label} {number(float(v))}" for label, v in zip(labels, value, strict=True))
    return Figure(
        "stability",
        "Stability in each condition with its 95% interval from resampled subtasks; bar: its ceiling.",
        f"{count(len(labels), 'dot')}: {seen}.",
        lambda: studyplots.intervals(labels, value, low, high, "stability", limits=ceiling),
    )


def _rows(result: Result) -> dict[str, dict[str, float]]:
    """Of each statistic its numbers, NaN where there is none."""
    return {
        str(row["statistic"]): {
            name: math.nan if value is None else float(str(value)) for name, value in row.items() if name != "statistic"
        }
        for row in result.rows()
    }
