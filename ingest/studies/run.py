"""A study's run: every condition in every model, one model in memory at a time.

Each circuit is stored as it is scored, as in any ingest: stopped at any moment and started again, a study goes on with
the first circuit that is missing. What fails is told and left out; the rest goes on.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, Unpack

import torch

from circuitdb.errors import ModelError, UsageError
from circuitdb.ingest.forecast import Forecast, forecast_prepared
from circuitdb.ingest.models import LoadedModel, load_model
from circuitdb.ingest.plan import Options
from circuitdb.ingest.prepared import Prepared, prepare_all
from circuitdb.ingest.run import Outcome, Silent, Watcher, ingest_prepared
from circuitdb.ingest.studies.condition import Condition, Settings
from circuitdb.store import Store

Ready: TypeAlias = "tuple[Condition, Prepared | str]"  # a condition, prepared in a model, or the reason why it can't be


@dataclass(frozen=True)
class Source:
    """Where a model comes from: hub name, folder or .gguf file, a revision of it, what the database is to call it."""

    path: str
    revision: str | None = None
    name: str | None = None

    @property
    def label(self) -> str:
        """What it is called until it is loaded."""
        return f"{self.name or self.path}{'' if self.revision is None else f'@{self.revision}'}"


@dataclass(frozen=True)
class Planned:
    """A condition in a model before it is scored: a forecast for each subtask, or the reason why there is none."""

    model: str
    condition: str
    subtasks: tuple[Forecast, ...] = ()
    reason: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scored:
    """A condition in a model after it: an outcome for each subtask, or the reason why there is none."""

    model: str
    condition: str
    subtasks: tuple[Outcome, ...] = ()
    reason: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def circuits(self) -> tuple[int, ...]:
        """Ids of its circuits that are in the store."""
        return tuple(outcome.circuit_id for outcome in self.subtasks if outcome.circuit_id is not None)


class StudyWatcher(Watcher, Protocol):
    """Who is told how a study is going: of every ingest as any watcher, and of its models and conditions."""

    def loading(self, model: str) -> None:
        """A model is being loaded."""

    def forecast(self, planned: Sequence[Planned]) -> None:
        """What is to be scored in the model that was loaded, condition by condition."""

    def condition(self, name: str) -> None:
        """The ingest of a condition begins."""

    def unloadable(self, model: str, reason: str) -> None:
        """A model can't be loaded; it is left out."""

    def failed(self, condition: str, reason: str, subtasks: Sequence[str]) -> None:
        """A condition can't be scored in the model that is loaded; it is left out."""


class Quiet(Silent):
    """A watcher that says nothing."""

    def loading(self, model: str) -> None:
        """Ignore it."""

    def forecast(self, planned: Sequence[Planned]) -> None:
        """Ignore it."""

    def condition(self, name: str) -> None:
        """Ignore it."""

    def unloadable(self, model: str, reason: str) -> None:
        """Ignore it."""

    def failed(self, condition: str, reason: str, subtasks: Sequence[str]) -> None:
        """Ignore it."""


class StudyRun:
    """The conditions of a study in several models, bound to a store and to the user's changes."""

    def __init__(
        self,
        store: Store,
        sources: Sequence[Source],
        conditions: Sequence[Condition],
        *,
        dtype: str = "float32",
        device: str | None = None,
        watcher: StudyWatcher | None = None,
        **changes: Unpack[Settings],
    ) -> None:
        """`changes` go over the settings of every condition. Raises UsageError for options that can't be."""
        if not sources or len(set(sources)) < len(sources):
            raise UsageError("A study needs models, each named once.")
        self._store, self._sources = store, tuple(sources)
        self._conditions = [(condition, condition.options(**changes)) for condition in conditions]
        self._dtype, self._device = dtype, device
        self._told = watcher or Quiet()

    def plan(self) -> list[Planned]:
        """What `score` would do, model by model; nothing is written, and the store need not exist yet.

        Raises UsageError as `load_model` does.
        """
        return [planned for source in self._sources for planned in self._plan_model(source)]

    def score(self) -> list[Scored]:
        """Score and store what the store lacks.

        Raises:
            UsageError: as `load_model` does.
            StoreError: the database can't be written.
        """
        self._store.create()
        return [scored for source in self._sources for scored in self._score_model(source)]

    def _plan_model(self, source: Source) -> list[Planned]:
        try:
            model = self._load(source)
        except ModelError as error:
            return [Planned(source.label, condition.name, reason=str(error)) for condition, _ in self._conditions]
        return [self._forecast(model, self._prepare(model, *each)) for each in self._conditions]

    def _score_model(self, source: Source) -> list[Scored]:
        try:
            model = self._load(source)
        except ModelError as error:
            self._told.unloadable(source.label, str(error))
            return [Scored(source.label, condition.name, reason=str(error)) for condition, _ in self._conditions]
        prepared = [self._prepare(model, *each) for each in self._conditions]
        self._told.forecast([self._forecast(model, each) for each in prepared])
        return [self._score(model, each) for each in prepared]

    def _load(self, source: Source) -> LoadedModel:
        # The model before this one is out of reach by now, but its hooks hold each other: only the collector frees it.
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self._told.loading(source.label)
        return load_model(
            source.path, name=source.name, revision=source.revision, dtype=self._dtype, device=self._device
        )

    @staticmethod
    def _prepare(model: LoadedModel, condition: Condition, options: Options) -> Ready:
        try:
            return condition, prepare_all(model, condition.task, options)
        except ModelError as error:
            return condition, str(error)

    def _forecast(self, model: LoadedModel, ready: Ready) -> Planned:
        condition, prepared = ready
        if isinstance(prepared, str):
            return Planned(_shown(model), condition.name, reason=prepared, notes=model.notes)
        try:
            found = forecast_prepared(self._store, prepared, write=False)
        except ModelError as error:
            return Planned(_shown(model), condition.name, reason=str(error), notes=model.notes)
        return Planned(_shown(model), condition.name, tuple(found), notes=model.notes)

    def _score(self, model: LoadedModel, ready: Ready) -> Scored:
        condition, prepared = ready
        self._told.condition(condition.name)
        if isinstance(prepared, str):
            self._told.failed(condition.name, prepared, [subtask.name for subtask in condition.task.subtasks()])
            return Scored(_shown(model), condition.name, reason=prepared, notes=model.notes)
        outcomes = ingest_prepared(self._store, prepared, watcher=self._told)
        return Scored(_shown(model), condition.name, tuple(outcomes), notes=model.notes)


def _shown(model: LoadedModel) -> str:
    """The model's name with its revision."""
    record = model.record
    return record.name if record.revision is None else f"{record.name}@{record.revision}"
