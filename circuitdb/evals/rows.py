"""What a file of evaluations says, whatever its format: one row a model, subtask, metric and filter of the answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from circuitdb.errors import UsageError

Table: TypeAlias = "dict[str, list[object]]"
NOTHING = frozenset({"", "n/a", "na", "nan", "null", "none", "-"})


@dataclass(frozen=True)
class Row:
    """One value, in the names of the file it comes from; None where it has none.

    `is_group` marks the mean that an evaluation tool made over other rows: it is never added to these.
    """

    model: str
    subtask: str
    metric: str
    value: float | None
    filter: str | None = None
    stderr: float | None = None
    n: int | None = None
    is_group: bool = False
    file: str = ""


@dataclass(frozen=True)
class Imported:
    """What some files hold: rows, the table as it was where the file is one, and what must be said of reading them."""

    format: str
    rows: tuple[Row, ...]
    table: pa.Table | None = None
    notes: tuple[str, ...] = ()


def as_table(source: str, rows: Sequence[Row]) -> pa.Table:
    """The rows as imported_evaluation has them, under the name of their source."""
    return pa.table(
        {
            "source": pa.array([source] * len(rows), pa.string()),
            "model": pa.array([row.model for row in rows], pa.string()),
            "subtask": pa.array([row.subtask for row in rows], pa.string()),
            "metric": pa.array([row.metric for row in rows], pa.string()),
            "filter": pa.array([row.filter for row in rows], pa.string()),
            "value": pa.array([row.value for row in rows], pa.float64()),
            "stderr": pa.array([row.stderr for row in rows], pa.float64()),
            "n": pa.array([row.n for row in rows], pa.int32()),
            "is_group": pa.array([row.is_group for row in rows], pa.bool_()),
            "file": pa.array([row.file for row in rows], pa.string()),
        }
    )


def number(value: object) -> float | None:
    """A number, also written as text; None for what is none, for NaN and for infinity."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        value = value.strip()
    elif not isinstance(value, int | float) and not hasattr(value, "__float__"):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def whole(value: object) -> int | None:
    """A count; None for what is none."""
    found = number(value)
    return int(found) if found is not None and found == int(found) else None


def missing(value: object) -> bool:
    """Whether a cell says that there is no value: empty, N/A, NaN, null."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return isinstance(value, str) and value.strip().lower() in NOTHING


def distinct(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows, each cell once. Raises UsageError, naming the cell, where two files or lines contradict each other."""
    seen: dict[tuple[str, str, str, str | None], Row] = {}
    for row in rows:
        key = (row.model, row.subtask, row.metric, row.filter)
        first = seen.setdefault(key, row)
        if (first.value, first.stderr, first.n) != (row.value, row.stderr, row.n):
            where = row.file if row.file == first.file else f"{first.file} and {row.file}"
            reader = f" ({row.filter})" if row.filter else ""
            raise UsageError(
                f"{where}: two values of {row.metric}{reader} for model {row.model!r}, subtask {row.subtask!r}: "
                f"{_shown(first)} and {_shown(row)}; keep one, or add them under two names."
            )
    return tuple(seen.values())


def _shown(row: Row) -> str:
    value = "none" if row.value is None else f"{row.value:g}"
    return value if row.n is None else f"{value} (n = {row.n:,})"
