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
from circuitdb.ingest.accuracy import Answers, accuracy, choice_accuracy
from circuitdb.ingest.forecast import example_bytes, seconds_for
from circuitdb.ingest.jobs import Job
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.pairs import Pair
from circuitdb.ingest.plan import Options
from circuitdb.ingest.prepared import Prepared, Unfit, prepare_all
from circuitdb.ingest.reasoning import Draft
from circuitdb.ingest.scoring import EdgeScores
from circuitdb.ingest.sequences import Sequences, groups
from circuitdb.ingest.tasks.task import Task
from circuitdb.ingest.tokens import starts_with_bos
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
    n_padded: int | None = None
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
    store.create()
    prepared = prepare_all(model, task, options, listed=listed)
    return ingest_prepared(store, prepared, replace=replace, watcher=watcher)


def ingest_prepared(
    store: Sink, prepared: Prepared, *, replace: bool = False, watcher: Watcher | None = None
) -> list[Outcome]:
    """What `ingest` does of subtasks that are prepared, with a store that is there. Raises as it does."""
    told = watcher or Silent()
    scorer, options = prepared.scorer, prepared.options

    def finished() -> Mapping[str, int | None]:
        return {} if replace else store.finished(by_example=options.by_example)

    stored = finished()
    missing = prepared.missing(stored)
    told.planned(len(missing), sum(not isinstance(part, Unfit) for part in prepared.parts) - len(missing))
    if options.by_example and missing:
        told.sized(example_bytes(sum(_most_pairs(prepared.parts[i]) for i in missing), scorer.anatomy.shape))
    outcomes, timed = [], False
    for place, part in enumerate(list(prepared.parts)):
        if isinstance(part, Unfit):
            outcome = Outcome(part.subtask, "failed", reason=part.reason)
        elif part.spec_digest in (stored := finished()):  # or by another ingest, meanwhile
            outcome = Outcome(part.subtask.name, "kept", stored[part.spec_digest])
        else:
            told.started(part.subtask.name)
            try:
                whole = prepared.written(place)
                if options.method == "exact" and not timed:
                    # Those that are still to be written are taken to be like this one.
                    others = [prepared.parts[i] for i in missing]
                    like = [other if isinstance(other, Job) else whole for other in others]
                    told.estimated(sum(seconds_for(scorer, [groups(other.sequences)[0] for other in like])))
                    timed = True
                outcome = _score(store, prepared, whole, told, replace=replace)
            except (ModelError, TaskError) as error:
                outcome = Outcome(part.subtask.name, "failed", reason=str(error))
        told.finished(outcome)
        outcomes.append(outcome)
    return outcomes


def _most_pairs(part: Job | Draft | Unfit) -> int:
    return 0 if isinstance(part, Unfit) else part.most_pairs


def _score(store: Sink, prepared: Prepared, job: Job, told: Watcher, *, replace: bool) -> Outcome:
    scorer, options = prepared.scorer, prepared.options
    started_at, start = datetime.now(UTC), time.perf_counter()
    scored, places = groups(job.sequences)
    found = scorer.score(scored, told.progress)
    seconds = time.perf_counter() - start
    answers = job.answers()
    share, right = accuracy(prepared.task, job.questions, answers.texts)
    choice = choice_accuracy(answers.chosen)
    circuit = _circuit(scorer.model, job, options, found, started_at, seconds)
    circuit_id = store.write(
        circuit,
        found.scores,
        found.folds,
        examples=_examples(job, answers, right),
        by_example=None if found.by_example is None else found.by_example[np.argsort(places)],
        accuracy=[share] if choice is None else [share, choice],
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
        n_padded=circuit.n_padded,
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
        prompt_style=options.prompt_style,
        shots=options.shots,
        shots_drawn=options.shots_drawn if options.shots else None,
        reasoning_tokens=options.reasoning_tokens if options.chain_of_thought else None,
        chat=options.chat,
        chat_template=None if job.form.chat is None else job.form.chat.template,
        seed=options.seed,
        n_examples=found.n_examples,
        n_skipped=len(job.questions) - found.n_examples,
        metric_clean=found.metric_clean,
        metric_corrupted=found.metric_corrupted,
        bos=starts_with_bos(model, job.questions[0].ids),
        padding="left" if job.n_padded else "none",
        n_padded=job.n_padded,
        dtype=model.dtype_name,
        device=str(model.device),
        batch_size=found.batch_size,
        software=_software(),
        started_at=started_at,
        wall_time_s=seconds,
    )


def _examples(job: Job, answers: Answers, right: Sequence[bool]) -> list[Example]:
    found, scored = [], iter(job.sequences)
    reasoning = job.reasoning or (None,) * len(job.questions)
    for question, outcome, text, correct, words in zip(
        job.questions, job.pairing.outcomes, answers.texts, right, reasoning, strict=True
    ):
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
                reasoning=words,
            )
        )
    return found


def _software() -> dict[str, Json]:
    packages = {name: version(name) for name in ("torch", "transformer-lens", "transformers", "duckdb")}
    return {"circuitdb": __version__, "python": platform.python_version(), **packages}
