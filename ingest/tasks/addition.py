"""Two-number addition by the operands' digit counts, as in Sun (2025): subtask `2+3` adds two digits to three."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from circuitdb.errors import UsageError
from circuitdb.ingest.tasks import worked
from circuitdb.ingest.tasks.partition import Numbers
from circuitdb.ingest.tasks.task import Question
from circuitdb.records import Subtask

MAX_DIGITS = 8
DIGITS = Numbers("digits", "Digit counts of both operands.", 1, MAX_DIGITS, "1-3")
_NUMBER = re.compile(r"\s*(\d+)")


@dataclass(frozen=True)
class Addition:
    """Addition of positive numbers without leading zeros, for all pairs of the given digit counts."""

    digits: Sequence[int]
    name: str = "addition"
    description: str = "Two-number addition; a subtask is a pair of digit counts."

    def __post_init__(self) -> None:
        if not self.digits or not all(1 <= d <= MAX_DIGITS for d in self.digits):
            raise UsageError(f"Addition is defined for 1 to {MAX_DIGITS} digits, not {list(self.digits)}.")

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Addition:
        """From the text of the option `digits`, for example 1-3."""
        return cls(parse_digits(options.get(DIGITS.name, "1-3")))

    def subtasks(self) -> list[Subtask]:
        """One cell for each pair of digit counts, `digits_a` and `digits_b`."""
        return [
            Subtask(self.name, f"{a}+{b}", {"digits_a": a, "digits_b": b}, self.description)
            for a in self.digits
            for b in self.digits
        ]

    def questions(self, subtask: Subtask, n: int, seed: int) -> list[Question]:
        """`n` different sums, drawn evenly; all of them, shuffled, where the cell has no more than `n`."""
        first, second = (digit_range(int(subtask.parameters[key])) for key in ("digits_a", "digits_b"))
        generator = random.Random(f"{seed} {self.name} {subtask.name}")
        size = len(first) * len(second)
        cells = generator.sample(range(size), min(n, size))
        pairs = [(first[cell // len(second)], second[cell % len(second)]) for cell in cells]
        return [Question(f"{a} + {b} =", str(a + b), reasoning=worked.arithmetic(a, "+", b)) for a, b in pairs]

    def read_answer(self, text: str) -> str | None:
        """The first number the model wrote."""
        return read_number(text)


def read_number(text: str) -> str | None:
    """The number that a text begins with."""
    found = _NUMBER.match(text)
    return found[1] if found else None


def parse_digits(text: str) -> tuple[int, ...]:
    """Digit counts from `1-3` or `1,2,4`, sorted, each once. Raises UsageError."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or (dash and int(last) < int(first)):
            raise UsageError(f"--digits {text!r} is no list of digit counts; write 1-3 or 1,2,4.")
        if int(last or first) > MAX_DIGITS:
            raise UsageError(f"--digits {text!r} goes beyond {MAX_DIGITS} digits.")
        found.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(found))


def digit_range(digits: int) -> range:
    """The numbers of so many digits."""
    return range(10 ** (digits - 1), 10**digits)
