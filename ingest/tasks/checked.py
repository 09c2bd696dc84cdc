"""What a task gives, checked: tasks are written by users, and what is wrong with one is told by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from circuitdb.errors import CircuitdbError, UsageError
from circuitdb.ingest.tasks.task import Question, Task
from circuitdb.records import Subtask

Given = TypeVar("Given")


def asked_of(name: str, what: str, ask: Callable[[], Given]) -> Given:
    """What a function of the task `name` returns. Raises UsageError for whatever it raises but errors of ours."""
    try:
        return ask()
    except CircuitdbError:
        raise
    except Exception as error:  # whatever the task raises
        told = " ".join(str(error).split()) or "no message"
        raise UsageError(f"The task {name} can't give {what}: {type(error).__name__}: {told}") from error


def subtasks_of(task: Task) -> list[Subtask]:
    """The cells of a task's partition. Raises UsageError unless they are Subtasks, each with a name of its own."""
    found = _listed(task.name, "its subtasks", Subtask, task.subtasks)
    names: set[str] = set()
    for subtask in found:
        if not isinstance(subtask.name, str) or not subtask.name.strip():
            raise UsageError(f"The task {task.name} calls a subtask {subtask.name!r}; its name must be a text.")
        if subtask.name in names:
            raise UsageError(f"The task {task.name} has two subtasks {subtask.name}; give each a name of its own.")
        names.add(subtask.name)
    if not found:
        raise UsageError(f"The task {task.name} has no subtasks; its partition needs one at least.")
    return found


def questions_of(task: Task, subtask: Subtask, n: int, seed: int) -> list[Question]:
    """`n` questions of a cell, or fewer. Raises UsageError unless they are Questions whose parts are texts."""
    what = f"the questions of {subtask.name}"
    found = _listed(task.name, what, Question, lambda: task.questions(subtask, n, seed))
    for question in found:
        for part in ("prompt", "answer", "gap", "reasoning"):
            if not isinstance(getattr(question, part), str):
                raise UsageError(
                    f"The task {task.name} gives a question of {subtask.name} whose {part} is "
                    f"{getattr(question, part)!r}; it must be a text."
                )
    return found


def _listed(name: str, what: str, kind: type[Given], ask: Callable[[], Iterable[Given]]) -> list[Given]:
    # A generator raises while it is read.
    found = asked_of(name, what, lambda: list(ask()))
    odd = next((one for one in found if not isinstance(one, kind)), None)
    if odd is not None:
        raise UsageError(f"The task {name} gives {odd!r} among {what}; each must be a {kind.__name__}.")
    return found
