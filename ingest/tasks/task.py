"""What a task is: a partition into subtasks, and a generator of questions for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from circuitdb.records import Subtask


@dataclass(frozen=True)
class Question:
    """A question as text and its right answer; between them stands one space: `12 + 7 =` and `19`."""

    prompt: str
    answer: str

    @property
    def solved(self) -> str:
        """The question with its answer."""
        return f"{self.prompt} {self.answer}"


class Task(Protocol):
    """A task with its partition."""

    @property
    def name(self) -> str:
        """Name in the database."""

    @property
    def description(self) -> str:
        """What the task is, in a sentence."""

    def subtasks(self) -> list[Subtask]:
        """The cells of the partition, in order."""

    def questions(self, subtask: Subtask, n: int, seed: int) -> list[Question]:
        """`n` different questions of the cell, the same for the same seed; fewer if the cell is smaller."""

    def read_answer(self, text: str) -> str | None:
        """The answer in what the model wrote after the question; None if there is none."""
