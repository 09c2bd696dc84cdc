"""`circuitdb tasks`: the tasks that come along, and what the partition of each is split by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from circuitdb.cli import output
from circuitdb.cli.options import form_of

if TYPE_CHECKING:
    from circuitdb.ingest.tasks.task import Question, Task
    from circuitdb.queries.result import Result


def tasks(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A task, to see its options.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="CSV instead of a table.")] = False,
) -> None:
    """List the tasks, their partitions and a question of each.

    With a name, the options of its partition, its subtasks by default, and a question of each.

    Example: circuitdb tasks boolean
    """
    form = form_of(json=json, csv=csv)
    if name is None:
        output.answer(_every_task(), form)
        return
    output.answer(_one_task(name), form)


def _every_task() -> Result:
    import pyarrow as pa

    from circuitdb.ingest.tasks.registry import find, names, registered
    from circuitdb.queries.columns import texts
    from circuitdb.queries.result import Result, count

    known = names()
    questions = [_question(find(name, {})) for name in known]
    columns = {
        "task": texts(known),
        "partition": texts(", ".join(option.name for option in registered(name).options) for name in known),
        "question": texts(question.prompt for question in questions),
        "answer": texts(question.answer for question in questions),
    }
    note = "`circuitdb tasks NAME` explains the partition of one; `circuitdb ingest --partition NAME=VALUE` chooses it."
    title = f"{count(len(known), 'task')}: what each is split by, and a question of its first subtask"
    return Result(pa.table(columns), title, (note,))


def _one_task(name: str) -> Result:
    import pyarrow as pa

    from circuitdb.ingest.tasks.registry import find, registered
    from circuitdb.queries.columns import texts
    from circuitdb.queries.result import Result, count, enumeration

    options = registered(name).options
    task = find(name, {})
    columns = {
        "option": texts(option.name for option in options),
        "meaning": texts(option.meaning for option in options),
        "allowed": texts(option.allowed for option in options),
        "default": texts(option.default for option in options),
    }
    names, question = [subtask.name for subtask in task.subtasks()], _question(task)
    notes = (
        f"By default {count(len(names), 'subtask')}: {enumeration(names)}.",
        f"A question of {names[0]}: {question.prompt!r}, answered {question.answer!r}.",
    )
    return Result(pa.table(columns), f"{name}: {task.description}", notes)


def _question(task: Task) -> Question:
    """A question of the task's first subtask."""
    return task.questions(task.subtasks()[0], 1, 0)[0]
