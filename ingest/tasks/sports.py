"""Sports understanding: is it plausible that this athlete did that? By the athlete's sport, or in random parts.

The random parts are those of Sun (2025): all sentences dealt out evenly, the same whatever the seed of the questions.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from circuitdb.errors import UsageError
from circuitdb.ingest.tasks.couples import two_apart
from circuitdb.ingest.tasks.partition import Numbers, Words
from circuitdb.ingest.tasks.sports_facts import ACTIONS, ATHLETES
from circuitdb.ingest.tasks.task import Question
from circuitdb.records import Subtask

SPORTS = Words("sports", "Sports of the athletes; a subtask each.", tuple(ATHLETES))
PARTS = Numbers("parts", "So many random parts, in the place of sports.", 2, 20)


class Sentence(NamedTuple):
    """An athlete of a `sport`, and what he or she is said to have done, which is `part_of` that sport or another."""

    athlete: str
    action: str
    sport: str
    part_of: str

    @property
    def plausible(self) -> bool:
        """Whether they are the same."""
        return self.sport == self.part_of


@dataclass(frozen=True)
class Sports:
    """Plausible and implausible sentences, as many of each; by sport or, with `parts`, in so many random parts."""

    sports: Sequence[str] = SPORTS.choices
    parts: int | None = None
    name: str = "sports"
    description: str = "Is a sentence about an athlete plausible? A subtask is a sport, or a random part of all."

    def __post_init__(self) -> None:
        SPORTS.check(self.sports)
        if self.parts is not None:
            PARTS.check([self.parts])

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Sports:
        """From the text of its options. Raises UsageError for both, and for several numbers of parts."""
        parts = PARTS.chosen(options)
        if parts and SPORTS.name in options:
            raise UsageError("Random parts are of the sentences of all sports; give either parts or sports.")
        if len(parts) > 1:
            raise UsageError(f"--partition parts={options[PARTS.name]}: name one number of parts.")
        return cls(SPORTS.chosen(options), parts[0] if parts else None)

    def subtasks(self) -> list[Subtask]:
        """One cell for each sport, or for each part."""
        if self.parts is not None:
            return [
                Subtask(self.name, f"part {i} of {self.parts}", {"part": i, "parts": self.parts}, self.description)
                for i in range(1, self.parts + 1)
            ]
        return [Subtask(self.name, sport, {"sport": sport}, self.description) for sport in self.sports]

    def questions(self, subtask: Subtask, n: int, seed: int) -> list[Question]:
        """`n` different sentences, half of them plausible; fewer where the cell has no more of these."""
        generator = random.Random(f"{seed} {self.name} {subtask.name}")
        cell = _cell(subtask)
        generator.shuffle(cell)
        return two_apart(_couples(cell, (n + 1) // 2), generator)[:n]

    def read_answer(self, text: str) -> str | None:
        """Yes or no, if the model wrote that first."""
        return read_verdict(text)


def read_verdict(text: str) -> str | None:
    """The `yes` or `no` that a text begins with."""
    word = text.split()[0].rstrip(".,;!").lower() if text.split() else None
    return word if word in ("yes", "no") else None


def sentences() -> list[Sentence]:
    """All sentences that the facts make."""
    return [
        Sentence(athlete, action, sport, other)
        for sport, athletes in ATHLETES.items()
        for athlete in athletes
        for other, actions in ACTIONS.items()
        for action in actions
    ]


def _cell(subtask: Subtask) -> list[Sentence]:
    sport = subtask.parameters.get("sport")
    if sport is not None:
        return [sentence for sentence in sentences() if sentence.athlete in ATHLETES[str(sport)]]
    part, parts = int(subtask.parameters["part"]), int(subtask.parameters["parts"])
    everything = sentences()
    random.Random(f"sports in {parts} parts").shuffle(everything)
    # Dealt out by verdict, so that every part has its share of the plausible ones.
    return [
        sentence
        for plausible in (True, False)
        for sentence in [each for each in everything if each.plausible == plausible][part - 1 :: parts]
    ]


def _couples(cell: Sequence[Sentence], n: int) -> list[tuple[Question, Question]]:
    """`n` couples of a plausible sentence and another one, of the same athlete where there is one left."""
    others = defaultdict(list)
    for sentence in cell:
        if not sentence.plausible:
            others[sentence.athlete].append(sentence)
    found = []
    for sentence in [each for each in cell if each.plausible][:n]:
        athlete = sentence.athlete if others[sentence.athlete] else max(others, key=lambda name: len(others[name]))
        if others[athlete]:
            found.append((_question(sentence), _question(others[athlete].pop())))
    return found


def _question(sentence: Sentence) -> Question:
    verdict = "yes" if sentence.plausible else "no"
    return Question(
        f"Is it plausible that {sentence.athlete} {sentence.action}? Answer:",
        verdict,
        choices=("yes", "no"),
        reasoning=f'{sentence.athlete} plays {sentence.sport}, and "{sentence.action}" is part of {sentence.part_of}.',
    )
