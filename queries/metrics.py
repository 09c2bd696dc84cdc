"""The value of a metric for each circuit: our own accuracies, or evaluations that were added."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from circuitdb.errors import UsageError
from circuitdb.evals import attached
from circuitdb.evals.attached import Attached
from circuitdb.queries import named
from circuitdb.queries.result import enumeration


@dataclass(frozen=True)
class Values:
    """`subtask`: circuit to the value of its subtask; `task`: circuit to that of its whole task; none where NULL."""

    subtask: dict[int, float]
    task: dict[int, float]
    notes: tuple[str, ...] = ()


def read(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    circuits: Sequence[int],
    filter: str | None = None,  # noqa: A002
) -> Values:
    """Values of NAME.metric for circuits.

    Raises UsageError if there is no such metric, or where several filters or several values of a cell leave a choice.
    """
    source, dot, metric = name.partition(".")
    there = attached.read(connection, [source])
    known = _names(connection, there)
    if not dot or name not in known:
        known = _names(connection, attached.read(connection))
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
        guess = f"; did you mean {near[0]}?" if near else "."
        raise UsageError(f"There is no metric {name}{guess} The database has: {enumeration(known) or 'none'}.")
    rows = named.run(
        connection, "metric_values", there, circuits=list(circuits), source=source, metric=metric, filter=filter
    ).to_pylist()
    filters = sorted({row["filter"] for row in rows if row["filter"] is not None})
    if len(filters) > 1:
        raise UsageError(f"{name} was read with several filters ({enumeration(filters)}); choose one with filter.")
    if filter is not None and circuits and not rows:
        raise UsageError(f"{name} was not read with the filter {filter}.")
    found = Values({}, {}, there.notes)
    for row in rows:
        # A tool's mean over other rows may stand for a whole task, never for one of the subtasks that it is made of.
        if row["is_group"] and not row["whole_task"]:
            continue
        cells = found.task if row["whole_task"] else found.subtask
        if row["value"] is None:
            continue
        if cells.setdefault(row["circuit_id"], row["value"]) != row["value"]:
            raise UsageError(
                f"{name} has two values for circuit {row['circuit_id']}, {cells[row['circuit_id']]:g} and "
                f"{row['value']:g}, since two of its names stand for one of ours; change the map of {source}."
            )
    return found


def _names(connection: duckdb.DuckDBPyConnection, there: Attached) -> list[str]:
    return [row["name"] for row in named.run(connection, "metric_names", there).to_pylist()]
