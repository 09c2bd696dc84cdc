"""The tasks by name, each made from the options of its own partition, given as text."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from circuitdb.errors import UsageError
from circuitdb.ingest.tasks import (
    addition,
    arithmetic,
    boolean,
    dates,
    dyck,
    greater_than,
    ioi,
    sports,
)
from circuitdb.ingest.tasks.file_task import FileTask
from circuitdb.ingest.tasks.files import reader
from circuitdb.ingest.tasks.partition import Option
from circuitdb.ingest.tasks.task import Task

Reader: TypeAlias = Callable[[str], str | None]


@dataclass(frozen=True)
class Registered:
    """How a task is made from the text of its options, what these are, and how its answers are read.

    `reader` is None where more answers than the stored one are right, so that a stored example can't be judged alone.
    """

    make: Callable[[Mapping[str, str]], Task]
    options: tuple[Option, ...]
    reader: Reader | None


TASKS: dict[str, Registered] = {
    "addition": Registered(addition.Addition.from_options, (addition.DIGITS,), addition.read_number),
    "arithmetic": Registered(
        arithmetic.Arithmetic.from_options, (arithmetic.OPERATORS, addition.DIGITS), addition.read_number
    ),
    "boolean": Registered(
        boolean.Boolean.from_options,
        (boolean.OPERATORS, boolean.LENGTH, boolean.PARENTHESES, boolean.DEPTH),
        boolean.read_value,
    ),
    "sports": Registered(sports.Sports.from_options, (sports.SPORTS, sports.PARTS), sports.read_verdict),
    "dyck": Registered(dyck.Dyck.from_options, (dyck.DEPTH, dyck.KINDS), dyck.read_brackets),
    "dates": Registered(dates.Dates.from_options, (dates.UNIT, dates.SPAN), dates.read_date),
    "ioi": Registered(ioi.Ioi.from_options, (ioi.ORDER, ioi.NAMES, ioi.PLACES), ioi.read_name),
    "greater-than": Registered(greater_than.GreaterThan.from_options, (greater_than.CENTURY,), None),
}


# How each task's answer is read from what a model wrote.
READERS: dict[str, Reader] = {name: task.reader for name, task in TASKS.items() if task.reader is not None}


def find(name: str, options: Mapping[str, str], *, called: str | None = None) -> Task:
    """The task of that name with its partition, or the one in the file of that name.

    What is not given of the partition is its default. `called` is what the database calls a file's task. Raises
    UsageError.
    """
    if is_file(name):
        return FileTask(name, name=called)
    if called is not None:
        raise UsageError("--task-name is for a task in a file; others have a name.")
    task = registered(name)
    names = [option.name for option in task.options]
    for given in options:
        if given not in names:
            near = difflib.get_close_matches(given, names, n=1, cutoff=0.6)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(names)}."
            raise UsageError(f"The partition of {name} has no {given!r}; {hint}")
    return task.make(options)


def is_file(name: str) -> bool:
    """Whether the name of a task is that of a file."""
    return name not in TASKS and reader.is_file(name)


def registered(name: str) -> Registered:
    """What is known of the task of that name. Raises UsageError, naming those there are."""
    if name not in TASKS:
        raise UsageError(f"There is no task {name!r}; choose one of {', '.join(TASKS)}.")
    return TASKS[name]


def read_options(name: str, given: Sequence[str]) -> dict[str, str]:
    """Options from texts such as `length=3-5`; what is given twice is one list of both. Raises UsageError."""
    if is_file(name):
        if given:
            raise UsageError(f"The subtasks of {name} are those that it names; leave --partition and --digits out.")
        return {}
    found: dict[str, list[str]] = {}
    for text in given:
        option, equals, value = text.partition("=")
        if not equals or not option.strip():
            raise UsageError(f"--partition {text} is no NAME=VALUE; `circuitdb tasks {name}` lists the names.")
        found.setdefault(option.strip(), []).append(value)
    options = {option.name: option for option in registered(name).options}
    return {key: options[key].together(texts) if key in options else texts[0] for key, texts in found.items()}
