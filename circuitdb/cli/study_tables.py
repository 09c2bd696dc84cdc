"""What a study says of its scoring: the plan before it, what became of each condition after it, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from circuitdb.cli.progress import duration
from circuitdb.queries.columns import integers, texts
from circuitdb.queries.result import Result

if TYPE_CHECKING:
    from circuitdb.ingest.forecast import Forecast
    from circuitdb.ingest.run import Outcome
    from circuitdb.ingest.studies.run import Planned, Scored
    from circuitdb.queries.database import Database

Row: TypeAlias = "tuple[str, str | None, str | None, str | None]"


def plan(planned: Sequence[Planned], title: str) -> Result:
    """What is to be scored, a row for each condition in each model; MB of disk and seconds are of all that is missing.

    `memory_mb` is the peak of its largest circuit.
    """
    missing = [[one for one in each.subtasks if one.status == "missing"] for each in planned]
    table = {
        "model": texts(each.model for each in planned),
        "condition": texts(each.condition for each in planned),
        **{f"n_{status}": _statuses(planned, status) for status in ("missing", "stored", "failed")},
        "n_pairs": integers((sum(one.n_pairs or 0 for one in each) for each in missing), bits=32),
        "memory_mb": _reals(max((one.memory or 0 for one in each), default=0) / 1e6 for each in missing),
        "disk_mb": _reals(sum(one.disk or 0 for one in each) / 1e6 for each in missing),
        "time_s": _reals(sum(one.seconds or 0.0 for one in each) for each in missing),
    }
    every = [one for each in missing for one in each]
    time, disk = sum(one.seconds or 0.0 for one in every), sum(one.disk or 0 for one in every)
    note = f"Scoring will take about {duration(time)} and {disk / 1e6:,.0f} MB of disk; nothing was written."
    return Result(pa.table(table), title, (*([note] if every else []), *_of_models(planned)))


def conditions(scored: Sequence[Scored], database: Database, title: str) -> Result:
    """What became of each condition in each model; `accuracy` is the mean over its circuits."""
    ids = [i for each in scored for i in each.circuits]
    stored = {row["circuit_id"]: row for row in database.circuits(circuits=ids).rows()} if ids else {}
    table = {
        "model": texts(_model(each, stored) for each in scored),
        "condition": texts(each.condition for each in scored),
        "n_circuits": integers((len(each.circuits) for each in scored), bits=32),
        "n_scored": _statuses(scored, "stored"),
        "n_kept": _statuses(scored, "kept"),
        "n_failed": _statuses(scored, "failed"),
        "accuracy": _reals(_mean([stored[i]["accuracy"] for i in each.circuits]) for each in scored),
    }
    notes = [
        f"{one.n_nonfinite:,} scores of {one.subtask} are not finite: stored as NULL, they count nowhere."
        for each in scored
        for one in each.subtasks
        if one.n_nonfinite
    ]
    return Result(pa.table(table), title, (*notes, *_of_models(scored)))


def failures(parts: Sequence[Planned] | Sequence[Scored]) -> Result:
    """What is missing, and why: subtasks, whole conditions, whole models."""
    rows: dict[Row, None] = {}
    for each in parts:
        if each.reason is not None:
            whole = all(other.reason == each.reason for other in parts if other.model == each.model)
            rows[each.model, None if whole else each.condition, None, each.reason] = None
        for one in each.subtasks:
            if one.status == "failed":
                rows[each.model, each.condition, one.subtask, one.reason] = None
    names = ("model", "condition", "subtask", "reason")
    table = {name: texts(row[i] for row in rows) for i, name in enumerate(names)}
    return Result(pa.table(table), "Missing: what can't be scored, and why" if rows else "Nothing is missing")


def _statuses(parts: Sequence[Planned] | Sequence[Scored], status: str) -> pa.Array:
    """How many subtasks of each part have a status."""
    of: list[Sequence[Forecast] | Sequence[Outcome]] = [each.subtasks for each in parts]
    return integers((sum(one.status == status for one in each) for each in of), bits=32)


def _model(scored: Scored, stored: Mapping[object, Mapping[str, object]]) -> str:
    """The model's name as answers show it, if a circuit of it is there."""
    return str(stored[scored.circuits[0]]["model"]) if scored.circuits else scored.model


def _mean(values: Sequence[object]) -> float | None:
    known = [float(str(value)) for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _reals(values: Iterable[float | None]) -> pa.Array:
    return pa.array(list(values), pa.float64())


def _of_models(parts: Sequence[Planned] | Sequence[Scored]) -> Iterable[str]:
    """What is to be said of the models, each note once."""
    return dict.fromkeys(note for each in parts for note in each.notes)
