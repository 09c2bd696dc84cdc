"""What a file of evaluations says, whatever its format: one row a model, subtask, metric and filter of the answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from circuitdb.errors import UsageError

Table: TypeAlias = "dict[str, list[object]]"
_TOO_MANY = 2**63
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
            "n": pa.array([row.n for row in rows], pa.int64()),
            "is_group": pa.array([row.is_group for row in rows], pa.bool_()),
            "file": pa.array([row.file for row in rows], pa.string()),
        }
    )


def number(value: object) -> float | None:
    """A number, also written as text; None for what is none, for NaN and for infinity."""
    found = _float(value)
    return found if found is not None and math.isfinite(found) else None


def infinite(value: object) -> bool:
    """Whether a cell is an infinity, or a number too large for a double, which counts as one."""
    found = _float(value)
    return found is not None and math.isinf(found)


def numeric(value: object) -> bool:
    """Whether a cell is a number, be it an infinite one."""
    return number(value) is not None or infinite(value)


def infinities(file: str, cells: Iterable[object]) -> list[str]:
    """A note of how many of these cells are infinite, where any are: each reader takes them as having no value."""
    n = sum(map(infinite, cells))
    if not n:
        return []
    return [f"{file}: {n:,} {'cell is infinite and counts' if n == 1 else 'cells are infinite and count'} as NULL."]


def _float(value: object) -> float | None:
    if isinstance(value, str):
        value = value.strip()
        if "_" in value or not value.isascii():  # Python reads 1_0 as ten
            return None
    elif not isinstance(value, int | float) and not hasattr(value, "__float__"):
        return None
    try:
        return float(value)
    except ValueError:
        return None
    except OverflowError:  # an integer that no double can hold
        return math.inf


def whole(value: object) -> int | None:
    """A count; None for what is none."""
    found = number(value)
    return int(found) if found is not None and found == int(found) else None


def missing(value: object) -> bool:
    """Whether a cell says that there is no value: empty, N/A, NaN, null."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return isinstance(value, str) and value.strip().lower() in NOTHING


def check_text(text: str | None, what: str) -> None:
    """Raise UsageError for what no file can hold as UTF-8: a name that came as other bytes on the command line."""
    try:
        (text or "").encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{what} {text!r} is not in UTF-8; rename it.") from error


def distinct(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows, each cell once. Raises UsageError, naming the cell, where two files or lines contradict each other.

    Also for a number of questions that no database can hold.
    """
    seen: dict[tuple[str, str, str, str | None], Row] = {}
    for row in rows:
        if row.n is not None and abs(row.n) >= _TOO_MANY:
            raise UsageError(f"{row.file}: a number of questions of {float(row.n):g} is none; make it less than 2^63.")
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
