"""Indirect-object identification: who is given the thing, of two people who were named? As in Wang et al. (2023).

The one who gives is named again, so the answer is the other one: `When John and Mary went ..., Mary gave ... to` John.
In the order ABBA the one to answer was named first, in BABA second. Every question comes with the one in which the two
have changed places: it has the same words and the other answer.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from circuitdb.ingest.tasks.couples import two_apart
from circuitdb.ingest.tasks.partition import Numbers, Words
from circuitdb.ingest.tasks.task import Question
from circuitdb.records import Subtask

# Names, places and things are a token each in the vocabularies of GPT-2 and SmolLM2; sentences have equally many words.
_NAMES = (
    "John", "Mary", "Tom", "James", "Sarah", "Robert", "Laura", "Michael", "Emma", "David", "Anna", "Richard", "Kate",
    "Thomas", "Jane", "Daniel", "Susan", "Mark", "Linda", "Paul", "Nancy", "George", "Lisa", "Kevin",
)  # fmt: skip
_PLACES = ("store", "park", "school", "office", "garden", "station", "hospital", "library")
_THINGS = ("book", "drink", "letter", "ring", "key", "ball", "card", "bag")
_SENTENCES = (
    "When {first} and {second} went to the {place}, {giver} gave the {thing} to",
    "After {first} and {second} arrived at the {place}, {giver} handed the {thing} to",
    "While {first} and {second} waited at the {place}, {giver} passed the {thing} to",
    "Once {first} and {second} came to the {place}, {giver} offered the {thing} to",
)

ORDER = Words("order", "ABBA: the answer is the first of the two names; BABA: the second.", ("ABBA", "BABA"))
NAMES = Numbers("names", "How many names there are to draw from.", 2, len(_NAMES), str(len(_NAMES)))
PLACES = Numbers("places", "How many places there are to draw from.", 1, len(_PLACES), str(len(_PLACES)))


@dataclass(frozen=True)
class Ioi:
    """Indirect-object identification, for all orders and numbers of names and places."""

    orders: Sequence[str] = ORDER.choices
    names: Sequence[int] = (len(_NAMES),)
    places: Sequence[int] = (len(_PLACES),)
    name: str = "ioi"
    description: str = "Indirect-object identification; a subtask is an order of the names, and how many there are."

    def __post_init__(self) -> None:
        ORDER.check(self.orders)
        NAMES.check(self.names)
        PLACES.check(self.places)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Ioi:
        """From the text of its options."""
        return cls(ORDER.chosen(options), NAMES.chosen(options), PLACES.chosen(options))

    def subtasks(self) -> list[Subtask]:
        """One cell for each order, number of names and number of places."""
        return [
            Subtask(
                self.name,
                f"{order} {names} names {places} {'place' if places == 1 else 'places'}",
                {"order": order, "names": names, "places": places},
                self.description,
            )
            for order in self.orders
            for names in self.names
            for places in self.places
        ]

    def questions(self, subtask: Subtask, n: int, seed: int) -> list[Question]:
        """`n` different sentences, drawn evenly by twos; all of them where the cell has no more than `n`."""
        order, names, places = (subtask.parameters[key] for key in ("order", "names", "places"))
        generator = random.Random(f"{seed} {self.name} {subtask.name}")
        people = list(combinations(_NAMES[: int(names)], 2))
        counts = (len(people), int(places), len(_THINGS), len(_SENTENCES))
        size = counts[0] * counts[1] * counts[2] * counts[3]
        couples = []
        for place in generator.sample(range(size), min((n + 1) // 2, size)):
            digits = []
            for count in reversed(counts):
                place, digit = divmod(place, count)
                digits.append(digit)
            sentence, thing, where, pair = digits
            one, other = people[pair]
            words = _SENTENCES[sentence], _PLACES[where], _THINGS[thing]
            couples.append((_question(str(order), one, other, *words), _question(str(order), other, one, *words)))
        return two_apart(couples, generator)[:n]

    def read_answer(self, text: str) -> str | None:
        """The first name the model wrote."""
        return read_name(text)


def read_name(text: str) -> str | None:
    """The word that a text begins with, if it is one of the names."""
    word = text.split()[0].rstrip(".,;!") if text.split() else None
    return word if word in _NAMES else None


def _question(order: str, answer: str, giver: str, sentence: str, place: str, thing: str) -> Question:
    first, second = (answer, giver) if order == "ABBA" else (giver, answer)
    prompt = sentence.format(first=first, second=second, place=place, giver=giver, thing=thing)
    return Question(prompt, answer, choices=(first, second))
