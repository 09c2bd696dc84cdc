"""The questions of a circuit: those that are scored, and the solved ones (shots) that stand before them.

Shots are `fixed` for the subtask, so that its prompts begin alike and this beginning is computed once, or drawn anew
`per-example`. A shot is never the question that it stands before, nor its partner: fixed ones are none of the scored
questions, and own ones are drawn from the pair's own fold, so that folds have no question in common.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from circuitdb.errors import TaskError
from circuitdb.ingest.tasks.checked import questions_of, subtasks_of
from circuitdb.ingest.tasks.task import Question, Task
from circuitdb.records import Subtask

FIXED, PER_EXAMPLE = SHOTS_DRAWN = ("fixed", "per-example")


@dataclass(frozen=True)
class PromptSet:
    """The questions to score, the shots before all of them, and further ones that shots of their own can be drawn from.

    `pool` is dealt into folds in turn, as the questions are.
    """

    questions: tuple[Question, ...]
    shots: tuple[Question, ...] = ()
    pool: tuple[Question, ...] = ()

    def own_shots(
        self, asked: Question, partner: Question | None, *, n: int, seed: int, fold: tuple[int, int],
        members: Sequence[Question],
    ) -> tuple[Question, ...]:  # fmt: skip
        """`n` shots for a question of a `fold` (its number, how many there are); the same for the same seed.

        They come from the fold's part of the pool, and where that has too few from its `members`, the questions that
        are scored in it, too. Raises TaskError.
        """
        apart = {question.prompt for question in (asked, partner, asked.corrupted) if question is not None}
        left = [question for question in self.pool[fold[0] :: fold[1]] if question.prompt not in apart]
        if len(left) < n:
            left += [question for question in members if question.prompt not in apart]
        if len(left) < n:
            raise TaskError(
                asked.told(
                    f"its fold has {len(left)} questions besides a pair, and {n} shots of its own are to be drawn from "
                    "them: use fewer shots, more examples or fewer folds."
                )
            )
        return tuple(random.Random(f"{seed} shots of {asked.prompt}").sample(left, n))


def prompt_set(
    task: Task, subtask: Subtask, *, n_examples: int, shots: int, seed: int, drawn: str = FIXED, reasoned: bool = False
) -> PromptSet:
    """Draw shots and scored questions, all different.

    `drawn` is fixed or per-example; `reasoned`: the shots must have worked reasoning.

    Raises TaskError if the subtask has too few questions for the shots and at least two to pair, or no such reasoning.
    """
    own = drawn == PER_EXAMPLE
    found = questions_of(task, subtask, n_examples + (n_examples if own else 1) * shots, seed)
    if len(found) < shots + 2:
        number = f"{len(found)} different question{'s' * (len(found) != 1)}"
        message = (
            f"{task.name} {subtask.name} has {number}; {shots} shots and a pair to score need "
            f"{shots + 2}: {'use fewer shots' if shots else 'it needs more'}."
        )
        raise TaskError(min(found, key=lambda question: question.row).told(message) if found else message)
    if reasoned and shots and not all(question.reasoning for question in found):
        raise TaskError(
            f"{task.name} {subtask.name} has no worked reasoning for its shots; with --chain-of-thought use --shots 0."
        )
    if own:
        return PromptSet(tuple(found[:n_examples]), pool=tuple(found[n_examples:]))
    return PromptSet(tuple(found[shots:]), tuple(found[:shots]))


def has_reasoning(task: Task) -> bool:
    """Whether the task gives worked reasoning for its shots."""
    return any(
        question.reasoning for subtask in subtasks_of(task)[:1] for question in questions_of(task, subtask, 1, 0)
    )
