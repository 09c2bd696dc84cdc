"""The tasks by name, each made from the options of its own partition, given as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from circuitdb.errors import UsageError
from circuitdb.ingest.tasks.addition import Addition, read_number
from circuitdb.ingest.tasks.file_task import FileTask
from circuitdb.ingest.tasks.files import reader
from circuitdb.ingest.tasks.task import Task

Reader: TypeAlias = Callable[[str], str | None]

TASKS: dict[str, Callable[[Mapping[str, str]], Task]] = {"addition": Addition.from_options}


# How each task's answer is read from what a model wrote.
READERS: dict[str, Reader] = {"addition": read_number}


def find(name: str, options: Mapping[str, str], *, called: str | None = None) -> Task:
    """The task of that name with its partition, or the one in the file of that name.

    `called` is what the database calls a file's task. Raises UsageError, naming the tasks that there are.
    """
    if name not in TASKS and reader.is_file(name):
        return FileTask(name, name=called)
    if called is not None:
        raise UsageError("--task-name is for a task in a file; others have a name.")
    if name not in TASKS:
        raise UsageError(f"There is no task {name!r}; choose one of {', '.join(TASKS)}.")
    return TASKS[name](options)
