"""Every subtask of an ingest as far as it is known before the model's first pass, for the forecast and for the run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from circuitdb.errors import TaskError
from circuitdb.ingest.jobs import Job
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.plan import Options, prepare
from circuitdb.ingest.reasoning import Draft
from circuitdb.ingest.scoring import Scorer
from circuitdb.ingest.tasks.checked import subtasks_of
from circuitdb.ingest.tasks.task import Task
from circuitdb.ingest.tokens import spelt


@dataclass(frozen=True)
class Unfit:
    """A subtask that can't be scored, and why."""

    subtask: str
    reason: str


@dataclass(frozen=True)
class Prepared:
    """An ingest with its scorer; `parts` are the subtasks in order, each a circuit to score or the reason why not.

    A draft gives place to its job once the model has written, so that nothing is written twice.
    """

    task: Task
    options: Options
    scorer: Scorer
    parts: list[Job | Draft | Unfit]

    def missing(self, stored: Collection[str]) -> list[int]:
        """Places of the circuits whose spec digests are none of these."""
        return [
            i for i, part in enumerate(self.parts) if not isinstance(part, Unfit) and part.spec_digest not in stored
        ]

    def written(self, place: int) -> Job:
        """The job at a place, after its reasoning. Raises as `Draft.written` does, or TaskError if there is none."""
        part = self.parts[place]
        if isinstance(part, Unfit):
            raise TaskError(part.reason)
        if isinstance(part, Draft):
            part = self.parts[place] = part.written()
        return part


def prepare_all(
    model: LoadedModel, task: Task, options: Options, *, listed: Mapping[str, str] | None = None
) -> Prepared:
    """Prepare every subtask of a task, or those of a work list alone (subtask to spec digest) that are the same here.

    Raises UsageError and ModelError as `ingest` does.
    """
    scorer = options.scorer(model)
    task = spelt(model, task)
    parts: list[Job | Draft | Unfit] = []
    for subtask in subtasks_of(task):
        if listed is not None and subtask.name not in listed:
            continue
        try:
            part = prepare(model, task, subtask, options)
        except TaskError as error:
            parts.append(Unfit(subtask.name, str(error)))
        else:
            parts.append(part if listed is None else _as_listed(part, listed[subtask.name]))
    return Prepared(task, options, scorer, parts)


def _as_listed(part: Job | Draft, spec_digest: str) -> Job | Draft | Unfit:
    """The circuit, unless it would be another one than the list says."""
    if part.spec_digest == spec_digest:
        return part
    reason = "Its questions or their tokens are not those of the work list: another file, or another circuitdb."
    return Unfit(part.subtask.name, reason)
