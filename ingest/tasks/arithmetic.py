"""Arithmetic with two whole numbers by operator and digit counts: subtask `4/2` divides four digits by two.

All answers are whole and not negative, so that they begin with a digit and not all with the same sign: subtraction and
division have only subtasks whose first operand has no fewer digits than the second.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import isqrt

from circuitdb.errors import UsageError
from circuitdb.ingest.tasks import worked
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
        """`n` different questions, drawn evenly; all of them, shuffled, where the cell has no more than `n`.

        Divisions are drawn evenly by divisor, or by quotient where a cell has fewer of these: small ones divide far
        more numbers, and half of the answers would be 2.
        """
        operator = str(subtask.parameters["operator"])
        a, b = (int(subtask.parameters[key]) for key in ("digits_a", "digits_b"))
        generator = random.Random(f"{seed} {self.name} {subtask.name}")
        if operator == "/":
            return [_asked(x, operator, y) for x, y in _divisions(a, b, n, generator)]
        size = _size(operator, a, b)
        return [_question(operator, a, b, place) for place in generator.sample(range(size), min(n, size))]

    def read_answer(self, text: str) -> str | None:
        """The first number the model wrote."""
        return read_number(text)


def _size(operator: str, a: int, b: int) -> int:
    """How many questions a cell of sums, differences or products has."""
    first, second = len(digit_range(a)), len(digit_range(b))
    return first * (first + 1) // 2 if operator == "-" and a == b else first * second


def _question(operator: str, a: int, b: int, place: int) -> Question:
    """The question at a place of such a cell."""
    first, second = digit_range(a), digit_range(b)
    x, y = first[place // len(second)], second[place % len(second)]
    if operator == "-" and a == b:
        # The pairs with x >= y, row by row: row r has r + 1 of them.
        row = (isqrt(8 * place + 1) - 1) // 2
        x, y = first[row], first[place - row * (row + 1) // 2]
    return _asked(x, operator, y)


def _asked(x: int, operator: str, y: int) -> Question:
    answer = {"+": x + y, "-": x - y, "*": x * y, "/": x // y}[operator]
    return Question(f"{x} {operator} {y} =", str(answer), reasoning=worked.arithmetic(x, operator, y))


def _divisions(a: int, b: int, n: int, generator: random.Random) -> list[tuple[int, int]]:
    """`n` exact divisions, as many of each divisor, or quotient, as can be; all there are if these are fewer."""
    by_divisor = b <= a - b
    factors = list(digit_range(b) if by_divisor else range(1, 10 ** (a - b + 1)))
    generator.shuffle(factors)
    drawn: list[list[tuple[int, int]]] = []
    for factor in factors:
        others = _others(a, b, factor, by_divisor=by_divisor)
        if others and len(drawn) < n:
            drawn.append([(factor, other) for other in generator.sample(others, min(n, len(others)))])
    rounds = [pair for each in zip_longest(*drawn) for pair in each if pair is not None][:n]
    generator.shuffle(rounds)
    return [(factor * other, factor if by_divisor else other) for factor, other in rounds]


def _others(a: int, b: int, factor: int, *, by_divisor: bool) -> range:
    """The quotients of a divisor in a cell, or the divisors of a quotient.

    Dividing by 1 or by itself is left out, except of a digit by a digit, which has six other divisions.
    """
    dividend, divisor = digit_range(a), digit_range(b)
    least = 1 if a == 1 else 2
    if factor < least:
        return range(0)
    low, high = max(-(-dividend[0] // factor), least), dividend[-1] // factor
    return range(low, high + 1) if by_divisor else range(max(low, divisor[0]), min(high, divisor[-1]) + 1)
