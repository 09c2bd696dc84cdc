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
from circuitdb.ingest.plan import Options, prepare
from circuitdb.ingest.reasoning import Draft
from circuitdb.ingest.scoring import Scorer
from circuitdb.ingest.sequences import groups
from circuitdb.ingest.tasks.task import Task
from circuitdb.ingest.tokens import spelt
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
    scorer = options.scorer(model)
    task = spelt(model, task)
    stored = read_finished(store, by_example=options.by_example) if Path(store.path).exists() else {}
    planned: list[Job | Draft | Forecast] = []
    for subtask in task.subtasks():
        try:
            job = prepare(model, task, subtask, options)
            # Pairs are known once the model has written; for what is stored already it need not.
            planned.append(job.written() if isinstance(job, Draft) and job.spec_digest not in stored else job)
        except TaskError as error:
            planned.append(Forecast(subtask.name, "failed", reason=str(error)))
    missing = [job for job in planned if isinstance(job, Job) and job.spec_digest not in stored]
    speed = _seconds_per_work(scorer, groups(missing[0].sequences)[0][0]) if missing else 0.0
    return [
        job
        if isinstance(job, Forecast)
        else Forecast(job.subtask.name, "stored", disk=0, seconds=0.0)
        if isinstance(job, Draft)
        else _forecast(scorer, job, options, speed, missing=job in missing)
        for job in planned
    ]


def seconds_for(scorer: Scorer, circuits: Sequence[Sequence[Group]]) -> list[float]:
    """How long scoring each of these circuits will take, from a short probe on the first."""
    speed = _seconds_per_work(scorer, circuits[0][0])
    return [speed * sum(_work(scorer, group) for group in members) for members in circuits]


def example_bytes(n_examples: int, shape: GraphShape) -> int:
    """Disk that the scores of so many single examples take."""
    return int(_BYTES_A_SCORE * n_examples * shape.n_edges)


def _forecast(scorer: Scorer, job: Job, options: Options, speed: float, *, missing: bool) -> Forecast:
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
