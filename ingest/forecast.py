"""What an ingest would do, before it is done: pairs, memory, disk and, from a short probe, time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from circuitdb.errors import ModelError, TaskError
from circuitdb.graph import GraphShape
from circuitdb.ingest.batch import Group
from circuitdb.ingest.exact_scores import exact_work
from circuitdb.ingest.jobs import Job
from circuitdb.ingest.memory import Length
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.plan import Options
from circuitdb.ingest.prepared import Prepared, Unfit, prepare_all
from circuitdb.ingest.scoring import Scorer
from circuitdb.ingest.sequences import groups
from circuitdb.ingest.tasks.task import Task
from circuitdb.store import Store, read_finished

# DuckDB's bytes for the score of one edge, measured on 500 circuits of 123,211 edges.
_BYTES_A_SCORE = 4.3
_PROBE_PAIRS, _PROBE_EDGES = 4, 256


@dataclass(frozen=True)
class Forecast:
    """One subtask of a plan: `missing`, `stored`, or `failed` with the reason; bytes, seconds for what is missing."""

    subtask: str
    status: str
    n_pairs: int | None = None
    n_skipped: int | None = None
    n_padded: int | None = None
    n_tokens: int | None = None
    n_shared: int | None = None
    batch_size: int | None = None
    memory: int | None = None
    disk: int | None = None
    seconds: float | None = None
    reason: str | None = None


def forecast(store: Store, model: LoadedModel, task: Task, options: Options) -> list[Forecast]:
    """What `ingest` with the same arguments would do; nothing is written, and the store need not exist yet.

    Raises UsageError and ModelError as `ingest` does.
    """
    return forecast_prepared(store, prepare_all(model, task, options))


def forecast_prepared(store: Store, prepared: Prepared, *, write: bool = True) -> list[Forecast]:
    """The same of subtasks that are prepared.

    Without `write` a chain of thought is written for one circuit alone, and the others are taken to take as long; their
    tokens and pairs are not known then.
    """
    by_example = prepared.options.by_example
    stored = read_finished(store, by_example=by_example) if Path(store.path).exists() else {}
    missing = prepared.missing(stored)
    first, writing, failed = _written(prepared, missing, every=write)
    speed = 0.0 if first is None else _seconds_per_work(prepared.scorer, groups(first.sequences)[0][0])
    found = []
    for place, part in enumerate(prepared.parts):
        if isinstance(part, Unfit):
            found.append(Forecast(part.subtask, "failed", reason=part.reason))
        elif place in failed:
            found.append(Forecast(part.subtask.name, "failed", reason=failed[place]))
        elif isinstance(part, Job):
            found.append(_forecast(prepared, part, speed, missing=place in missing))
        elif first is not None and place in missing:
            like = _forecast(prepared, first, speed, missing=True)
            found.append(
                Forecast(
                    part.subtask.name, "missing", batch_size=like.batch_size, memory=like.memory, disk=like.disk,
                    seconds=writing + (like.seconds or 0.0),
                )
            )  # fmt: skip
        else:
            found.append(Forecast(part.subtask.name, "stored", disk=0, seconds=0.0))
    return found


def _written(prepared: Prepared, missing: Sequence[int], *, every: bool) -> tuple[Job | None, float, dict[int, str]]:
    """(the first of the missing circuits that can be scored, seconds of writing for it, by place why others can't be).

    A chain of thought is written for it alone, or for `every` circuit: pairs are known once the model has written.
    """
    first, seconds, failed = None, 0.0, {}
    for place in missing:
        if first is not None and not every:
            break
        start = time.perf_counter()
        try:
            job = prepared.written(place)
        except TaskError as error:
            failed[place] = str(error)
            continue
        if first is None:
            first, seconds = job, time.perf_counter() - start
    return first, seconds, failed


def seconds_for(scorer: Scorer, circuits: Sequence[Sequence[Group]]) -> list[float]:
    """How long scoring each of these circuits will take, from a short probe on the first."""
    speed = _seconds_per_work(scorer, circuits[0][0])
    return [speed * sum(_work(scorer, group) for group in members) for members in circuits]


def example_bytes(n_examples: int, shape: GraphShape) -> int:
    """Disk that the scores of so many single examples take."""
    return int(_BYTES_A_SCORE * n_examples * shape.n_edges)


def _forecast(prepared: Prepared, job: Job, speed: float, *, missing: bool) -> Forecast:
    scorer, options = prepared.scorer, prepared.options
    scored, _ = groups(job.sequences)
    longest = max(scored, key=lambda group: group.n_positions)
    shared = scorer.rounds.n_shared(longest)
    n_pairs = len(job.sequences)
    memory = scorer.memory.plan(
        Length(longest.n_positions - shared, shared, longest.n_scored),
        len(longest.clean),
        options.folds,
        by_example=options.by_example,
    )
    kept = 1 + options.folds + n_pairs * options.by_example
    return Forecast(
        subtask=job.subtask.name,
        status="missing" if missing else "stored",
        n_pairs=n_pairs,
        n_skipped=len(job.questions) - n_pairs,
        n_padded=job.n_padded,
        n_tokens=longest.n_positions,
        n_shared=shared,
        batch_size=memory.batch_size,
        memory=memory.peak,
        disk=example_bytes(kept, scorer.anatomy.shape) if missing else 0,
        seconds=speed * sum(_work(scorer, group) for group in scored) if missing else 0.0,
    )


def _work(scorer: Scorer, group: Group, edges: npt.NDArray[np.bool_] | None = None) -> float:
    """Work of a group, in units that a probe has too: positions times passes."""
    n_shared = scorer.rounds.n_shared(group)
    positions, corrupted = (len(group.clean) * (side.shape[1] - n_shared) for side in (group.clean, group.corrupted))
    if scorer.method.name == "exact":
        return positions * exact_work(scorer.anatomy.shape, scorer.edges if edges is None else edges)
    runs = 1 + 2 * scorer.anatomy.shape.n_layers if scorer.method.name == "eap-ig-activations" else 1
    # A backward pass is worth two forward ones, and the clean and corrupted runs are one each.
    return positions * (1 + 3 * len(scorer.points) * runs) + corrupted


def _seconds_per_work(scorer: Scorer, group: Group) -> float:
    """Time of a few pairs (and, for exact, of a few edges spread over the layers) by their work."""
    n = min(_PROBE_PAIRS, len(group.clean))
    labels = None if group.labels is None else group.labels[:n]
    fold = torch.zeros(n, dtype=torch.int64)
    few = Group(group.clean[:n], group.corrupted[:n], labels, fold, group.n_scored, group.align)
    probe = scorer.probe(_PROBE_EDGES)
    start = time.perf_counter()
    try:
        probe.score([few])
    except ModelError:
        return float("nan")  # the ingest itself will say which subtask fails, and why
    return (time.perf_counter() - start) / _work(scorer, few, probe.edges)
