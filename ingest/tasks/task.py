"""What a task is: a partition into subtasks, and a generator of questions for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from circuitdb.records import Subtask


@dataclass(frozen=True)
class Question:
    """A question as text and its right answer; between them stands `gap`, one space: `12 + 7 =` and `19`.

    `also_right`: other answers that count as right when the model is asked; pairs know only `answer`. `corrupted` is
    its partner where the task gives one; the partner's answer is empty where it is not known. `answer_id` is the answer
    as a token id, for a task that has no other. `choices` are the answers to choose from, the right one among them,
    where there is a closed set of them. `reasoning` is worked reasoning in one line, for when the question is shown
    solved and the model is to reason itself. `file` and `row` tell where a question was read from, to be named in what
    is said of it.
    """

    prompt: str
    answer: str
    gap: str = " "
    also_right: tuple[str, ...] = ()
    corrupted: Question | None = None
    answer_id: int | None = None
    choices: tuple[str, ...] = ()
    reasoning: str = ""
    file: str = ""
    row: int = 0

    @property
    def solved(self) -> str:
        """The question with its answer."""
        return f"{self.prompt}{self.gap}{self.answer}"

    def is_right(self, answer: str | None) -> bool:
        """Whether an answer, as the task reads it, is right."""
        return answer == self.answer or answer in self.also_right

    def told(self, message: str) -> str:
        """A sentence about this question, with its place in front if it has one."""
        return f"{self.file}, row {self.row}: {message}" if self.file else message


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


@runtime_checkable
class SpeltTask(Protocol):
    """A task whose answers are token ids, and become text with a model's tokenizer."""

    def spelt(self, decode: Callable[[int], str | None]) -> Task:
        """The task with its answers as text; `decode` gives a token's text, None for an id that is no token."""
