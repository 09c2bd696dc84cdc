"""Arithmetic with two whole numbers by operator and digit counts: subtask `4/2` divides four digits by two.

All answers are whole and not negative, so that they begin with a digit and not all with the same sign: subtraction and
division have only subtasks whose first operand has no fewer digits than the second.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from math import isqrt

from circuitdb.errors import UsageError
from circuitdb.ingest.tasks.addition import DIGITS, MAX_DIGITS, digit_range, parse_digits, read_number
from circuitdb.ingest.tasks.partition import Words
from circuitdb.ingest.tasks.task import Question
from circuitdb.records import Subtask

OPERATORS = Words("operators", "What is done with the two numbers.", ("+", "-", "*", "/"))


@dataclass(frozen=True)
class Arithmetic:
    """The four operations on numbers without leading zeros, for all pairs of the given digit counts that there are."""

    operators: Sequence[str] = OPERATORS.choices
    digits: Sequence[int] = (1, 2, 3)
    name: str = "arithmetic"
    description: str = "Arithmetic with two numbers; a subtask is an operator and a pair of digit counts."

    def __post_init__(self) -> None:
        OPERATORS.check(self.operators)
        if not self.digits or not all(1 <= d <= MAX_DIGITS for d in self.digits):
            raise UsageError(f"Arithmetic is defined for 1 to {MAX_DIGITS} digits, not {list(self.digits)}.")

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Arithmetic:
        """From the text of its options."""
        return cls(OPERATORS.chosen(options), parse_digits(options.get(DIGITS.name, "1-3")))

    def subtasks(self) -> list[Subtask]:
        """One cell for each operator and pair of digit counts."""
        return [
            Subtask(
                self.name,
                f"{a}{operator}{b}",
                {"operator": operator, "digits_a": a, "digits_b": b},
                self.description,
            )
            for operator in self.operators
            for a in self.digits
            for b in self.digits
            if operator in "+*" or a >= b
        ]

    def questions(self, subtask: Subtask, n: int, seed: int) -> list[Question]:
        """`n` different questions, drawn evenly; all of them, shuffled, where the cell has no more than `n`."""
        operator = str(subtask.parameters["operator"])
        a, b = (int(subtask.parameters[key]) for key in ("digits_a", "digits_b"))
        generator = random.Random(f"{seed} {self.name} {subtask.name}")
        size = _size(operator, a, b)
        return [_question(operator, a, b, place) for place in generator.sample(range(size), min(n, size))]

    def read_answer(self, text: str) -> str | None:
        """The first number the model wrote."""
        return read_number(text)


def _size(operator: str, a: int, b: int) -> int:
    """How many questions a cell has."""
    first, second = digit_range(a), digit_range(b)
    if operator == "/":
        return _divisions(a, b)[1][-1]
    if operator == "-" and a == b:
        return len(first) * (len(first) + 1) // 2
    return len(first) * len(second)


def _question(operator: str, a: int, b: int, place: int) -> Question:
    """The question at a place of its cell."""
    first, second = digit_range(a), digit_range(b)
    if operator == "/":
        x, y = _division(a, b, place)
    elif operator == "-" and a == b:
        # The pairs with x >= y, row by row: row r has r + 1 of them.
        row = (isqrt(8 * place + 1) - 1) // 2
        x, y = first[row], first[place - row * (row + 1) // 2]
    else:
        x, y = first[place // len(second)], second[place % len(second)]
    answer = {"+": x + y, "-": x - y, "*": x * y, "/": x // y}[operator]
    return Question(f"{x} {operator} {y} =", str(answer))


@cache
def _divisions(a: int, b: int) -> tuple[list[tuple[int, range]], list[int]]:
    """The exact divisions of a cell, and their counts, running from 0: for each factor the range of the other.

    The factors are the divisors, or the quotients where these are fewer, so that there are never more than 10,000.
    Dividing by 1 or by itself is left out, except of a digit by a digit, which has six other divisions.
    """
    dividend, divisor = digit_range(a), digit_range(b)
    least = 1 if a == 1 else 2
    by_divisor = len(divisor) <= 10 ** (a - b + 1)
    factors = divisor if by_divisor else range(1, 10 ** (a - b + 1))
    found = []
    for factor in factors[least - factors[0] if factors[0] < least else 0 :]:
        low, high = -(-dividend[0] // factor), dividend[-1] // factor
        other = range(max(low, least), high + 1)
        if not by_divisor:
            other = range(max(low, least, divisor[0]), min(high, divisor[-1]) + 1)
        if other:
            found.append((factor, other))
    return found, [0, *accumulate(len(other) for _, other in found)]


def _division(a: int, b: int, place: int) -> tuple[int, int]:
    """Dividend and divisor at a place of a cell."""
    found, before = _divisions(a, b)
    at = bisect_right(before, place) - 1
    factor, other = found[at]
    other_factor = other[place - before[at]]
    by_divisor = len(digit_range(b)) <= 10 ** (a - b + 1)
    return factor * other_factor, factor if by_divisor else other_factor
