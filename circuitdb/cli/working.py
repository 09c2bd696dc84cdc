"""`circuitdb ingest --plan` and `--work`: the work list of an ingest, and a worker's share of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from circuitdb.cli import diagnostics, output
from circuitdb.errors import UsageError

if TYPE_CHECKING:
    from circuitdb.cli.options import Form
    from circuitdb.ingest import LoadedModel, Options, Task
    from circuitdb.ingest.work import TaskSource
    from circuitdb.store import Store

# What a worker may say itself; all else is in the list.
_OF_WORKERS = ("work", "shard", "out", "model", "task", "device", "timeout", "json")
_OF_WORKERS_ALONE = ("shard", "out")


def score(
    context: typer.Context,
    path: str,
    shard: str,
    out: str | None,
    *,
    model: str | None,
    task: str,
    device: str | None,
    form: Form,
) -> None:
    """`ingest --work PATH`: score a shard of the list, and say what became of each circuit."""
    for name in _given(context):
        if name not in _OF_WORKERS:
            raise UsageError(f"The work list says how circuits are scored; leave {_flag(name)} out.")
    if out is None:
        raise UsageError("Where are the circuits to be put? Name a folder with --out.")
    from circuitdb.cli.ingest import table
    from circuitdb.cli.progress import IngestProgress
    from circuitdb.ingest.work import WorkList, read_shard, score_shard

    numbers, work = read_shard(shard), WorkList.read(path)
    if "task" in _given(context):
        work = work.with_task(task)
    chosen = work.task.make()
    with IngestProgress() as watcher:
        watcher.loading(model or work.model.source)
        loaded = work.model.load(model, device)
        try:
            outcomes = score_shard(work, numbers, out, model=loaded, watcher=watcher)
        except KeyboardInterrupt:
            diagnostics.warning(f"Stopped. What is scored is in {out}; the same command goes on from there.")
            raise
    title = f"{chosen.name} circuits of {loaded.record.name} in {out}, shard {numbers[0]}/{numbers[1]}"
    output.answer(table(outcomes, title, loaded, chosen), form)
    if any(outcome.status == "failed" for outcome in outcomes):
        raise typer.Exit(diagnostics.FAILED)


def write(
    path: str,
    store: Store,
    model: LoadedModel,
    loaded_from: tuple[str, str | None],
    task: TaskSource,
    options: Options,
    form: Form,
    *,
    replace: bool,
) -> None:
    """`ingest --plan PATH`: write the list of what the database lacks, of all if it is to be replaced."""
    from circuitdb.cli.ingest import table
    from circuitdb.ingest.work import ModelSource, work_list
    from circuitdb.store import read_finished

    there = Path(store.path).exists() and not replace
    stored = read_finished(store, by_example=options.by_example) if there else {}
    work, outcomes = work_list(model, ModelSource.of(*loaded_from, model), task, options, stored)
    work.write(path)
    chosen: Task = task.make()
    title = f"{len(work.circuits)} of {len(outcomes)} {chosen.name} circuits of {model.record.name} listed in {path}"
    output.answer(table(outcomes, title, model, chosen), form)
    if any(outcome.status == "failed" for outcome in outcomes):
        raise typer.Exit(diagnostics.FAILED)


def check(context: typer.Context, model: str | None) -> str:
    """The model of an ingest that is no worker. Raises UsageError for none, and for options of workers."""
    for name in _given(context):
        if name in _OF_WORKERS_ALONE:
            raise UsageError(f"{_flag(name)} is for a worker; name its work list with --work.")
    if model is None:
        raise UsageError("Which model? Name it with --model: a hub name, a local folder or a .gguf file.")
    return model


def _given(context: typer.Context) -> Sequence[str]:
    """Names of the options on the command line."""

    def named() -> Iterator[str]:
        for name in context.params:
            source = context.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                yield name

    return list(named())


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
