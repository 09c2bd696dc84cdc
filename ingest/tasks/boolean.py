"""Boolean expressions by their operators, length, parentheses and depth, as in Sun (2025).

Every operator of a subtask's set occurs in each of its expressions, so that no two sets share one: {not, and} begins
at a length of 4 words, {not, and, or} at 6. Parentheses are not counted. `not` alone is not split by length but takes
all, for without parentheses a length has only two expressions; it has 14 in all.

With parentheses there are two pairs, side by side or nested; where the partition has depths, as many pairs as the
depth, nested in each other. So the questions of a subtask have equally many words, but for those of `not` alone.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from circuitdb.errors import UsageError
from circuitdb.ingest.tasks import worked
from circuitdb.ingest.tasks.couples import two_apart
from circuitdb.ingest.tasks.expressions import Kind, count, evaluate, expression, kind
from circuitdb.ingest.tasks.partition import Numbers, Words
from circuitdb.ingest.tasks.task import Question
from circuitdb.records import Parameters, Subtask

_LEAST, _MOST, _PAIRS = 3, 9, 2
_SHORTEST = {"not": _LEAST, "not,and": 4, "not,and,or": 6}

OPERATORS = Words("operators", "Sets of operators.", tuple(_SHORTEST), between="/")
LENGTH = Numbers("length", "Words of an expression, parentheses not counted; not of `not` alone.", _LEAST, _MOST, "7")
PARENTHESES = Words("parentheses", "Without them, with them, or both.", ("no", "yes"))
DEPTH = Numbers("depth", "Depths of those with parentheses; two pairs anyhow if there is none.", 1, 6)


@dataclass(frozen=True)
class Boolean:
    """Boolean expressions; without depths those with parentheses have two pairs anyhow."""

    operators: Sequence[str] = OPERATORS.choices
    lengths: Sequence[int] = (7,)
    parentheses: Sequence[str] = PARENTHESES.choices
    depths: Sequence[int] = ()
    name: str = "boolean"
    description: str = "Value of a boolean expression; a subtask is a set of operators, a length, parentheses or none."

    def __post_init__(self) -> None:
        OPERATORS.check(self.operators)
        LENGTH.check(self.lengths)
        PARENTHESES.check(self.parentheses)
        DEPTH.check(self.depths)
        if self.depths and "yes" not in self.parentheses:
            raise UsageError("Without parentheses there is no depth; leave depth out, or let parentheses be yes.")
        if not self.subtasks():
            shortest = min(self.operators, key=lambda operators: _SHORTEST[operators])
            raise UsageError(
                f"No expression of {list(self.lengths)} words has all operators of its set; those of {shortest} begin "
                f"at a length of {_SHORTEST[shortest]}."
            )

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Boolean:
        """From the text of its options."""
        chosen = OPERATORS.chosen(options), LENGTH.chosen(options), PARENTHESES.chosen(options), DEPTH.chosen(options)
        return cls(*chosen)

    def subtasks(self) -> list[Subtask]:
        """A cell for each set of operators, length, and parentheses or depth that has expressions."""
        found: list[Subtask] = []
        for operators in self.operators:
            lengths: list[int | None] = (
                [None] if operators == "not" else [n for n in self.lengths if n >= _SHORTEST[operators]]
            )
            for length in lengths:
                found += self._of_length(operators, length)
        return found

    def _of_length(self, operators: str, length: int | None) -> list[Subtask]:
        of: Parameters = {"operators": operators} if length is None else {"operators": operators, "length": length}
        what = operators if length is None else f"{operators} {length}"
        cells: list[tuple[str, Parameters]] = []
        if "no" in self.parentheses:
            cells.append((what, {**of, "parentheses": False}))
        if "yes" in self.parentheses and not self.depths:
            cells.append((f"{what} parentheses", {**of, "parentheses": True}))
        if "yes" in self.parentheses:
            cells += [(f"{what} depth {depth}", {**of, "parentheses": True, "depth": depth}) for depth in self.depths]
        return [Subtask(self.name, name, parameters, self.description) for name, parameters in cells]

    def questions(self, subtask: Subtask, n: int, seed: int) -> list[Question]:
        """`n` different expressions, half of them true; fewer where the cell has no more of either value.

        They are drawn evenly among those of their value, of `not` alone among those of their value and length.
        """
        generator = random.Random(f"{seed} {self.name} {subtask.name}")
        kinds = [(_of(subtask, length, True), _of(subtask, length, False)) for length in _lengths(subtask)]
        generator.shuffle(kinds)
        by_length = [_couples(true, false, (n + 1) // 2, generator) for true, false in kinds]
        rounds = [couple for each in zip_longest(*by_length) for couple in each if couple is not None]
        return two_apart(rounds[: (n + 1) // 2], generator)[:n]

    def read_answer(self, text: str) -> str | None:
        """True or False, if the model wrote that first."""
        return read_value(text)


def read_value(text: str) -> str | None:
    """The truth value that a text begins with."""
    word = text.split()[0].rstrip(".,;") if text.split() else None
    return word if word in ("True", "False") else None


def _lengths(subtask: Subtask) -> list[int]:
    length = subtask.parameters.get("length")
    return list(range(_LEAST, _MOST + 1)) if length is None else [int(length)]


def _of(subtask: Subtask, length: int, value: bool) -> Kind:
    depth = subtask.parameters.get("depth")
    pairs = 0 if not subtask.parameters["parentheses"] else _PAIRS if depth is None else int(depth)
    operators = tuple(str(subtask.parameters["operators"]).split(","))
    return kind(operators, length, pairs, value, nested=depth is not None)


def _couples(true: Kind, false: Kind, n: int, generator: random.Random) -> list[tuple[Question, Question]]:
    """`n` couples of a true and a false expression, or as many as there are."""
    n = min(n, count(true), count(false))
    drawn = [[expression(of, place) for place in generator.sample(range(count(of)), n)] for of in (true, false)]
    return [(_question(a), _question(b)) for a, b in zip(*drawn, strict=True)]


def _question(text: str) -> Question:
    return Question(f"{text} is", str(evaluate(text)), choices=("True", "False"), reasoning=worked.boolean(text))
