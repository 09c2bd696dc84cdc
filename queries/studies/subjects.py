"""What a study is about: the circuits of one model, scored in one way, with their similarity and the accuracies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb.connection import reading
from circuitdb.errors import UsageError
from circuitdb.queries import arguments, named, reliability
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.database import Database
from circuitdb.queries.filters import Where
from circuitdb.queries.groupnames import TELLING, group_names
from circuitdb.queries.result import Result, count, enumeration
from circuitdb.queries.selection import Group, Member, Selection, select
from circuitdb.queries.similarity import Similarity
from circuitdb.queries.studies.commands import command, filters

Floats = npt.NDArray[np.float64]
ENOUGH = reliability.ENOUGH


@dataclass(frozen=True)
class Accuracies:
    """How often the model is right on each circuit's questions: [circuit], NaN and 0 where not known."""

    value: Floats
    n: npt.NDArray[np.int64]

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """[circuit]: whether there is an accuracy."""
        return ~np.isnan(self.value)

    def total(self, i: int) -> int | None:
        """How many questions the accuracy of a circuit is of; None where that is not known."""
        return int(self.n[i]) or None

    @property
    def errors(self) -> Floats:
        """[circuit]: sqrt(p (1 - p) / n)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.n > 0, np.sqrt(self.value * (1 - self.value) / self.n), np.nan)


@dataclass(frozen=True)
class Subject:
    """Circuits that a study asks about.

    Attributes:
        name: the model, and what tells it apart; empty where a study has one subject.
        selection: the circuits.
        similarity: of every two of them, on `on` scores.
        accuracies: of the model on each circuit's questions.
        options: what leaves these circuits at the terminal.
    """

    name: str
    selection: Selection
    similarity: Similarity
    accuracies: Accuracies
    options: tuple[str, ...]

    @property
    def members(self) -> tuple[Member, ...]:
        """The circuits."""
        return self.selection.members

    @property
    def on(self) -> str:
        """Signed or magnitude."""
        return self.similarity.on

    @property
    def n(self) -> int:
        """How many circuits."""
        return len(self.selection.members)

    @cached_property
    def too_noisy(self) -> str:
        """A sentence where nothing can be told from noise: the median reliability is under 0.5, or unknown."""
        if not self.n:
            return ""
        said = reliability.low(self.similarity.reliability, tuple(m.n_examples for m in self.members))
        return said or ""

    @property
    def warning(self) -> str:
        """The same in short, for what is said before the numbers of a comparison."""
        median = self.similarity.reliability.median
        known = "their reliability is not known" if math.isnan(median) else f"their median reliability is {median:.2f}"
        return f"These circuits are too noisy to tell: {known}." if self.too_noisy else ""

    def command(self, words: str, *more: str) -> str:
        """What gives a table at the terminal."""
        on = ("--on", self.on) if self.on != "signed" else ()
        return command(words, self.options, *on, *more)

    def reliability(self) -> Result:
        """One row a circuit: subtask, n_examples, reliability, examples_needed, reason."""
        whole = self.similarity.reliabilities
        needed = [reliability.examples_needed(float(r), m.n_examples) for r, m in zip(whole, self.members, strict=True)]
        table = pa.table(
            {
                "subtask": texts(self.selection.labels),
                "n_examples": integers(m.n_examples for m in self.members),
                "reliability": numbers(whole),
                "examples_needed": integers(needed),
                "reason": texts(self.similarity.reliability.reasons),
            }
        )
        return Result(table, f"Reliability of {count(self.n, 'circuit')}, {self.on} scores")


def chosen(db: Database, where: Where, fits: Callable[[Member], bool], what: str) -> tuple[Selection, Selection]:
    """(the circuits of a question that fit a study, all of the database).

    Where the question names several models, theirs stand in the order of the names. Raises UsageError where there are
    circuits, and none fits; `what` says of which task those are.
    """
    with reading(db.path, timeout=db.timeout) as connection:
        asked, everything = select(connection, where), select(connection, {})
    order = {name: place for place, name in enumerate(arguments.several("model", where.get("model"), numbers=False))}
    fitting = (member for member in asked.members if fits(member))
    members = tuple(sorted(fitting, key=lambda member: order.get(member.group.model, len(order))))
    if asked.members and not members:
        tasks = enumeration(dict.fromkeys(member.group.task for member in asked.members))
        raise UsageError(
            f"This study asks about {what}, but these circuits are of {tasks}; ingest some, or drop a filter."
        )
    return Selection(members, asked.notes), everything


def subjects(
    db: Database, parts: Mapping[str, Iterable[Member]], everything: Selection, *, on: str, intervals: bool = False
) -> list[Subject]:
    """A subject for each part, by its name; `intervals` where every circuit has the folds that they take."""
    found = []
    for name, members in parts.items():
        ids = [member.circuit_id for member in members]
        with reading(db.path, timeout=db.timeout) as connection:
            selection = _named(select(connection, {"circuits": ids}))
            rows = named.run(connection, "accuracies", circuits=selection.ids).to_pylist()
        folds = intervals and all(member.n_folds > 2 for member in selection.members)
        similarity = replace(db.similarity(circuits=ids, on=on, intervals=folds), labels=selection.labels)
        accuracies = _accuracies(rows, selection)
        found.append(Subject(name, selection, similarity, accuracies, filters(selection, everything)))
    return found


def by_group(selection: Selection, part: Callable[[Member], str] = lambda _: "") -> dict[str, list[Member]]:
    """The circuits of each model and way of scoring, and of each `part` of these, by a name; one alone has none.

    A cell that has few questions gives all of them: for that alone its circuit is of no other way of scoring, unless
    another circuit of the same subtask has the other number.
    """
    alike: dict[Group, list[Member]] = {}
    for member in selection.members:
        alike.setdefault(replace(member.group, examples=None), []).append(member)
    once = {group for group, members in alike.items() if len({m.subtask for m in members}) == len(members)}
    each = [(member, replace(member.group, examples=None)) for member in selection.members]
    ways = [(member, group if group in once else member.group) for member, group in each]
    groups = list(dict.fromkeys(way for _, way in ways))
    names = group_names(groups)
    found: dict[str, list[Member]] = {}
    for member, way in ways:
        words = [names[way] if len(groups) > 1 else "", part(member)]
        found.setdefault(", ".join(word for word in words if word), []).append(member)
    return found if len(found) > 1 else dict(zip([""], found.values(), strict=False))


def _named(selection: Selection) -> Selection:
    """With labels that tell circuits of one subtask apart by what they differ in, instead of by number."""
    alike: dict[str, list[Member]] = {}
    for member in selection.members:
        alike.setdefault(member.subtask, []).append(member)
    labels = [_label(member, alike[member.subtask]) for member in selection.members]
    if len(set(labels)) < len(labels):
        return selection
    members = [replace(member, label=label) for member, label in zip(selection.members, labels, strict=True)]
    return replace(selection, members=tuple(members))


def _label(member: Member, alike: list[Member]) -> str:
    fields = [name for name in TELLING if len({getattr(other.group, name) for other in alike}) > 1]
    return ", ".join([member.subtask, *(_word(name, getattr(member.group, name)) for name in fields)])


def _word(name: str, value: object) -> str:
    return str(value) if isinstance(value, str) else f"{name} {value}"


def _accuracies(rows: list[dict[str, object]], selection: Selection) -> Accuracies:
    by_circuit = {row["circuit_id"]: row for row in rows}
    value = np.full(len(selection.ids), math.nan)
    n = np.zeros(len(selection.ids), np.int64)
    for i, circuit in enumerate(selection.ids):
        if row := by_circuit.get(circuit):
            value[i], n[i] = float(str(row["value"])), int(str(row["n"] or 0))
    return Accuracies(value, n)
