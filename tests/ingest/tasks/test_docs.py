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
