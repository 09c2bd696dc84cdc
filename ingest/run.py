"""Ingest: plan every subtask, leave out what is stored, then score and store circuit by circuit.

Each circuit is stored as soon as it is scored, in a transaction of its own. Stopped at any moment and started again, an
ingest goes on with the first circuit that is missing.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Protocol

import numpy as np
import numpy.typing as npt

from circuitdb import __version__
from circuitdb.errors import ModelError, TaskError
from circuitdb.ingest.accuracy import accuracy, predictions
from circuitdb.ingest.forecast import example_bytes, seconds_for
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.pairs import Pair
from circuitdb.ingest.plan import Job, Options, plan
from circuitdb.ingest.scoring import EdgeScores, Scorer
from circuitdb.ingest.sequences import Sequences, groups
from circuitdb.ingest.tasks.task import Task
from circuitdb.ingest.tokens import spelt, starts_with_bos
from circuitdb.records import Accuracy, Circuit, Example, Json


@dataclass(frozen=True)
class Outcome:
    """What became of a subtask: `stored`, `kept` (it was there already) or `failed`, with the reason."""

    subtask: str
    status: str
    circuit_id: int | None = None
    n_examples: int | None = None
    n_skipped: int | None = None
    n_nonfinite: int | None = None
    accuracy: float | None = None
    wall_time_s: float | None = None
    reason: str | None = None


class Watcher(Protocol):
    """Who is told how an ingest is going."""

    def planned(self, n_missing: int, n_stored: int) -> None:
        """All subtasks are planned; `n_missing` circuits are to be scored, `n_stored` are there already."""

    def sized(self, n_bytes: int) -> None:
        """Disk that the scores of single examples will take, where they are asked for."""

    def estimated(self, seconds: float) -> None:
        """How long all missing circuits will take, where that is long: by exact patching."""

    def started(self, subtask: str) -> None:
        """A circuit is being scored."""

    def progress(self, share: float) -> None:
        """Share of the current circuit that is done, 0..1."""

    def finished(self, outcome: Outcome) -> None:
        """A subtask is done with."""


class Sink(Protocol):
    """Where circuits are put: the methods of a `Store`, which gives them ids, or of a folder, which does not."""

    def create(self) -> None:
        """Make it, or see that it can be written to, before any work is lost."""

    def finished(self, *, by_example: bool = False) -> Mapping[str, int | None]:
        """Spec digest to id of every circuit that is there; of those with scores of single examples, if asked."""

    def write(
        self,
        circuit: Circuit,
        scores: npt.ArrayLike,
        folds: npt.ArrayLike | None = None,
        *,
        examples: Sequence[Example] = (),
        by_example: npt.ArrayLike | None = None,
        accuracy: Accuracy | Sequence[Accuracy] | None = None,
        replace: bool = False,
    ) -> int | None:
        """Put one circuit there, whole or not at all; its id."""


class Silent:
    """A watcher that says nothing."""

    def planned(self, n_missing: int, n_stored: int) -> None:
        """Ignore it."""

    def sized(self, n_bytes: int) -> None:
        """Ignore it."""

    def estimated(self, seconds: float) -> None:
        """Ignore it."""

    def started(self, subtask: str) -> None:
        """Ignore it."""

    def progress(self, share: float) -> None:
        """Ignore it."""

    def finished(self, outcome: Outcome) -> None:
        """Ignore it."""


def ingest(
    store: Sink,
    model: LoadedModel,
    task: Task,
    options: Options,
    *,
    replace: bool = False,
    listed: Mapping[str, str] | None = None,
    watcher: Watcher | None = None,
) -> list[Outcome]:
    """Score and store every subtask's circuit that the store lacks; returns one outcome a subtask, in order.

    A subtask that can't be scored is reported as failed and the others go on. `replace` scores all of them again and
    puts them in the place of the stored ones. `listed`: the circuits of a work list, subtask to spec digest; only these
    are scored, and only if they are the same here.

    Raises:
        UsageError: options that can't be.
        ModelError: a model that can't be scored right.
        StoreError: the database can't be written.
    """
    told = watcher or Silent()
    store.create()
    scorer = options.scorer(model)
    task = spelt(model, task)
    planned: list[Job | Outcome] = []
    for subtask in task.subtasks():
        if listed is not None and subtask.name not in listed:
            continue
        try:
            planned.append(plan(model, task, subtask, options))
        except TaskError as error:
            planned.append(Outcome(subtask.name, "failed", reason=str(error)))
    if listed is not None:
        planned = [_as_listed(job, listed) for job in planned]

    def finished() -> Mapping[str, int | None]:
        return {} if replace else store.finished(by_example=options.by_example)

    stored = finished()
    missing = [job for job in planned if isinstance(job, Job) and job.spec_digest not in stored]
    told.planned(len(missing), sum(isinstance(job, Job) for job in planned) - len(missing))
    if options.by_example and missing:
        told.sized(example_bytes(sum(len(job.sequences) for job in missing), scorer.anatomy.shape))
    outcomes, timed = [], False
    for job in planned:
        if isinstance(job, Outcome):
            outcome = job
        elif job.spec_digest in (stored := finished()):  # or by another ingest, meanwhile
            outcome = Outcome(job.subtask.name, "kept", stored[job.spec_digest])
        else:
            told.started(job.subtask.name)
            if options.method == "exact" and not timed:
                told.estimated(sum(seconds_for(scorer, [groups(other.sequences)[0] for other in missing])))
                timed = True
            outcome = _score(store, scorer, task, job, options, told, replace=replace)
        told.finished(outcome)
        outcomes.append(outcome)
    return outcomes


def _as_listed(job: Job | Outcome, listed: Mapping[str, str]) -> Job | Outcome:
    """The job, unless its circuit would be another one than the list says."""
    if isinstance(job, Outcome) or job.spec_digest == listed[job.subtask.name]:
        return job
    reason = "Its questions or their tokens are not those of the work list: another file, or another circuitdb."
    return Outcome(job.subtask.name, "failed", reason=reason)


def _score(
    store: Sink, scorer: Scorer, task: Task, job: Job, options: Options, told: Watcher, *, replace: bool
) -> Outcome:
    started_at, start = datetime.now(UTC), time.perf_counter()
    try:
        scored, places = groups(job.sequences)
        found = scorer.score(scored, told.progress)
        seconds = time.perf_counter() - start
        texts = predictions(scorer.model, job.questions)
    except ModelError as error:
        return Outcome(job.subtask.name, "failed", reason=str(error))
    share, right = accuracy(task, job.questions, texts)
    circuit = _circuit(scorer.model, job, options, found, started_at, seconds)
    circuit_id = store.write(
        circuit,
        found.scores,
        found.folds,
        examples=_examples(job, texts, right),
        by_example=None if found.by_example is None else found.by_example[np.argsort(places)],
        accuracy=share,
        replace=replace,
    )
    return _outcome(circuit, circuit_id, found, share)


def _outcome(circuit: Circuit, circuit_id: int | None, found: EdgeScores, share: Accuracy) -> Outcome:
    return Outcome(
        subtask=circuit.subtask.name,
        status="stored",
        circuit_id=circuit_id,
        n_examples=circuit.n_examples,
        n_skipped=circuit.n_skipped,
        n_nonfinite=found.n_nonfinite,
        accuracy=share.value,
        wall_time_s=circuit.wall_time_s,
    )


def _circuit(
    model: LoadedModel, job: Job, options: Options, found: EdgeScores, started_at: datetime, seconds: float
) -> Circuit:
    return Circuit(
        model=model.record,
        subtask=job.subtask,
        method=options.method,
        metric=options.metric,
        spec=job.spec,
        steps=options.steps,
        grid=options.grid,
        positions=options.positions,
        contrast=options.contrast,
        ablation=options.ablation,
        prompt_style="few-shot" if options.shots else "zero-shot",
        shots=options.shots,
        seed=options.seed,
        n_examples=found.n_examples,
        n_skipped=len(job.questions) - found.n_examples,
        metric_clean=found.metric_clean,
        metric_corrupted=found.metric_corrupted,
        bos=starts_with_bos(model, job.questions[0].ids),
        padding="none",
        dtype=model.dtype_name,
        device=str(model.device),
        batch_size=found.batch_size,
        software=_software(),
        started_at=started_at,
        wall_time_s=seconds,
    )


def _examples(job: Job, texts: Sequence[str], right: Sequence[bool]) -> list[Example]:
    found, scored = [], iter(job.sequences)
    for question, outcome, text, correct in zip(job.questions, job.pairing.outcomes, texts, right, strict=True):
        partner = outcome.corrupted if isinstance(outcome, Pair) else None
        run: Sequences | None = next(scored) if partner else None
        found.append(
            Example(
                clean=question.text,
                corrupted=partner.text if partner else None,
                answer=question.question.answer,
                corrupted_answer=(partner.question.answer or None) if partner else None,
                n_tokens=len(question.ids),
                fold=outcome.fold if isinstance(outcome, Pair) else None,
                reason=None if isinstance(outcome, Pair) else outcome,
                prediction=text,
                correct=correct,
                clean_ids=run.clean if run else question.ids,
                corrupted_ids=run.corrupted if run else None,
                labels=run.labels if run else None,
            )
        )
    return found


def _software() -> dict[str, Json]:
    packages = {name: version(name) for name in ("torch", "transformer-lens", "transformers", "duckdb")}
    return {"circuitdb": __version__, "python": platform.python_version(), **packages}
