"""Prompts from questions: the scored question alone, or after solved ones (shots) that are fixed for the subtask.

Fixed shots make the prompts of a subtask begin alike, so that this beginning is computed once. A shot is never one of
the scored questions.
"""

from __future__ import annotations

from dataclasses import dataclass

from circuitdb.errors import TaskError
from circuitdb.ingest.tasks.task import Question, Task
from circuitdb.records import Subtask


@dataclass(frozen=True)
class PromptSet:
    """The header that all prompts of a subtask begin with, the shots in it, and the questions to score."""

    header: str
    questions: tuple[Question, ...]
    shots: tuple[Question, ...] = ()


def prompt_set(task: Task, subtask: Subtask, *, n_examples: int, shots: int, seed: int) -> PromptSet:
    """Draw shots and scored questions, all different.

    Raises TaskError if the subtask has too few questions for the shots and at least two to pair.
    """
    drawn = task.questions(subtask, n_examples + shots, seed)
    if len(drawn) < shots + 2:
        number = f"{len(drawn)} different question{'s' * (len(drawn) != 1)}"
        message = (
            f"{task.name} {subtask.name} has {number}; {shots} shots and a pair to score need "
            f"{shots + 2}: {'use fewer shots' if shots else 'it needs more'}."
        )
        raise TaskError(min(drawn, key=lambda question: question.row).told(message) if drawn else message)
    header = "".join(f"{shot.solved}\n" for shot in drawn[:shots])
    return PromptSet(header, tuple(drawn[shots:]), tuple(drawn[:shots]))
