"""How often the model is right on a circuit's questions, skipped ones included.

`accuracy`         exact match of the answer in what the model writes, greedily, up to the end of its first line
`choice-accuracy`  where there is a closed set of answers: the right one is more probable than every other, by the
                   summed log-probability of its tokens; where each is one token, from the first step of the decoding
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from circuitdb.ingest.decoding import Ids, first_line, line_of, log_probabilities, write
from circuitdb.ingest.forms import Form
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.tasks.task import Question, Task
from circuitdb.ingest.tokens import TokenisedQuestion
from circuitdb.records import Accuracy

Shots = tuple[Question, ...]


@dataclass(frozen=True)
class Answers:
    """What the model answered to each question.

    `texts` and `ids` are what it wrote, the ids with the token that ends the line if it wrote that; `chosen` is whether
    the right one of the given answers is the most probable, None for a question without any.
    """

    texts: tuple[str, ...]
    ids: tuple[Ids, ...]
    chosen: tuple[bool | None, ...]


@dataclass(frozen=True)
class _Choice:
    """The answers of a question as tokens: all follow `prompt`, and no one begins with another."""

    prompt: Ids
    answers: tuple[Ids, ...]
    right: tuple[bool, ...]

    @property
    def of_one_token(self) -> bool:
        """Whether each answer is one token."""
        return all(len(answer) == 1 for answer in self.answers)


def answers(
    form: Form, shots: Sequence[Shots], questions: Sequence[TokenisedQuestion], reasoning: Sequence[str] = ()
) -> Answers:
    """Ask the model every question, behind its `shots` and its own `reasoning`.

    Raises TaskError for a given answer that can't be tokenised, ModelError if not even one prompt fits in memory.
    """
    words = reasoning or [""] * len(questions)
    given = [
        _choice(form, own, question.question, text) for own, question, text in zip(shots, questions, words, strict=True)
    ]
    here = [
        choice if choice is not None and choice.of_one_token and choice.prompt == question.ids else None
        for choice, question in zip(given, questions, strict=True)
    ]
    asked = [() if choice is None else tuple(answer[0] for answer in choice.answers) for choice in here]
    written = write(form.model, [q.ids for q in questions], _budgets(questions), asked=asked)
    apart = [choice for choice, known in zip(given, here, strict=True) if choice is not None and known is None]
    whole = [(choice.prompt + answer, len(answer)) for choice in apart for answer in choice.answers]
    values = iter(log_probabilities(form.model, [text for text, _ in whole], [n for _, n in whole]))
    chosen: list[bool | None] = []
    for choice, known, (_, _, seen) in zip(given, here, written, strict=True):
        if choice is None:
            chosen.append(None)
        else:
            chosen.append(_is_right(choice, seen if known is not None else [next(values) for _ in choice.answers]))
    return Answers(
        tuple(first_line(text).strip() for text, _, _ in written),
        tuple(line_of(form.model, ids) for _, ids, _ in written),
        tuple(chosen),
    )


def predictions(model: LoadedModel, questions: Sequence[TokenisedQuestion]) -> list[str]:
    """What the model writes after each prompt, greedily, up to the end of its first line.

    At most one token more than the longest answer has is decoded, enough to see that a number goes on.
    """
    return [first_line(text).strip() for text, _, _ in write(model, [q.ids for q in questions], _budgets(questions))]


def accuracy(task: Task, questions: Sequence[TokenisedQuestion], texts: Sequence[str]) -> tuple[Accuracy, list[bool]]:
    """Share of right answers with its binomial standard error, and which were right.

    Where all or none are right the formula's zero would claim certainty: the error is None.
    """
    right = [q.question.is_right(task.read_answer(text)) for q, text in zip(questions, texts, strict=True)]
    return _share(right), right


def choice_accuracy(chosen: Sequence[bool | None]) -> Accuracy | None:
    """The same of the questions that have answers to choose from; None if none has."""
    judged = [right for right in chosen if right is not None]
    if not judged:
        return None
    return replace(_share(judged), metric="choice-accuracy", filter="log-probability")


def _share(right: Sequence[bool]) -> Accuracy:
    n, share = len(right), sum(right) / len(right)
    return Accuracy(share, math.sqrt(share * (1 - share) / n) if 0 < share < 1 else None, n)


def _budgets(questions: Sequence[TokenisedQuestion]) -> list[int]:
    """One token more than the longest answer to a prompt of this length."""
    longest: dict[int, int] = {}
    for question in questions:
        longest[len(question.ids)] = max(longest.get(len(question.ids), 0), len(question.answer_ids))
    return [1 + longest[len(question.ids)] for question in questions]


def _choice(form: Form, shots: Shots, question: Question, reasoning: str) -> _Choice | None:
    """The question's answers to choose from; None where they are not a right one and another, or too long to read."""
    right = tuple(question.is_right(answer) for answer in question.choices)
    if all(right) or not any(right):
        return None
    posed = [form.ask(shots, replace(question, answer=a, answer_id=None), reasoning) for a in question.choices]
    whole = [each.ids + each.answer_ids for each in posed]
    if _nested(whole):  # then only the end of the line tells that an answer does not go on
        whole = [each.ids + each.line_ids for each in posed]
    if _nested(whole) or max(map(len, whole)) > form.model.n_context:
        return None
    n_shared = next(i for i, column in enumerate(zip(*whole, strict=False)) if len(set(column)) > 1)
    if n_shared == 0:
        return None
    return _Choice(whole[0][:n_shared], tuple(text[n_shared:] for text in whole), right)


def _nested(whole: Sequence[Ids]) -> bool:
    """Whether one of the texts begins with another."""
    return any(a is not b and b[: len(a)] == a for a in whole for b in whole)


def _is_right(choice: _Choice, values: Sequence[float]) -> bool:
    """Whether a right answer is more probable than every other."""
    best = max(value for value, right in zip(values, choice.right, strict=True) if right)
    return best > max(value for value, right in zip(values, choice.right, strict=True) if not right)
