"""Analyses of the paper that ask how a circuit goes on to the next subtask: commutativity and neighbours.

- Commutativity: the circuit of (a, b) beside that of (b, a), the same two values of two parameters the other way round.
  A model that adds by rule needs no second circuit for the second; where it has one, accuracy may differ too.
- Neighbours: the circuits of two subtasks that differ by 1 in one parameter, such as (6, 6) and (6, 7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from circuitdb.errors import UsageError
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.comparison import EVERY_EDGE, Comparison
from circuitdb.queries.groupnames import group_names
from circuitdb.queries.pairing import Matrix
from circuitdb.queries.partition import Value, parameters, require_known
from circuitdb.queries.result import Result, count, enumeration
from circuitdb.queries.selection import Member, Selection
from circuitdb.queries.similarity import Similarity
from circuitdb.queries.stability import distinct_subtasks

Pair: TypeAlias = "tuple[int, int, str]"  # places of two circuits, and the parameter in which they differ


@dataclass(frozen=True)
class Part:
    """The circuits of one group, with their similarity."""

    selection: Selection
    similarity: Similarity


def operands(selection: Selection, names: Sequence[str]) -> tuple[str, str]:
    """The two parameters to exchange: those named, else the only two that are whole numbers. Raises UsageError."""
    given = require_known(selection, names, fields=False)
    if given and len(given) != 2:
        raise UsageError(f"Commutativity exchanges two parameters, not {enumeration(given)}; name two.")
    found = given or tuple(whole_numbers(selection))
    if len(found) != 2:
        raise UsageError(
            f"Commutativity exchanges two parameters; of {enumeration(parameters(selection)) or 'none'} name two that "
            "have the same values."
        )
    return found[0], found[1]


def whole_numbers(selection: Selection) -> list[str]:
    """The parameters whose every value is a whole number."""
    return [
        name
        for name in parameters(selection)
        if all(_is_whole(member.parameters[name]) for member in selection.members if name in member.parameters)
    ]


def swapped(selection: Selection, first: str, second: str) -> Iterator[Pair]:
    """Pairs (a, b), (b, a) with a < b, all other parameters equal, in the order of the selection."""
    places = _places(selection)
    for i, member in enumerate(selection.members):
        a, b = member.parameters.get(first), member.parameters.get(second)
        if a is None or b is None or a == b:
            continue
        for other in places.get(_key({**member.parameters, first: b, second: a}), ()):
            if i < other:
                yield i, other, f"{first}, {second}"


def adjacent(selection: Selection, names: Sequence[str]) -> Iterator[Pair]:
    """Pairs that differ by 1 in one of these parameters, all others equal, in the order of the selection."""
    places = _places(selection)
    for i, member in enumerate(selection.members):
        for name in names:
            value = member.parameters.get(name)
            if _is_whole(value) and isinstance(value, int):
                for other in places.get(_key({**member.parameters, name: value + 1}), ()):
                    yield i, other, name


def pairs(
    parts: Sequence[Part],
    chosen: Callable[[Selection], Iterator[Pair]],
    accuracy: Mapping[int, float | None],
    *,
    what: str,
    on: str,
    how: Comparison = EVERY_EDGE,
    notes: Sequence[str] = (),
) -> Result:
    """The chosen pairs of every group, one row each, with the accuracies: see `Database.commutativity`."""
    rows: list[tuple[Member, Member, str, float, float, float]] = []
    others: list[tuple[float, float]] = []
    said = list(notes)
    names = group_names(member.group for part in parts for member in part.selection.members[:1])
    for part in parts:
        found, members = part.similarity, part.selection.members
        here = list(chosen(part.selection))
        rows += [
            (members[i], members[j], name, found.matrix[i, j], found.ceiling[i, j], found.corrected[i, j])
            for i, j, name in here
        ]
        rest = np.triu(distinct_subtasks(part.selection)[0], 1)
        for i, j, _ in here:
            rest[min(i, j), max(i, j)] = False
        others += zip(found.matrix[rest].tolist(), found.ceiling[rest].tolist(), strict=True)
        whose = f"{names[members[0].group]}: " if len(names) > 1 else ""
        said += [f"{whose}{note}" for note in found.notes_elsewhere]
    said += _unequal(Selection(tuple(member for part in parts for member in part.selection.members)), chosen)
    # None becomes NaN.
    first = np.array([accuracy.get(a.circuit_id) for a, *_ in rows], np.float64)
    second = np.array([accuracy.get(b.circuit_id) for _, b, *_ in rows], np.float64)
    values = np.array([row[3:] for row in rows], np.float64).reshape(-1, 3)
    table = pa.table(
        {
            "model": texts(a.group.model for a, *_ in rows),
            "task": texts(a.group.task for a, *_ in rows),
            "parameter": texts(row[2] for row in rows),
            "a_id": integers((row[0].circuit_id for row in rows), bits=32),
            "a": texts(row[0].subtask for row in rows),
            "b_id": integers((row[1].circuit_id for row in rows), bits=32),
            "b": texts(row[1].subtask for row in rows),
            "similarity": numbers(values[:, 0]),
            "ceiling": numbers(values[:, 1]),
            "corrected": numbers(values[:, 2]),
            "accuracy_a": numbers(first),
            "accuracy_b": numbers(second),
            "accuracy_gap": numbers(np.abs(first - second)),
        }
    )
    title = f"{what}, {count(len(rows), 'pair')}: {how.words}, {on} scores"
    notes_on_means = _summary(values[:, :2], np.array(others, np.float64).reshape(-1, 2))
    return Result(table, title, tuple(dict.fromkeys((*said, *notes_on_means))))


def _unequal(whole: Selection, chosen: Callable[[Selection], Iterator[Pair]]) -> list[str]:
    """A sentence on pairs of subtasks that are missing only since one has fewer examples than the other."""
    both = [(whole.members[i], whole.members[j], name) for i, j, name in chosen(whole)]
    there = {(a.group.model_id, a.subtask, b.subtask, name) for a, b, name in both if a.group == b.group}
    missing = {
        (a.group.model_id, a.subtask, b.subtask, name): (a.group.examples, b.group.examples)
        for a, b, name in both
        if a.group.examples != b.group.examples and None not in (a.group.examples, b.group.examples)
        if replace(a.group, examples=None) == replace(b.group, examples=None)
    }
    left_out = {pair: numbers for pair, numbers in missing.items() if pair not in there}
    if not left_out:
        return []
    n_examples = sorted({n for pair in left_out.values() for n in pair if n is not None})
    return [
        f"{count(len(left_out), 'more such pair is', 'more such pairs are')} left out, whose circuits have different "
        f"numbers of examples ({enumeration(n_examples)}); `similarity` compares them."
    ]


def _summary(these: Matrix, others: Matrix) -> list[str]:
    """A sentence on the means of these pairs and of all others, [pair, (similarity, ceiling)] each."""
    mine, rest = (pairs[~np.isnan(pairs[:, 0])] for pairs in (these, others))
    if not len(mine):
        return ["No two circuits of one group are such a pair."] if not len(these) else []
    sentence = f"Mean similarity {mine[:, 0].mean():.3f} over {count(len(mine), 'such pair')}{_limit(mine)}"
    if len(rest):
        sentence += f"; {rest[:, 0].mean():.3f} over the {count(len(rest), 'other')}{_limit(rest)}"
    return [f"{sentence}."]


def _limit(pairs: Matrix) -> str:
    known = pairs[~np.isnan(pairs[:, 1]), 1]
    return f" (mean ceiling {known.mean():.3f})" if known.size else ""


def _places(selection: Selection) -> dict[tuple[tuple[str, Value], ...], list[int]]:
    """The places of the circuits of each subtask, by its parameters."""
    found: dict[tuple[tuple[str, Value], ...], list[int]] = {}
    for i, member in enumerate(selection.members):
        found.setdefault(_key(member.parameters), []).append(i)
    return found


def _is_whole(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _key(values: Mapping[str, Value]) -> tuple[tuple[str, Value], ...]:
    return tuple(sorted(values.items(), key=lambda item: item[0]))
