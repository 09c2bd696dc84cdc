"""`circuitdb study`: one of the paper's case studies on any models, from scoring to the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from circuitdb.cli import diagnostics
from circuitdb.cli.options import DEFAULT_DATABASE, DatabaseFile, Patience, form_of
from circuitdb.cli.scoring import BatchSize, Device, DryRun, Dtype, Json, Method, Metric, Seed
from circuitdb.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from circuitdb.cli.options import Form
    from circuitdb.ingest.studies.run import Planned, Scored, Source, StudyRun
    from circuitdb.queries.database import Database


def study(
    name: Annotated[str, typer.Argument(metavar="STUDY", help="arithmetic, boolean or sports.")],
    model: Annotated[
        list[str], typer.Option(metavar="NAME", help="Hub name, local folder or .gguf file; may be repeated.")
    ],
    revision: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Hub versions of each model, in the order of training: step1000,step8000."),
    ] = None,
    model_name: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="What the database calls the model; one for each.")
    ] = None,
    size: Annotated[
        str, typer.Option(metavar="NAME", help="tiny: minutes on two cores with a small model; paper: as published.")
    ] = "tiny",
    db: DatabaseFile = DEFAULT_DATABASE,
    report: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder of the report; report/STUDY.", show_default=False)
    ] = None,
    examples: Annotated[
        int | None, typer.Option(metavar="N", help="Questions of each subtask; by default what the size says.")
    ] = None,
    method: Method = "eap-ig",
    metric: Metric = "kl",
    chat: Annotated[bool, typer.Option("--chat", help="Ask through the model's chat template.")] = False,
    seed: Seed = 0,
    dtype: Dtype = "float32",
    device: Device = None,
    batch_size: BatchSize = None,
    dry_run: DryRun = False,
    timeout: Patience = 60.0,
    json: Json = False,
) -> None:
    """Run a case study of the paper: score what is missing, ask its questions, write the report.

    arithmetic: addition by digit counts; boolean: expressions with and without parentheses; sports: few-shot against
    chain of thought. Stopped at any moment, the same command goes on where it was. Of several models or revisions the
    report shows, in the order given, how stability goes on.

    Example: circuitdb study arithmetic --model gpt2
    """
    import logging

    # TransformerLens looks for optional parts of itself while it is imported, and says so.
    logging.disable(logging.WARNING)
    import circuitdb
    from circuitdb.cli import reporting
    from circuitdb.cli.study_progress import StudyProgress
    from circuitdb.ingest.studies import registry
    from circuitdb.ingest.studies.condition import Settings
    from circuitdb.ingest.studies.run import StudyRun
    from circuitdb.store import Store

    form = form_of(json=json, csv=False)
    conditions = registry.find(name).conditions(size)
    sources = _sources(model, revision, model_name)
    changes: Settings = {"method": method, "metric": metric, "seed": seed, "batch_size": batch_size}
    if examples is not None:
        changes["n_examples"] = examples
    if chat:
        changes["chat"] = True
    with StudyProgress(len(sources), sum(len(condition.task.subtasks()) for condition in conditions)) as watcher:
        run = StudyRun(
            Store(db, timeout=timeout), sources, conditions, dtype=dtype, device=device, watcher=watcher, **changes
        )
        if dry_run:
            planned = run.plan()
        else:
            folder = reporting.require_folder(report or reporting.folder_of(name))
            scored = _scored(run, db)
    if dry_run:
        complete = _show_plan(planned, f"{name} ({size})", db, form)
    else:
        complete = _report(scored, name, size, circuitdb.open(db, timeout=timeout), folder, form)
    if not complete:
        raise typer.Exit(diagnostics.FAILED)


def _scored(run: StudyRun, db: str) -> list[Scored]:
    """The study's circuits, scored; of an interrupt it says that nothing is lost."""
    try:
        return run.score()
    except KeyboardInterrupt:
        diagnostics.warning(f"Stopped. What is scored is stored in {db}; the same command goes on from there.")
        raise


def _show_plan(planned: Sequence[Planned], study: str, db: str, form: Form) -> bool:
    """Print what is to be scored; whether all of it can be."""
    from circuitdb.cli import reporting, study_tables

    subtasks = [one for each in planned for one in each.subtasks]
    n_missing = sum(one.status == "missing" for one in subtasks)
    title = f"{n_missing} of {len(subtasks)} circuits of the study {study} to score into {db}"
    missing = study_tables.failures(planned)
    reporting.tables(title, {"plan": study_tables.plan(planned, title), "missing": missing}, form)
    return not len(missing)


def _report(scored: Sequence[Scored], name: str, size: str, database: Database, folder: Path, form: Form) -> bool:
    """Write and print what the study found; whether nothing of it is missing."""
    from circuitdb.cli import reporting, study_tables
    from circuitdb.queries.report import write

    title = f"Circuits of the study {name} ({size}) in {database.path}"
    conditions, missing = study_tables.conditions(scored, database, title), study_tables.failures(scored)
    parts = {"conditions": conditions, "missing": missing}
    circuits = [i for each in scored for i in each.circuits]
    if not circuits:
        reporting.tables(title, parts, form)
        diagnostics.error("No circuit could be scored, so there is no report.")
        return False
    # The models in the order in which they were given, which is that of the curve over training.
    models = list(dict.fromkeys(str(row["model"]) for row in conditions.rows() if row["n_circuits"]))
    found = reporting.with_missing(database.study(name, circuits=circuits, model=models), missing)
    reporting.show(found, write(found, folder), parts, form)
    return not len(missing)


def _sources(models: Sequence[str], revisions: str | None, names: Sequence[str] | None) -> list[Source]:
    """Every model in each of its revisions. Raises UsageError, before any is loaded."""
    from circuitdb.ingest.studies.run import Source

    if names and len(names) != len(models):
        raise UsageError(f"There are {len(models)} models and {len(names)} names; give --model-name once for each.")
    if revisions is not None and not all(text.strip() for text in revisions.split(",")):
        raise UsageError(f"--revision {revisions!r} is no list of versions; write step1000,step8000.")
    steps = [None] if revisions is None else [text.strip() for text in revisions.split(",")]
    found = [Source(path, step, names[i] if names else None) for i, path in enumerate(models) for step in steps]
    twice = next((source for i, source in enumerate(found) if source in found[:i]), None)
    if twice is not None:
        raise UsageError(f"{twice.label} is given twice; a study asks each model once.")
    local = next((source for source in found if source.revision and Path(source.path).exists()), None)
    if local is not None:
        raise UsageError(f"A revision is a version on the hub; {local.path} is local and has none.")
    return found
