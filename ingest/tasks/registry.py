"""The tasks by name, each made from the options of its own partition, given as text.

Besides those that come along there are those that a user registers, and those that installed packages offer as entry
points of the group `circuitdb.tasks`: names of tasks, each with a `Registered`. A package is imported when its task is
asked for.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
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
from circuitdb.ingest.tasks.checked import asked_of
from circuitdb.ingest.tasks.file_task import FileTask
from circuitdb.ingest.tasks.files import reader
from circuitdb.ingest.tasks.partition import Numbers, Option, Words
from circuitdb.ingest.tasks.task import Task

Reader: TypeAlias = Callable[[str], str | None]


@dataclass(frozen=True)
class Registered:
    """How a task is made from the text of its options, what these are, and how its answers are read.

    `reader` is None where more answers than the stored one are right, so that a stored example can't be judged alone.
    """

    make: Callable[[Mapping[str, str]], Task]
    options: tuple[Option, ...] = ()
    reader: Reader | None = None


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


GROUP = "circuitdb.tasks"
_OWN = frozenset(TASKS)
# No dot and no slash, so that no name of a task is that of a file.
_NAME = re.compile(r"[A-Za-z][\w-]*")


def register(
    name: str,
    make: Callable[[Mapping[str, str]], Task],
    options: Sequence[Option] = (),
    reader: Reader | None = None,
) -> None:
    """Add a task, so that `find` and all that takes a task's name know it, for as long as Python runs.

    Args:
        name: letters, digits, `-` and `_`, a letter first.
        make: makes the task from the texts of its options, which may be none; the task must have that name.
        options: what its partition is split by.
        reader: the answer in what a model wrote, as `Task.read_answer`; None where it can't be judged alone.

    Raises UsageError for a name that is taken or none, and for a `make` or options that can't be.

    >>> from circuitdb.ingest.tasks import addition, registry
    >>> registry.register("tiny-sums", lambda _: addition.Addition((1,), name="tiny-sums"))
    >>> [subtask.name for subtask in registry.find("tiny-sums", {}).subtasks()]
    ['1+1']
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f"A task is called by letters, digits, - and _, a letter first, not {name!r}.")
    if name in names():
        raise UsageError(f"There is a task {name} already; give yours another name.")
    TASKS[name] = _checked(name, Registered(make, tuple(options), reader))


def names() -> list[str]:
    """Names of all tasks, those of installed packages last."""
    return [*TASKS, *sorted(name for name in _offered() if name not in TASKS)]


def readers(of: Iterable[str]) -> dict[str, Reader]:
    """How the answers of these tasks are read from what a model wrote; without those that can't be judged so.

    Raises UsageError as `registered` does, but for names that are not known here, which are left out.
    """
    known = set(names())
    found = {name: registered(name).reader for name in of if name in known}
    return {name: reader for name, reader in found.items() if reader is not None}


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
    known = [option.name for option in task.options]
    for given in options:
        if given not in known:
            near = difflib.get_close_matches(given, known, n=1, cutoff=0.6)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(known) or 'no options'}."
            raise UsageError(f"The partition of {name} has no {given!r}; {hint}")
    made = asked_of(name, "its partition", lambda: task.make(options))
    if getattr(made, "name", None) != name:
        raise UsageError(f"The task {name} calls itself {getattr(made, 'name', None)!r}; both names must be the same.")
    return made


def is_file(name: str) -> bool:
    """Whether the name of a task is that of a file."""
    return name not in TASKS and name not in _offered() and reader.is_file(name)


def registered(name: str) -> Registered:
    """What is known of the task of that name.

    Raises UsageError if there is none, naming those there are; if there are two; or if its package can't be imported.
    """
    offered = _offered().get(name, [])
    if len(offered) + (name in TASKS) > 1:
        makers = [
            *(["circuitdb itself" if name in _OWN else "register()"] if name in TASKS else []),
            *map(_maker, offered),
        ]
        raise UsageError(
            f"Several tasks are called {name}, of {' and '.join(makers)}; uninstall or rename all but one."
        )
    if name in TASKS:
        return TASKS[name]
    if not offered:
        raise UsageError(f"There is no task {name!r}; choose one of {', '.join(names())}.")
    (point,) = offered
    if not _NAME.fullmatch(name):
        raise UsageError(f"{_maker(point)} calls a task {name!r}; letters, digits, - and _ can be, a letter first.")
    try:
        found = point.load()
    except Exception as error:  # whatever the package raises while it is imported
        raise UsageError(
            f"The task {name} of {_maker(point)} can't be imported: {' '.join(str(error).split())}"
        ) from error
    if not isinstance(found, Registered):
        raise UsageError(f"{point.value} of {_maker(point)} is no Registered, so it can't be the task {name}.")
    return _checked(name, found)


def _offered() -> dict[str, list[EntryPoint]]:
    """The tasks of installed packages by name, none of them imported."""
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        found.setdefault(point.name, []).append(point)
    return found


def _maker(point: EntryPoint) -> str:
    return f"the package {point.dist.name}" if point.dist is not None else f"the package of {point.value}"


def _checked(name: str, task: Registered) -> Registered:
    """The same. Raises UsageError for parts of the wrong kind, which would fail later and say less."""
    if not callable(task.make):
        raise UsageError(f"What makes the task {name} must be a function of its options, not {task.make!r}.")
    if not isinstance(task.options, tuple) or not all(isinstance(option, (Numbers, Words)) for option in task.options):
        raise UsageError(f"The options of the task {name} must be a tuple of Numbers and Words.")
    if task.reader is not None and not callable(task.reader):
        raise UsageError(
            f"What reads the answers of the task {name} must be a function of a text, not {task.reader!r}."
        )
    return task


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
