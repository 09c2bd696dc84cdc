"""What a study is made of: conditions, each one ingest with its task, its partition and its way of asking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, Unpack

from circuitdb.errors import UsageError
from circuitdb.ingest.tasks.task import Task

if TYPE_CHECKING:
    from circuitdb.ingest.plan import Options

TINY, PAPER = SIZES = ("tiny", "paper")


class Settings(TypedDict, total=False):
    """Keywords of `Options`; what is not there is as `Options` has it by default."""

    method: str
    steps: int | None
    grid: str | None
    metric: str
    positions: str
    shots: int
    shots_drawn: str
    chain_of_thought: bool
    reasoning_tokens: int
    chat: bool
    n_examples: int
    seed: int
    batch_size: int | None


@dataclass(frozen=True)
class Condition:
    """A task with its partition, asked in one way; `settings` is how."""

    name: str
    task: Task
    settings: Settings

    def options(self, **changes: Unpack[Settings]) -> Options:
        """The options of its ingest, with the user's changes. Raises UsageError for options that can't be."""
        from circuitdb.ingest.plan import Options

        settings: Settings = {**self.settings, **changes}
        return Options(**settings)


@dataclass(frozen=True)
class Study:
    """A case study: its name, what it asks in a line, and its conditions at each size."""

    name: str
    question: str
    sizes: Mapping[str, Callable[[], tuple[Condition, ...]]]

    def conditions(self, size: str) -> tuple[Condition, ...]:
        """The conditions at a size, in the order in which they are scored. Raises UsageError for an unknown size."""
        if size not in self.sizes:
            raise UsageError(f"There is no size {size!r}; choose one of {', '.join(self.sizes)}.")
        return self.sizes[size]()
