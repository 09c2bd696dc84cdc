"""Dyck words: close the brackets that are open. By how many are open and how many kinds of brackets there are.

A question has as many brackets as are open and four pairs that are closed already, wherever these lie; so all of a
subtask have equally many. The kind of the last open bracket, which decides the first one to write, is any alike.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from circuitdb.ingest.tasks.partition import Numbers
from circuitdb.ingest.tasks.task import Question
from circuitdb.records import Subtask

_BRACKETS = ("( )", "[ ]", "{ }", "< >")
_CLOSING = frozenset(pair[-1] for pair in _BRACKETS)
_CLOSED = 4

DEPTH = Numbers("depth", "Brackets that are open at the end.", 1, 6, "1-3")
KINDS = Numbers("kinds", "Kinds of brackets, all of which occur: ( ) [ ] { } < >.", 2, 4, "2-3")


@dataclass(frozen=True)
class Dyck:
    """Completion of bracket sequences, for all pairs of the given depths and numbers of kinds."""

    depths: Sequence[int] = (1, 2, 3)
    kinds: Sequence[int] = (2, 3)
    name: str = "dyck"
    description: str = "Closing of open brackets; a subtask is how many are open and how many kinds there are."

    def __post_init__(self) -> None:
        DEPTH.check(self.depths)
        KINDS.check(self.kinds)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Dyck:
        """From the text of its options."""
        return cls(DEPTH.chosen(options), KINDS.chosen(options))

    def subtasks(self) -> list[Subtask]:
        """One cell for each depth and number of kinds."""
        return [
            Subtask(self.name, f"depth {depth} kinds {kinds}", {"depth": depth, "kinds": kinds}, self.description)
            for depth in self.depths
            for kinds in self.kinds
        ]

    def questions(self, subtask: Subtask, n: int, seed: int) -> list[Question]:
        """`n` different sequences, drawn evenly; all of them, shuffled, where the cell has no more than `n`."""
        depth, kinds = int(subtask.parameters["depth"]), int(subtask.parameters["kinds"])
        generator = random.Random(f"{seed} {self.name} {subtask.name}")
        n_brackets = depth + _CLOSED
        n_kinds = _colourings(n_brackets, kinds)
        size = _shapes(depth + 2 * _CLOSED, depth) * n_kinds
        found = []
        for place in generator.sample(range(size), min(n, size)):
            shape, colour = divmod(place, n_kinds)
            found.append(_question(depth, _colours(n_brackets, kinds, colour), shape))
        return found

    def read_answer(self, text: str) -> str | None:
        """The closing brackets that the model wrote first."""
        return read_brackets(text)


def read_brackets(text: str) -> str | None:
    """The closing brackets that a text begins with, a space between them."""
    found = []
    for character in "".join(text.split()):
        if character not in _CLOSING:
            break
        found.append(character)
    return " ".join(found) or None


@cache
def _shapes(steps: int, height: int) -> int:
    """How many ways of so many steps up and down lead from a height of 0, never under it, to `height`."""
    if not 0 <= height <= steps:
        return 0
    return 1 if steps == 0 else _shapes(steps - 1, height - 1) + _shapes(steps - 1, height + 1)


@cache
def _colourings(brackets: int, missing: int, seen: int = 0) -> int:
    """How many ways there are to give brackets their kinds if `missing` more of them must occur beside those seen."""
    if missing > brackets:
        return 0
    if brackets == 0:
        return 1
    return seen * _colourings(brackets - 1, missing, seen) + (
        missing * _colourings(brackets - 1, missing - 1, seen + 1) if missing else 0
    )


def _colours(brackets: int, kinds: int, place: int) -> list[str]:
    """The kinds of the brackets at a place of those ways."""
    found: list[str] = []
    while len(found) < brackets:
        seen = sorted(set(found), key=_BRACKETS.index)
        new = [pair for pair in _BRACKETS[:kinds] if pair not in seen]
        left = brackets - len(found) - 1
        for pair in (*seen, *new):
            n_seen = len(seen) + (pair in new)
            number = _colourings(left, kinds - n_seen, n_seen)
            if place < number:
                found.append(pair)
                break
            place -= number
    return found


def _question(depth: int, colours: Sequence[str], shape: int) -> Question:
    """The sequence whose shape is at a place of all of its depth."""
    steps, height = depth + 2 * _CLOSED, depth
    ups: list[bool] = []
    while steps:
        # From the end: the last step was up if that leaves a height one lower.
        steps, lower = steps - 1, _shapes(steps - 1, height - 1)
        ups.append(shape < lower)
        shape, height = (shape, height - 1) if shape < lower else (shape - lower, height + 1)
    written, waiting, remaining = [], [], list(colours)
    for up in reversed(ups):
        if up:
            waiting.append(remaining.pop(0))
        written.append(waiting[-1][0] if up else waiting.pop()[-1])
    return Question(f"Open: {' '.join(written)} Close:", " ".join(pair[-1] for pair in reversed(waiting)))
