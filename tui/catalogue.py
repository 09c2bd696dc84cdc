"""The circuits of the database as the screens know them, in the order of `circuitdb circuits`; free of Textual."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from circuitdb.words import count

if TYPE_CHECKING:
    from circuitdb.queries.result import Result

LEVELS = ("model", "task", "subtask", "method")
# What tells apart circuits of one model, task, subtask and method.
_SETTINGS = ("steps", "metric", "prompt_style", "shots", "seed", "dtype")


@dataclass(frozen=True)
class Entry:
    """One circuit: where it stands in the tree, and its row of `Database.circuits`, times in UTC."""

    circuit_id: int
    path: tuple[str, str, str, str]
    started_at: datetime | None
    accuracy: float | None
    row: dict[str, Any]

    @property
    def n_notes(self) -> int:
        """How many notes there are on it, as a whole or on a part of it."""
        return int(self.row["n_notes"])

    @property
    def text(self) -> str:
        """What a filter is looked for in."""
        return " ".join((*self.path, *(str(self.row[name]) for name in _SETTINGS), f"#{self.circuit_id}")).lower()

    @property
    def settings(self) -> str:
        """How it was scored, in a few words."""
        row = self.row
        found = [f"{row['steps']} steps"] if row["steps"] is not None else []
        found += [str(row["metric"])]
        found += [f"{row['shots']}-shot"] if row["shots"] is not None else []
        found += [f"seed {row['seed']}"] if row["seed"] is not None else []
        return ", ".join(found)


@dataclass(frozen=True)
class Catalogue:
    """All circuits; two catalogues are equal if their circuits are."""

    entries: tuple[Entry, ...] = ()

    @classmethod
    def of(cls, circuits: Result) -> Catalogue:
        """The catalogue of an answer of `Database.circuits`."""
        import pyarrow as pa  # not when the browser opens: see `access`

        table = circuits.arrow()
        # With a time zone, the Python values of a time would take pandas, and a second to import that.
        place = table.column_names.index("started_at")
        table = table.set_column(place, "started_at", table["started_at"].cast(pa.timestamp("us")))
        return cls(tuple(_entry(row) for row in cast("list[dict[str, Any]]", table.to_pylist())))

    @cached_property
    def ids(self) -> tuple[int, ...]:
        """Circuit ids in order."""
        return tuple(entry.circuit_id for entry in self.entries)

    @cached_property
    def by_id(self) -> dict[int, Entry]:
        """Each circuit by its id."""
        return {entry.circuit_id: entry for entry in self.entries}

    def label(self, circuit_id: int) -> str:
        """A circuit in a few words: its subtask, after what varies of model, task and method; #id where it is gone."""
        entry = self.by_id.get(circuit_id)
        if entry is None:
            return f"#{circuit_id}"
        parts = [entry.path[i] for i in self._varying if i != 2]
        name = "/".join([*parts, entry.path[2]])
        return name if self._often[entry.path] == 1 else f"{name}#{circuit_id}"

    def badge(self, circuit_id: int) -> str:
        """How many notes there are on a circuit, to stand beside its name; nothing where there are none."""
        entry = self.by_id.get(circuit_id)
        return "" if entry is None else badge(entry.n_notes)

    def matching(self, text: str) -> tuple[Entry, ...]:
        """The circuits that have every word of `text`, in any case, in their names and settings."""
        words = text.lower().split()
        return tuple(entry for entry in self.entries if all(word in entry.text for word in words))

    @cached_property
    def _varying(self) -> tuple[int, ...]:
        return tuple(i for i in range(len(LEVELS)) if len({entry.path[i] for entry in self.entries}) > 1)

    @cached_property
    def _often(self) -> dict[tuple[str, ...], int]:
        often: dict[tuple[str, ...], int] = {}
        for entry in self.entries:
            often[entry.path] = often.get(entry.path, 0) + 1
        return often


@dataclass(frozen=True)
class Branch:
    """A node of the tree: its own part of the path, the circuits below it, the newest date, and its branches."""

    path: tuple[str, ...]
    name: str
    entries: tuple[Entry, ...]
    branches: tuple[Branch, ...] = ()

    @property
    def ids(self) -> tuple[int, ...]:
        """The circuits below it."""
        return tuple(entry.circuit_id for entry in self.entries)

    @property
    def n_notes(self) -> int:
        """How many notes there are on the circuits below it."""
        return sum(entry.n_notes for entry in self.entries)

    @property
    def newest(self) -> datetime | None:
        """When the last of them was scored."""
        return max((entry.started_at for entry in self.entries if entry.started_at is not None), default=None)


def badge(n_notes: int) -> str:
    """How many notes there are, in a word; nothing for none."""
    return f"({count(n_notes, 'note')})" if n_notes else ""


def tree(entries: Iterable[Entry]) -> tuple[Branch, ...]:
    """Models > tasks > subtasks > methods, in the order of the entries.

    Circuits that share all four (another seed, say) stand one by one below the method.
    """
    return _branches(tuple(entries), ())


def _branches(entries: tuple[Entry, ...], path: tuple[str, ...]) -> tuple[Branch, ...]:
    depth = len(path)
    if depth == len(LEVELS):
        if len(entries) == 1:
            return ()
        return tuple(Branch((*path, f"#{e.circuit_id}"), f"#{e.circuit_id} {e.settings}", (e,)) for e in entries)
    parts: dict[str, list[Entry]] = {}
    for entry in entries:
        parts.setdefault(entry.path[depth], []).append(entry)
    return tuple(
        Branch((*path, name), name, tuple(group), _branches(tuple(group), (*path, name)))
        for name, group in parts.items()
    )


def _entry(row: dict[str, Any]) -> Entry:
    path = (str(row["model"]), str(row["task"]), str(row["subtask"]), str(row["method"]))
    return Entry(int(row["circuit_id"]), path, row["started_at"], row["accuracy"], row)
