"""`circuitdb ingest`: score every edge of a model on every subtask of a task, and store all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from circuitdb.cli import diagnostics, output, working
from circuitdb.cli.options import DEFAULT_DATABASE, DatabaseFile, Patience, form_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from circuitdb.ingest import LoadedModel, Task
    from circuitdb.ingest.forecast import Forecast
    from circuitdb.ingest.run import Outcome
    from circuitdb.queries.result import Result


def ingest(
    context: typer.Context,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Hub name, local folder or .gguf file.")] = None,
    db: DatabaseFile = DEFAULT_DATABASE,
    task: Annotated[
        str, typer.Option(metavar="NAME", help="Task, as `circuitdb tasks` lists them, or a file of questions.")
    ] = "addition",
    task_name: Annotated[
        str | None, typer.Option(metavar="NAME", help="What the database calls a file's task.")
    ] = None,
    partition: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="What its subtasks are split by, length=3-5; may be repeated."),
    ] = None,
    digits: Annotated[
        str | None, typer.Option(metavar="LIST", help="Short for --partition digits=LIST: 1-3 (default) or 1,2,4.")
    ] = None,
    shots: Annotated[
        int | None,
        typer.Option(metavar="N", help="Solved questions before the scored one; 3, of a file or without reasoning 0."),
    ] = None,
    shots_drawn: Annotated[
        str, typer.Option(metavar="NAME", help="fixed: the same before all questions of a subtask; per-example: anew.")
    ] = "fixed",
    chain_of_thought: Annotated[
        bool, typer.Option("--chain-of-thought", help="Let the model write its reasoning before it answers.")
    ] = False,
    reasoning_tokens: Annotated[int, typer.Option(metavar="N", help="How many tokens its reasoning has at most.")] = 64,
    chat: Annotated[
        bool, typer.Option("--chat", help="Put prompts through the chat template of an instruct model.")
    ] = False,
    examples: Annotated[int, typer.Option(metavar="N", help="Questions of each subtask.")] = 16,
    method: Annotated[
        str, typer.Option(metavar="NAME", help="eap-ig, eap, clean-corrupted, eap-ig-activations or exact.")
    ] = "eap-ig",
    steps: Annotated[
        int | None, typer.Option(metavar="N", help="Integration steps of eap-ig and eap-ig-activations; 5.")
    ] = None,
    grid: Annotated[
        str | None, typer.Option(metavar="NAME", help="Where they lie: right, left, midpoint or gauss-legendre.")
    ] = None,
    ablation: Annotated[
        str, typer.Option(metavar="NAME", help="patching, zero, mean or mean-positional.")
    ] = "patching",
    metric: Annotated[
        str, typer.Option(metavar="NAME", help="kl, logit-difference, prob-difference, nll or kl-published.")
    ] = "kl",
    positions: Annotated[
        str, typer.Option(metavar="NAME", help="Where it is taken: last (of the prompt), answer or all.")
    ] = "last",
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Compare the answer with this one, not the corrupted; may be repeated."),
    ] = None,
    align: Annotated[
        str, typer.Option(metavar="NAME", help="equal, or left-pad: pair prompts of unequal token length, too.")
    ] = "equal",
    folds: Annotated[int, typer.Option(metavar="N", help="Parts of the examples kept apart for reliability.")] = 2,
    by_example: Annotated[
        bool, typer.Option("--by-example", help="Store the scores of every single example, too.")
    ] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the questions.")] = 0,
    model_name: Annotated[str | None, typer.Option(metavar="NAME", help="What the database calls the model.")] = None,
    revision: Annotated[str | None, typer.Option(metavar="NAME", help="Hub branch, tag or commit.")] = None,
    dtype: Annotated[
        str, typer.Option(metavar="TYPE", help="float32, tf32, bfloat16, float16 or float64.")
    ] = "float32",
    device: Annotated[str | None, typer.Option(metavar="NAME", help="cpu, cuda, mps, auto (several GPUs).")] = None,
    batch_size: Annotated[int | None, typer.Option(metavar="N", help="Prompts in a pass; what fits.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Score again what is stored, and replace it.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Score nothing: tell pairs, memory, disk and, from a probe, time.")
    ] = False,
    plan: Annotated[
        str | None, typer.Option("--plan", metavar="FILE", help="Score nothing: write the work list of others there.")
    ] = None,
    work: Annotated[
        str | None, typer.Option("--work", metavar="FILE", help="Score circuits of this work list, with no database.")
    ] = None,
    shard: Annotated[
        str, typer.Option("--shard", metavar="I/N", help="Which of them: 2/4 is every fourth from the second on.")
    ] = "1/1",
    out: Annotated[
        str | None, typer.Option("--out", metavar="FOLDER", help="Where --work puts them, for `circuitdb merge`.")
    ] = None,
    timeout: Patience = 60.0,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """Score every edge of a model on a task, and store the scores.

    Each subtask of the task gives a circuit. Circuits that are stored already are kept: run it again after a stop, and
    it goes on where it was.

    Example: circuitdb ingest --model gpt2 --task addition --digits 1-3
    """
    import logging

    # TransformerLens looks for optional parts of itself while it is imported, and says so.
    logging.disable(logging.WARNING)
    if work is not None:
        form = form_of(json=json, csv=False)
        working.score(context, work, shard, out, model=model, task=task, device=device, form=form)
        return
    model = working.check(context, model)
    from circuitdb.cli.progress import IngestProgress
    from circuitdb.ingest import load_model
    from circuitdb.ingest.forecast import forecast
    from circuitdb.ingest.plan import Options
    from circuitdb.ingest.prompts import has_reasoning
    from circuitdb.ingest.run import ingest as run
    from circuitdb.ingest.tasks import registry
    from circuitdb.ingest.tasks.file_task import FileTask
    from circuitdb.ingest.work import TaskSource
    from circuitdb.store import Store

    given = [*(partition or ()), *([] if digits is None else [f"digits={digits}"])]
    chosen = registry.find(task, registry.read_options(task, given), called=task_name)
    if shots is None:
        shots = 0 if isinstance(chosen, FileTask) or (chain_of_thought and not has_reasoning(chosen)) else 3
    options = Options(
        method, steps, grid, metric, shots, examples, folds, seed, batch_size, ablation, positions,
        tuple(against or ()), by_example, align=align, shots_drawn=shots_drawn, chain_of_thought=chain_of_thought,
        reasoning_tokens=reasoning_tokens, chat=chat,
    )  # fmt: skip
    store = Store(db, timeout=timeout)
    if not (dry_run or plan):
        store.create()
    form = form_of(json=json, csv=False)
    with IngestProgress() as watcher:
        watcher.loading(model)
        loaded = load_model(model, name=model_name, revision=revision, dtype=dtype, device=device)
        if plan is not None:
            working.write(
                plan, store, loaded, (model, revision), TaskSource.of(task, given, chosen), options, form,
                replace=replace,
            )  # fmt: skip
            return
        if dry_run:
            planned = forecast(store, loaded, chosen, options)
            output.answer(_plan(planned, loaded, chosen, db), form)
            if any(subtask.status == "failed" for subtask in planned):
                raise typer.Exit(diagnostics.FAILED)
            return
        try:
            outcomes = run(store, loaded, chosen, options, replace=replace, watcher=watcher)
        except KeyboardInterrupt:
            diagnostics.warning(f"Stopped. What is scored is stored in {db}; the same command goes on from there.")
            raise
    output.answer(table(outcomes, f"{chosen.name} circuits of {loaded.record.name} in {db}", loaded, chosen), form)
    if any(outcome.status == "failed" for outcome in outcomes):
        raise typer.Exit(diagnostics.FAILED)


def table(outcomes: Sequence[Outcome], title: str, model: LoadedModel, task: Task) -> Result:
    """What became of each subtask, and what must be said of the model and of a file."""
    import pyarrow as pa

    from circuitdb.queries.result import Result

    columns = {
        "subtask": pa.string(),
        "status": pa.string(),
        "circuit_id": pa.int32(),
        "n_examples": pa.int32(),
        "n_skipped": pa.int32(),
        "accuracy": pa.float64(),
        "wall_time_s": pa.float64(),
        "reason": pa.string(),
    }
    rows = {name: pa.array([getattr(o, name) for o in outcomes], kind) for name, kind in columns.items()}
    notes = [
        f"{outcome.n_nonfinite:,} scores of {outcome.subtask} are not finite: stored as NULL, they count nowhere."
        for outcome in outcomes
        if outcome.n_nonfinite
    ]
    return Result(pa.table(rows), title, (*notes, *_padded(outcomes), *_notes(task), *model.notes))


def _plan(planned: Sequence[Forecast], model: LoadedModel, task: Task, db: str) -> Result:
    import pyarrow as pa

    from circuitdb.cli.progress import duration
    from circuitdb.queries.result import Result

    counts = ("n_pairs", "n_skipped", "n_tokens", "n_shared", "batch_size")
    rows = {name: pa.array([getattr(f, name) for f in planned], pa.string()) for name in ("subtask", "status")}
    rows |= {name: pa.array([getattr(f, name) for f in planned], pa.int32()) for name in counts}
    for name in ("memory", "disk"):
        sizes = [getattr(f, name) for f in planned]
        rows[f"{name}_mb"] = pa.array([None if size is None else size / 1e6 for size in sizes], pa.float64())
    rows["time_s"] = pa.array([f.seconds for f in planned], pa.float64())
    rows["reason"] = pa.array([f.reason for f in planned], pa.string())
    missing = [f for f in planned if f.status == "missing"]
    time, disk = sum(f.seconds or 0.0 for f in missing), sum(f.disk or 0 for f in missing)
    title = f"{len(missing)} of {len(planned)} {task.name} circuits of {model.record.name} to score into {db}"
    notes = [f"Scoring will take about {duration(time)} and {disk / 1e6:,.0f} MB of disk; nothing was written."]
    return Result(pa.table(rows), title, (*(notes if missing else ()), *_padded(planned), *_notes(task), *model.notes))


def _padded(subtasks: Sequence[Outcome] | Sequence[Forecast]) -> tuple[str, ...]:
    """How many pairs are of unequal length, where any are."""
    counts = [f"{subtask.n_padded} of {subtask.subtask}" for subtask in subtasks if subtask.n_padded]
    return (f"Pairs of unequal token length, matched from the end: {', '.join(counts)}.",) if counts else ()


def _notes(task: Task) -> tuple[str, ...]:
    """What must be said of a file that the task was read from."""
    from circuitdb.ingest.tasks.file_task import FileTask

    return task.notes if isinstance(task, FileTask) else ()
