"""Work lists: the circuits of an ingest, written down so that others score them anywhere, with no database.

1. A list names the model and the digest of its weights, the task, all options, and each circuit's spec digest.
2. A worker takes every n-th circuit of it, and puts each into a file of its own (`circuitdb.shards`).
3. It refuses a model of other weights, and a circuit that would come out as another one.
4. `circuitdb merge` brings the files into a database.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from circuitdb import __version__
from circuitdb.errors import ModelError, TaskError, UsageError
from circuitdb.ingest.models import LoadedModel, load_model
from circuitdb.ingest.plan import Options, prepare
from circuitdb.ingest.run import Outcome, Watcher, ingest
from circuitdb.ingest.tasks import registry
from circuitdb.ingest.tasks.file_task import FileTask
from circuitdb.ingest.tasks.task import Task
from circuitdb.ingest.tokens import spelt
from circuitdb.records import digest
from circuitdb.shards import ShardFolder

_VERSION = 1
_SHARD = re.compile(r"(\d+)/(\d+)")


@dataclass(frozen=True)
class ModelSource:
    """How a model is loaded (the arguments of `load_model`), and the digest that its weights must have."""

    source: str
    name: str
    revision: str | None
    dtype: str
    weights_digest: str | None

    @classmethod
    def of(cls, source: str, revision: str | None, model: LoadedModel) -> ModelSource:
        """That of a model which was loaded from `source`; a path is made one that holds in every folder."""
        where = str(Path(source).resolve()) if Path(source).exists() else source
        return cls(where, model.record.name, revision, model.dtype_name, model.record.weights_digest)

    def load(self, source: str | None = None, device: str | None = None) -> LoadedModel:
        """Load it, from another place if one is given. Raises ModelError if its weights are others."""
        model = load_model(
            source or self.source, name=self.name, revision=None if source else self.revision, dtype=self.dtype,
            device=device,
        )  # fmt: skip
        if model.record.weights_digest != self.weights_digest:
            raise ModelError(
                f"The model in {source or self.source} has other weights than the work list was made with "
                f"(digest {str(model.record.weights_digest)[:12]}, not {str(self.weights_digest)[:12]}); name the "
                "right one with --model."
            )
        model.record = replace(model.record, revision=self.revision)
        return model


@dataclass(frozen=True)
class TaskSource:
    """How a task is made: its name or file, the texts of its partition, and what the database calls a file's task."""

    task: str
    partition: tuple[str, ...] = ()
    called: str | None = None

    @classmethod
    def of(cls, task: str, partition: Sequence[str], made: Task) -> TaskSource:
        """That of a task that was made from these; the path of a file is made one that holds in every folder."""
        if isinstance(made, FileTask):
            return cls(str(Path(task).resolve()), (), made.name)
        return cls(task, tuple(partition))

    def make(self) -> Task:
        """The task. Raises UsageError as `registry.find` does."""
        return registry.find(self.task, registry.read_options(self.task, self.partition), called=self.called)


@dataclass(frozen=True)
class WorkList:
    """Circuits to be scored: `circuits` is subtask to spec digest, in the order of the task."""

    model: ModelSource
    task: TaskSource
    options: Options
    circuits: Mapping[str, str]

    @property
    def digest(self) -> str:
        """SHA-256 of all of it."""
        return digest(self._plain())

    def with_task(self, task: str) -> WorkList:
        """The same list with the task's file in another place."""
        return replace(self, task=replace(self.task, task=task))

    def shard(self, number: int, of: int) -> dict[str, str]:
        """Every `of`-th circuit from the `number`-th on, counted from one."""
        return dict(list(self.circuits.items())[number - 1 :: of])

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON, whole or not at all."""
        target = Path(path)
        if not target.parent.is_dir():
            raise UsageError(f"The folder of {path} does not exist; make it, or name another file with --plan.")
        fresh = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        fresh.write_text(json.dumps(self._plain(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(fresh, target)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> WorkList:
        """Read one that `write` made. Raises UsageError, in one sentence, for anything else."""
        try:
            said = json.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise UsageError(f"There is no work list {path}; make one with `circuitdb ingest ... --plan`.") from error
        except (OSError, ValueError) as error:
            raise UsageError(f"{path} is no work list that `circuitdb ingest --plan` wrote: {error}.") from error
        if not isinstance(said, dict) or "circuitdb_work_list" not in said:
            raise UsageError(f"{path} is no work list that `circuitdb ingest --plan` wrote.")
        if (said["circuitdb_work_list"], said.get("circuitdb")) != (_VERSION, __version__):
            raise UsageError(
                f"{path} was written by circuitdb {said.get('circuitdb')}, this is {__version__}: use one version on "
                "all machines, or make the list again."
            )
        try:
            task = said["task"] | {"partition": tuple(said["task"]["partition"])}
            options: dict[str, Any] = {
                name: tuple(v) if isinstance(v, list) else v for name, v in said["options"].items()
            }
            circuits = {str(one["subtask"]): str(one["spec_digest"]) for one in said["circuits"]}
            return cls(ModelSource(**said["model"]), TaskSource(**task), Options(**options), circuits)
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{path} is no whole work list: {error}; make it again.") from error

    def _plain(self) -> dict[str, Any]:
        return {
            "circuitdb_work_list": _VERSION,
            "circuitdb": __version__,
            "model": asdict(self.model),
            "task": asdict(self.task),
            "options": asdict(self.options),
            "circuits": [{"subtask": name, "spec_digest": spec} for name, spec in self.circuits.items()],
        }


def work_list(
    model: LoadedModel, source: ModelSource, task: TaskSource, options: Options, stored: Mapping[str, int]
) -> tuple[WorkList, list[Outcome]]:
    """The circuits that are not `stored` yet; and what is to be said of each subtask: `listed`, `kept` or `failed`.

    Raises UsageError and ModelError as `ingest` does.
    """
    options.scorer(model)  # refuses what can't be scored right
    made = spelt(model, task.make())
    circuits: dict[str, str] = {}
    outcomes: list[Outcome] = []
    for subtask in made.subtasks():
        try:
            spec_digest = prepare(model, made, subtask, options).spec_digest
        except TaskError as error:
            outcomes.append(Outcome(subtask.name, "failed", reason=str(error)))
            continue
        if spec_digest in stored:
            outcomes.append(Outcome(subtask.name, "kept", stored[spec_digest]))
        else:
            circuits[subtask.name] = spec_digest
            outcomes.append(Outcome(subtask.name, "listed"))
    return WorkList(source, task, options, circuits), outcomes


def read_shard(text: str) -> tuple[int, int]:
    """The shard `2/4` as numbers. Raises UsageError for what is none."""
    found = _SHARD.fullmatch(text.strip())
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f"--shard {text} is no shard; the second of four is 2/4.")
    return int(found[1]), int(found[2])


def score_shard(
    work: WorkList,
    shard: tuple[int, int],
    out: str | os.PathLike[str],
    *,
    model: LoadedModel,
    watcher: Watcher | None = None,
) -> list[Outcome]:
    """Score a shard of a work list into the folder `out`; what is there already is kept.

    One outcome a circuit, in order. Raises UsageError for a folder that can't be, ModelError for other weights.
    """
    chosen = work.shard(*shard)
    folder = ShardFolder(out)
    folder.create()
    folder.promise(shard, work.digest, {spec: subtask for subtask, spec in chosen.items()})
    return ingest(folder, model, work.task.make(), work.options, listed=chosen, watcher=watcher)
