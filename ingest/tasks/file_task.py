"""A task in a file: its rows are the questions, with their partners where it gives them (docs/own-task.md)."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from os import PathLike
from pathlib import Path

from circuitdb.errors import TaskError, UsageError
from circuitdb.ingest.tasks.files import questions, reader
from circuitdb.ingest.tasks.task import Question
from circuitdb.records import Subtask

# A letter or digit and another one, or a digit and the rest of a decimal number.
_GOES_ON = re.compile(r"[^\W_]{2}|\d[.,]\d")


class FileTask:
    """The questions of a .csv, .tsv, .json, .jsonl or .parquet file, by the subtasks that it names.

    `name` is what the database calls the task; by default the file's name without its ending, or the name that a file
    of BIG-bench gives itself. `notes` say what of the file is not used. Raises UsageError, naming the row that is
    wrong.
    """

    def __init__(self, path: str | PathLike[str], *, name: str | None = None) -> None:
        path = Path(path)
        found = reader.read(path)
        self.name = name or found.name or path.stem
        if not self.name.strip():
            raise UsageError("A task needs a name that is not empty.")
        self.description = f"Questions of the file {path.name}."
        self._parts, notes = questions.parts(found, self.name)
        self.notes = tuple(notes)
        self._answers = _answers(self._parts)

    def subtasks(self) -> list[Subtask]:
        """Those of the file, in the order of their first rows."""
        return [Subtask(self.name, part.subtask, part.parameters, self.description) for part in self._parts]

    def questions(self, subtask: Subtask, n: int, seed: int) -> list[Question]:
        """`n` rows of the subtask, drawn evenly; all of them, shuffled, where there are no more.

        Names have no part in the draw, so that the same rows under another name give the same prompts.
        """
        for number, part in enumerate(self._parts):
            if part.subtask == subtask.name:
                return random.Random(f"{seed} {number}").sample(part.questions, min(n, len(part.questions)))
        raise TaskError(f"{self.name} has no subtask {subtask.name!r}.")

    def read_answer(self, text: str) -> str | None:
        """The longest answer of the file that the text begins with, if no word or number goes on after it."""
        ends = (end for end in range(len(text), 0, -1) if text[:end] in self._answers)
        return next((text[:end] for end in ends if not _GOES_ON.match(text, end - 1)), None)

    def spelt(self, decode: Callable[[int], str | None]) -> FileTask:
        """The same with the texts of the tokens for answers that are token ids. Raises TaskError for a wrong id."""
        found = copy(self)
        found._parts = [
            replace(part, questions=tuple(_spelt(question, decode) for question in part.questions))
            for part in self._parts
        ]
        found._answers = _answers(found._parts)
        return found


def _spelt(question: Question, decode: Callable[[int], str | None]) -> Question:
    partner = None if question.corrupted is None else _spelt(question.corrupted, decode)
    if question.answer_id is None:
        return replace(question, corrupted=partner)
    text = decode(question.answer_id)
    if text is None:
        raise TaskError(question.told(f"the model's tokenizer has no token {question.answer_id}."))
    gap = " " if text.startswith(" ") else ""
    return replace(question, answer=text.strip(), gap=gap, corrupted=partner)


def _answers(parts: Sequence[questions.Part]) -> frozenset[str]:
    asked = [question for part in parts for question in part.questions]
    both = [*asked, *(question.corrupted for question in asked if question.corrupted is not None)]
    return frozenset(text for question in both for text in (question.answer, *question.also_right) if text)
