"""The examples in docs/tasks.md are what the tasks ask, and no task is missing there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from circuitdb.ingest.tasks import registry

PAGE = (Path(__file__).parents[3] / "docs" / "tasks.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([\w-]+) \| `(.+?)` \| `(.+?)` \| `(.+?)` \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("name", "subtask", "question", "answer"), ROWS)
def test_an_example_is_the_first_question(name: str, subtask: str, question: str, answer: str) -> None:
    task = registry.find(name, {})
    (cell,) = [each for each in task.subtasks() if each.name == subtask]
    (found,) = task.questions(cell, 1, 0)
    assert (found.prompt, found.answer) == (question, answer)


def test_every_task_and_option_is_told() -> None:
    assert {row[0] for row in ROWS} == set(registry.TASKS)
    for name, task in registry.TASKS.items():
        assert re.search(rf"^## .*\b{name}\b", PAGE, re.MULTILINE)
        assert all(re.search(rf"`{option.name}\b|--{option.name}\b", PAGE) for option in task.options)


def test_the_example_of_a_task_in_python() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    before = dict(registry.TASKS)
    try:
        exec(block, {})
        task = registry.find("doubling", {})
    finally:
        registry.TASKS.clear()
        registry.TASKS.update(before)
    assert [subtask.name for subtask in task.subtasks()] == ["1 digits", "2 digits"]
    assert [q.solved for q in task.questions(task.subtasks()[1], 2, 0)] == ["10 + 10 = 20", "11 + 11 = 22"]


def test_the_example_of_a_shot_with_reasoning() -> None:
    """Composed by hand of what the task says of the first question of 2+3 and the words that are always there."""
    page = (Path(__file__).parents[3] / "docs" / "prompts.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    task = registry.find("addition", {})
    (cell,) = [each for each in task.subtasks() if each.name == "2+3"]
    (found,) = task.questions(cell, 1, 0)
    assert block == (f"{found.prompt}\nLet's think step by step. {found.reasoning} So the answer is {found.answer}\n")
