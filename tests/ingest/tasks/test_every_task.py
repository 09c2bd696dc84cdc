"""What all tasks promise: the same questions for the same seed, none twice, fewer where there are fewer, partners."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from circuitdb.ingest.pairs import pair
from circuitdb.ingest.prompts import prompt_set
from circuitdb.ingest.tasks import registry
from circuitdb.ingest.tasks.task import Question, Task
from circuitdb.ingest.tokens import TokenisedQuestion
from circuitdb.records import Subtask

# Each by default, and with cells that the default has not.
PARTITIONS = [
    ("addition", {}),
    ("arithmetic", {"digits": "1,5,8"}),
    ("boolean", {"length": "4,7,9"}),
    ("boolean", {"length": "6", "depth": "1,4,6"}),
    ("sports", {}),
    ("sports", {"parts": "5"}),
    ("dyck", {"depth": "1-6", "kinds": "2-4"}),
    ("dates", {"span": "1,7,60"}),
    ("ioi", {"names": "3,24", "places": "1,8"}),
    ("greater-than", {}),
]
CELLS = [
    pytest.param(task, subtask, id=f"{name} {subtask.name}")
    for name, options in PARTITIONS
    for task in [registry.find(name, options)]
    for subtask in task.subtasks()
]
NAMES = [pytest.param(name, options, id=f"{name} {options}") for name, options in PARTITIONS]


@pytest.mark.parametrize(("task", "subtask"), CELLS)
def test_questions_are_different_and_the_seed_decides(task: Task, subtask: Subtask) -> None:
    first, again, other = (task.questions(subtask, 12, seed) for seed in (3, 3, 4))
    assert first == again
    assert len(first) == len({question.prompt for question in first})
    assert first != other
    assert len({question.answer for question in first}) > 1
    # What the model should write is read as what it is.
    assert all(task.read_answer(f" {question.answer}\n") == question.answer for question in first)
    assert all(question.prompt == question.prompt.strip() and "\n" not in question.prompt for question in first)
    assert task.read_answer("") is None
    assert task.read_answer("%") is None


@pytest.mark.parametrize(("name", "options"), NAMES)
def test_subtasks_have_names_and_parameters_of_their_own(name: str, options: dict[str, str]) -> None:
    subtasks = registry.find(name, options).subtasks()
    assert len({subtask.name for subtask in subtasks}) == len(subtasks) > 1
    assert len({tuple(sorted(subtask.parameters.items())) for subtask in subtasks}) == len(subtasks)
    assert {subtask.task for subtask in subtasks} == {name}
    assert registry.find(name, options) == registry.find(name, options)


def words(question: Question) -> TokenisedQuestion:
    """Tokenised at the spaces, as tokenizers do that know all the words."""
    ids = tuple(hash(word) % 2**40 for word in question.prompt.split())
    return TokenisedQuestion(question, question.prompt, ids, tuple(hash(word) for word in question.answer.split()))


@pytest.mark.parametrize(("task", "subtask"), CELLS)
@pytest.mark.parametrize("shots", [0, 3])
def test_most_questions_find_a_partner(task: Task, subtask: Subtask, shots: int) -> None:
    if len(task.questions(subtask, 16 + shots, 0)) < 12 + shots:
        return  # too small a cell to ask it of
    drawn = prompt_set(task, subtask, n_examples=16, shots=shots, seed=0)
    found = pair([words(question) for question in drawn.questions], folds=2, compared=0).pairs
    assert {p.fold for p in found} == {0, 1}
    assert len(found) >= 0.7 * len(drawn.questions)


def test_a_question_is_right_in_several_ways_if_it_says_so() -> None:
    question = Question("from 1732 to 17", "33", gap="", also_right=("34", "35"))
    assert question.solved == "from 1732 to 1733"
    assert [question.is_right(text) for text in ("33", "35", "32", None)] == [True, True, False, False]
    assert Question("1 + 1 =", "2").solved == "1 + 1 = 2"
    assert not Question("1 + 1 =", "2").is_right(None)


def test_accuracy_counts_every_right_answer() -> None:
    from circuitdb.ingest.accuracy import accuracy

    task = registry.find("greater-than", {})
    asked = [SimpleNamespace(question=Question("a", "33", also_right=("34",))) for _ in range(4)]
    share, right = accuracy(task, cast("Any", asked), ["33", "34", "32", "3"])
    assert right == [True, True, False, False]
    assert share.value == 0.5
