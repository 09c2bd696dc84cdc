"""What the library says of the chosen circuits: stability, families, accuracy, provenance; free of Textual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from circuitdb.errors import UsageError
from circuitdb.tui.catalogue import LEVELS, Entry
from circuitdb.words import count, enumeration

if TYPE_CHECKING:
    from circuitdb.queries.database import Database
    from circuitdb.queries.pairing import Matrix

_MOST = 3  # values that are listed of one setting, families of one alpha
_SETTINGS = ("metric", "steps", "prompt_style", "shots", "seed", "n_examples", "dtype", "revision", "origin")
_GROUP = ("model", "task", "method")
_NAMES = {"prompt_style": "prompt", "n_examples": "examples"}


@dataclass(frozen=True, eq=False)
class Summary:
    """What the database answers about the chosen circuits; alpha can be moved without asking it again.

    Attributes:
        stability: one row a group, as `Database.stability` gives it.
        labels: of the circuits, as in `values`.
        values: their similarities, [circuit, circuit]; None where they can't be compared.
        useful: the alpha in the middle of the widest range that parts them.
        refusal: why they can't be compared; None if they can.
    """

    stability: tuple[dict[str, Any], ...]
    labels: tuple[str, ...] = ()
    values: Matrix | None = None
    useful: float = 0.0
    refusal: str | None = None

    def families(self, alpha: float | None) -> tuple[float, list[tuple[str, tuple[str, ...]]]]:
        """(alpha, name and members' labels of each family, the largest first); None takes the useful alpha."""
        from circuitdb.queries import families

        level = self.useful if alpha is None else alpha
        found = [] if self.values is None else families.components(self.values, level)
        return level, [(family.name, tuple(self.labels[row] for row in family.rows)) for family in found]


def summarise(db: Database, circuits: Sequence[int]) -> Summary:
    """Ask about circuits. Raises StoreError where the file can't be read."""
    from circuitdb.queries import families  # not when the browser opens: see `access`

    stability = tuple(cast("list[dict[str, Any]]", db.stability(circuits=circuits).rows()))
    try:
        similarity = db.similarity(circuits=circuits)
    except UsageError as error:  # of different shapes
        return Summary(stability, refusal=str(error))
    values = similarity.values(corrected=False)
    return Summary(stability, tuple(similarity.labels), values, families.useful_alpha(values)[0])


def overview(entries: Sequence[Entry]) -> str:
    """How many circuits, models, tasks, subtasks and methods."""
    parts = [count(len({entry.path[i] for entry in entries}), level) for i, level in enumerate(LEVELS)]
    return ", ".join(parts)


def accuracy(entries: Sequence[Entry]) -> str:
    """The mean share of right answers and its range, or that it was not asked."""
    found = [entry.accuracy for entry in entries if entry.accuracy is not None]
    if not found:
        return "not asked"
    low, high, mean = min(found), max(found), sum(found) / len(found)
    several = f", {low:.2f} to {high:.2f}" if len(found) > 1 else ""
    return f"{mean:.2f}{several}, of {count(len(found), 'circuit')}"


def group(row: dict[str, Any], groups: Sequence[dict[str, Any]]) -> str:
    """Model, task, method; and the settings that tell a group from another of the same three."""
    named = [str(row[name]) for name in _GROUP]
    alike = [other for other in groups if [str(other[name]) for name in _GROUP] == named]
    settings = list(row)[: list(row).index("n_subtasks")]
    varied = [name for name in settings if name not in _GROUP and len({str(other[name]) for other in alike}) > 1]
    return ", ".join(named + [f"{name} {'not known' if row[name] is None else row[name]}" for name in varied])


def stability(row: dict[str, Any]) -> Iterator[str]:
    """What is said of one group: the value with its interval, and the ceiling."""
    if row["stability"] is None:
        yield f"not known, of {count(row['n_subtasks'], 'subtask')}"
        return
    interval = "" if row["low"] is None else f" [{hundredths(row['low'])}, {hundredths(row['high'])}]"
    yield f"{hundredths(row['stability'])}{interval} over {count(row['n_pairs'], 'pair')}"
    if row["ceiling"] is not None:
        corrected = "" if row["corrected"] is None else f", corrected {hundredths(row['corrected'])}"
        yield f"ceiling {hundredths(row['ceiling'])}{corrected}"


def warnings(found: Summary) -> tuple[str, ...]:
    """What must not pass unsaid of the numbers, each once."""
    said = [str(row["warning"]) for row in found.stability if row["warning"] is not None]
    return tuple(dict.fromkeys(said))


def hundredths(value: float) -> str:
    """A number with two digits behind the point; never -0.00."""
    return f"{round(value, 2) + 0.0:.2f}"


def provenance(entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """(setting, its values) of each setting that any of the circuits has."""
    for name in _SETTINGS:
        values = dict.fromkeys(entry.row[name] for entry in entries)
        if set(values) != {None}:
            shown = enumeration(("none" if value is None else value for value in values), most=_MOST)
            yield _NAMES.get(name, name), shown
    times = sorted(entry.started_at for entry in entries if entry.started_at is not None)
    if times:
        first, last = f"{times[0]:%Y-%m-%d %H:%M}", f"{times[-1]:%Y-%m-%d %H:%M}"
        yield "scored", first if first == last else f"{first} to {last}"
    skipped = sum(entry.row["n_skipped"] or 0 for entry in entries)
    if skipped:
        yield "left out", count(skipped, "question")
