"""Date arithmetic by unit and span: subtask `3 weeks` asks what day is three weeks after another.

The first day is one of the 10th to the 28th: two digits, so that questions have about as many tokens, and a day that
every month has. The answer begins with its day, which differs most between questions.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from circuitdb.ingest.tasks.partition import Numbers, Words
from circuitdb.ingest.tasks.task import Question
from circuitdb.records import Subtask

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_DATE = re.compile(rf"\s*(\d{{1,2}}) ({'|'.join(_MONTHS)}) (\d{{4}})\b")
_DAYS, _YEARS = range(10, 29), range(1951, 2021)

UNIT = Words("unit", "What is counted.", ("days", "weeks", "months"))
SPAN = Numbers("span", "How many of them.", 1, 60, "1-3")


@dataclass(frozen=True)
class Dates:
    """The day so many days, weeks or months after another, for all pairs of the given units and spans."""

    units: Sequence[str] = UNIT.choices
    spans: Sequence[int] = (1, 2, 3)
    name: str = "dates"
    description: str = "Date arithmetic; a subtask is a unit and a span."

    def __post_init__(self) -> None:
        UNIT.check(self.units)
        SPAN.check(self.spans)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Dates:
        """From the text of its options."""
        return cls(UNIT.chosen(options), SPAN.chosen(options))

    def subtasks(self) -> list[Subtask]:
        """One cell for each unit and span."""
        return [
            Subtask(self.name, _span(unit, span), {"unit": unit, "span": span}, self.description)
            for unit in self.units
            for span in self.spans
        ]

    def questions(self, subtask: Subtask, n: int, seed: int) -> list[Question]:
        """`n` different days, drawn evenly; all of them, shuffled, where the cell has no more than `n`."""
        unit, span = str(subtask.parameters["unit"]), int(subtask.parameters["span"])
        generator = random.Random(f"{seed} {self.name} {subtask.name}")
        size = len(_DAYS) * len(_MONTHS) * len(_YEARS)
        found = []
        for place in generator.sample(range(size), min(n, size)):
            rest, day = divmod(place, len(_DAYS))
            year, month = divmod(rest, len(_MONTHS))
            first = date(_YEARS[year], month + 1, _DAYS[day])
            answer = _written(_after(first, unit, span))
            found.append(Question(f"{_span(unit, span)} after {_written(first)} is", answer))
        return found

    def read_answer(self, text: str) -> str | None:
        """The first date the model wrote, as the task writes dates."""
        return read_date(text)


def read_date(text: str) -> str | None:
    """The date that a text begins with, such as 4 April 2021."""
    found = _DATE.match(text)
    return None if found is None else f"{int(found[1])} {found[2]} {found[3]}"


def _span(unit: str, span: int) -> str:
    return f"{span} {unit if span > 1 else unit.removesuffix('s')}"


def _after(first: date, unit: str, span: int) -> date:
    if unit == "months":
        years, month = divmod(first.month - 1 + span, 12)
        return date(first.year + years, month + 1, first.day)
    return first + timedelta(days=span * (7 if unit == "weeks" else 1))


def _written(day: date) -> str:
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"
