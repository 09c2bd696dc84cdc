"""Greater-than: in which year did it end? By century, as in Hanna et al. (2023).

`The war lasted from the year 1732 to the year 17` is followed by any two digits over 32. All of these count as right;
the answer of a pair is the next year, so that partners of different first years have different answers. No question
begins before the 21st year of its century: 10 to 20 are wrong answers to all of them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from circuitdb.ingest.tasks.partition import Numbers
from circuitdb.ingest.tasks.task import Question
from circuitdb.records import Subtask

_TWO_DIGITS = re.compile(r"\s*(\d\d)(?!\d)")
_FIRST_YEARS = range(21, 98)
# Years that are one token in GPT-2's vocabulary, so that nothing can follow their century.
_WHOLE = {12: (80,), 14: (40,)}
_EVENTS = (
    "war", "siege", "strike", "conflict", "reign", "project", "study", "journey", "program", "campaign", "dispute",
    "alliance", "exhibition", "search", "treaty", "voyage",
)  # fmt: skip

CENTURY = Numbers("century", "The first two digits of the years.", 12, 17, "12-17")


@dataclass(frozen=True)
class GreaterThan:
    """Years that end a span of years, for the given centuries."""

    centuries: Sequence[int] = tuple(range(12, 18))
    name: str = "greater-than"
    description: str = "The last year of a span of years; a subtask is the first two digits of the years."

    def __post_init__(self) -> None:
        CENTURY.check(self.centuries)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> GreaterThan:
        """From the text of its options."""
        return cls(CENTURY.chosen(options))

    def subtasks(self) -> list[Subtask]:
        """One cell for each century."""
        return [Subtask(self.name, str(c), {"century": c}, self.description) for c in self.centuries]

    def questions(self, subtask: Subtask, n: int, seed: int) -> list[Question]:
        """`n` different spans, drawn evenly; all of them, shuffled, where the cell has no more than `n`."""
        century = int(subtask.parameters["century"])
        generator = random.Random(f"{seed} {self.name} {subtask.name}")
        whole = _WHOLE.get(century, ())
        years = [year for year in _FIRST_YEARS if year not in whole and year + 1 not in whole]
        cells = [(event, year) for event in _EVENTS for year in years]
        found = []
        for event, year in generator.sample(cells, min(n, len(cells))):
            prompt = f"The {event} lasted from the year {century}{year} to the year {century}"
            later = tuple(f"{other}" for other in range(year + 1, 100))
            found.append(Question(prompt, later[0], gap="", also_right=later[1:]))
        return found

    def read_answer(self, text: str) -> str | None:
        """The two digits that the model wrote first."""
        found = _TWO_DIGITS.match(text)
        return found[1] if found else None
