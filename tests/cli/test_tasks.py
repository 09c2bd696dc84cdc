"""`circuitdb tasks`: every task with a question, and the options of one."""

from __future__ import annotations

import json

import pytest

import terminals
from circuitdb.ingest.tasks import registry


def test_every_task_is_listed_with_a_question(cli: terminals.Cli) -> None:
    answer = json.loads(cli("tasks", "--json").out)
    assert answer["columns"] == ["task", "partition", "question", "answer"]
    rows = {row["task"]: row for row in answer["rows"]}
    assert list(rows) == list(registry.TASKS)
    assert rows["boolean"]["partition"] == "operators, length, parentheses, depth"
    for name, row in rows.items():
        task = registry.find(name, {})
        (question,) = task.questions(task.subtasks()[0], 1, 0)
        assert (row["question"], row["answer"]) == (question.prompt, question.answer)
    (table,) = terminals.tables(cli("tasks").out)[:1]
    assert len(table) >= len(rows)


@pytest.mark.parametrize("name", registry.TASKS)
def test_the_options_of_one_task(cli: terminals.Cli, name: str) -> None:
    run = cli("tasks", name, "--json")
    assert run.code == 0
    answer = json.loads(run.out)
    options = registry.registered(name).options
    assert [row["option"] for row in answer["rows"]] == [option.name for option in options]
    assert [row["default"] for row in answer["rows"]] == [option.default for option in options]
    assert len(answer["notes"]) == 2


def test_an_unknown_task(cli: terminals.Cli) -> None:
    run = cli("tasks", "sums")
    assert run.code == 2
    assert "There is no task 'sums'; choose one of addition, arithmetic" in run.err
