"""Several models, or checkpoints of one: is the circuit more stable where the model is better, or trained longer?

Models stand in the order in which the question names them; else in that of their names, numbers within them as numbers,
so that step 1000 comes before step 8000.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np
import pyarrow as pa

from circuitdb.queries import studyplots
from circuitdb.queries.columns import numbers, texts
from circuitdb.queries.database import Database
from circuitdb.queries.filters import Where
from circuitdb.queries.groupnames import group_names
from circuitdb.queries.pairing import Matrix
from circuitdb.queries.proportions import holm
from circuitdb.queries.result import Result, count
from circuitdb.queries.selection import Group, Member, Selection
from circuitdb.queries.studies import report_of
from circuitdb.queries.studies.commands import command, filters
from circuitdb.queries.studies.findings import Figure, Finding, Findings
from circuitdb.queries.studies.sentences import interval, joined, listed, number, p_value, percent
from circuitdb.queries.studies.subjects import Subject, chosen, subjects

_KEY = ("Is the circuit as stable in all models?",)
_ENOUGH, _FEW = 0.5, 6


def findings(db: Database, *, on: str = "signed", **where: Unpack[Where]) -> Findings:
    """Stability and accuracy by model or revision, and their differences tested, one set of findings a task and way.

    `on` is signed or magnitude, as in `Database.similarity`; the filters are those of all questions.
    """
    selection, everything = chosen(db, where, lambda _: True, "any task")
    found = across(db, selection, everything, on=on)
    if len({finding.subject for finding in found}) == 1:
        found = [replace(finding, subject="") for finding in found]
    if selection.members and not found:
        names = listed(dict.fromkeys(member.group.model for member in selection.members))
        answer = f"There is one model, {names}; a comparison takes circuits of two, on the same task and scored alike."
        found = [Finding(_KEY[0], answer)]
    title = "Models and checkpoints: where is the circuit stable?"
    return report_of.assembled(db, "training", title, found, selection, _KEY)


def across(db: Database, selection: Selection, everything: Selection, *, on: str) -> list[Finding]:
    """The findings of every task and way of scoring that several models have; none where none has."""
    parts: dict[Group, list[Member]] = {}
    for member in selection.members:
        parts.setdefault(replace(member.group, model_id=0, model="", revision=None), []).append(member)
    shared = {way: members for way, members in parts.items() if len({m.group.model_id for m in members}) > 1}
    names = {way: name.removeprefix(", ") for way, name in group_names(shared).items()}
    found = []
    for way, members in shared.items():
        models = list(dict.fromkeys(member.group for member in members))
        each = {group.model: [member for member in members if member.group == group] for group in models}
        title = f"All models, {names[way]}" if len(shared) > 1 else "All models"
        found += _findings(db, title, subjects(db, each, everything, on=on), everything, on)
    return found


def _findings(db: Database, title: str, models: Sequence[Subject], everything: Selection, on: str) -> list[Finding]:
    together = Selection(tuple(member for subject in models for member in subject.members))
    options = filters(together, everything)
    curve, table = _curve(db, title, models, options, together, on)
    return [curve, _differences(db, title, models, options, on), *_correlated(title, table, options)]


def _curve(
    db: Database, title: str, models: Sequence[Subject], options: tuple[str, ...], together: Selection, on: str
) -> tuple[Finding, pa.Table]:
    """Stability and accuracy, model by model."""
    result = db.stability(circuits=together.ids, on=on)
    accuracy = np.array([_mean(subject.accuracies.value) for subject in models])
    names = [subject.name for subject in models]
    order = [result.table["model"].to_pylist().index(name) for name in names]
    rows = result.table.take(pa.array(order))
    column = {
        name: np.array([math.nan if v is None else v for v in rows[name].to_pylist()], np.float64)
        for name in ("stability", "low", "high", "ceiling", "corrected", "median_reliability")
    }
    table = pa.table(
        {
            "model": texts(names),
            "n_subtasks": rows["n_subtasks"],
            **{name: numbers(values) for name, values in column.items()},
            "examples_needed": rows["examples_needed"],
            "accuracy": numbers(accuracy),
        }
    )
    said = [
        f"{name}: stability {number(column['stability'][i])}{interval(column['low'][i], column['high'][i])}"
        + ("" if math.isnan(column["ceiling"][i]) else f" under a ceiling of {number(column['ceiling'][i])}")
        + ("" if math.isnan(accuracy[i]) else f", accuracy {percent(accuracy[i])}")
        for i, name in enumerate(names)
    ]
    shown = said if len(said) <= 6 else [said[0], said[-1]]
    noisy = [name for name, r in zip(names, column["median_reliability"], strict=True) if not r >= _ENOUGH]
    limit = f"median reliability under {_ENOUGH}, or unknown"
    warning = f"The circuits of {listed(noisy)} are too noisy to tell ({limit})." if noisy else ""
    figure = Figure(
        "training",
        "Stability of each model with its 95% interval and its ceiling, above its accuracy.",
        f"{count(len(names), 'model')}: stability from {number(column['stability'][0])} to "
        f"{number(column['stability'][-1])}, accuracy from {percent(accuracy[0])} to {percent(accuracy[-1])}.",
        lambda: studyplots.training(
            names, column["stability"], column["low"], column["high"], column["ceiling"], accuracy, "stability"
        ),
    )
    finding = Finding(
        _KEY[0],
        joined([warning, f"{'; '.join(shown)}."]),
        (Result(table, f"Stability and accuracy of {count(len(names), 'model')}"),),
        (figure,),
        result.notes,
        (command("stability", options, *_on(on)),),
        title,
    )
    return finding, table


def _differences(db: Database, title: str, models: Sequence[Subject], options: tuple[str, ...], on: str) -> Finding:
    """Each model less the one before it, and the last less the first."""
    pairs = list(itertools.pairwise(range(len(models))))
    pairs += [(0, len(models) - 1)] if len(models) > 2 else []
    rows = []
    for first, second in pairs:
        one, two = models[second], models[first]
        alike = one.members[0].shape == two.members[0].shape
        rows.append(_compared(db, one, two, on) if alike else _NOTHING)
    effect, low, high, p, corrected, corrected_p = np.array(rows, np.float64).T
    adjusted, n_apart = holm(p), sum(np.isnan(p))
    names = [(models[second].name, models[first].name) for first, second in pairs]
    table = pa.table(
        {
            "model": texts(one for one, _ in names),
            "less": texts(two for _, two in names),
            "difference": numbers(effect),
            "low": numbers(low),
            "high": numbers(high),
            "p": numbers(p),
            "p_of_all": numbers(adjusted),
            "corrected_difference": numbers(corrected),
            "corrected_p": numbers(corrected_p),
        }
    )
    told = [
        f"{one} is {'more' if effect[i] > 0 else 'less'} stable than {two}, by {number(abs(effect[i]))}"
        f"{interval(low[i], high[i])}, {p_value(adjusted[i])}"
        for i, (one, two) in enumerate(names)
        if adjusted[i] < 0.05
    ]
    answer = f"{'; '.join(told)}." if told else "No difference in stability is more than chance could make."
    caveats = ["p is by exchanging the models within a subtask, p_of_all the same for all pairs taken together (Holm)."]
    if n_apart:
        caveats.append(
            f"{count(n_apart, 'pair is', 'pairs are')} not tested: the models are of different graph shapes, so that "
            "circuits can't be exchanged between them, or have fewer than two subtasks each."
        )
    return Finding(
        "Do the models differ in stability?",
        answer,
        (Result(table, f"Differences in stability: {count(len(pairs), 'pair')}"),),
        caveats=tuple(caveats),
        commands=tuple(
            command("compare --by model", options, "--value", one, "--value", two, *_on(on))
            for one, two in names[:_FEW]
        ),
        subject=title,
    )


_NOTHING = (math.nan,) * 6


def _compared(db: Database, one: Subject, two: Subject, on: str) -> tuple[float, ...]:
    """(difference, low, high, p, corrected difference, its p) of two models of one shape."""
    ids = (*one.selection.ids, *two.selection.ids)
    found = {row["statistic"]: row for row in db.compare("model", (one.name, two.name), on=on, circuits=ids).rows()}
    plain, corrected = found["stability"], found.get("corrected stability", {})
    values = [plain["effect"], plain["low"], plain["high"], plain["p"], corrected.get("effect"), corrected.get("p")]
    return tuple(math.nan if value is None else float(str(value)) for value in values)


def _correlated(title: str, table: pa.Table, options: tuple[str, ...]) -> list[Finding]:
    """Does stability go with accuracy over the models?"""
    from circuitdb.queries.correlation import Points, correlation

    columns = [
        np.array([math.nan if v is None else v for v in table[name].to_pylist()], np.float64)
        for name in ("stability", "ceiling", "accuracy")
    ]
    points = Points(title, tuple(table["model"].to_pylist()), *columns)
    found = correlation([points], over="models", metric="circuitdb.accuracy", on="signed")
    (row,) = found.rows()
    if row["rho"] is None or int(str(row["n"])) < 3:
        return []
    low, high = (math.nan if row[name] is None else float(str(row[name])) for name in ("low", "high"))
    rho, p = float(str(row["rho"])), float(str(row["p_value"]))
    verdict = ("Yes" if rho > 0 else "The other way round") if p < 0.05 else "Not that can be told"
    said = f"{verdict}: over {row['n']} models the rank correlation of stability with accuracy is {number(rho)}"
    return [
        Finding(
            "Are the models with the more stable circuits more often right?",
            f"{said}{interval(low, high)}, {p_value(p)}.",
            caveats=found.notes,
            commands=(command("correlate --over models", options, "--with", "circuitdb.accuracy"),),
            subject=title,
        )
    ]


def _on(on: str) -> tuple[str, ...]:
    return ("--on", on) if on != "signed" else ()


def _mean(values: Matrix) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else math.nan
