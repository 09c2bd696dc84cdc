"""The tasks by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from circuitdb.errors import UsageError
from circuitdb.ingest.tasks.addition import MAX_DIGITS, Addition
from circuitdb.ingest.tasks.task import Task

TASKS: dict[str, Callable[[Sequence[int]], Task]] = {"addition": Addition}


def find(name: str, digits: Sequence[int]) -> Task:
    """The task of that name over these digit counts. Raises UsageError, naming those there are."""
    if name not in TASKS:
        raise UsageError(f"There is no task {name!r}; choose one of {', '.join(TASKS)}.")
    return TASKS[name](digits)


def parse_digits(text: str) -> tuple[int, ...]:
    """Digit counts from `1-3` or `1,2,4`, sorted, each once. Raises UsageError."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or (dash and int(last) < int(first)):
            raise UsageError(f"--digits {text!r} is no list of digit counts; write 1-3 or 1,2,4.")
        if int(last or first) > MAX_DIGITS:
            raise UsageError(f"--digits {text!r} goes beyond {MAX_DIGITS} digits.")
        found.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(found))
