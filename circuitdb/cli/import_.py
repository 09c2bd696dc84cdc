"""`circuitdb import`: circuits out of other tools' files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from circuitdb.cli import diagnostics, output
from circuitdb.cli.options import DEFAULT_DATABASE, DatabaseFile, Patience, form_of
from circuitdb.errors import ScoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from circuitdb.graph import GraphShape
    from circuitdb.ingest.formats.importing import Imported
    from circuitdb.queries.result import Result

_SHAPE = re.compile(r"(\d{1,4})x(\d{1,4})(,parallel)?")


def import_(
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, or folders of them.")],
    model: Annotated[str | None, typer.Option(metavar="NAME", help="What the database calls their model.")] = None,
    task: Annotated[str | None, typer.Option(metavar="NAME", help="Their task.")] = None,
    subtask: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Their subtask, such as {digits_a}+{digits_b}; the name of the file."),
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What the file names say: 'gemma-add-{digits_a}{digits_b}.json'."),
    ] = None,
    method: Annotated[str | None, typer.Option(metavar="NAME", help="How they were scored, if you know.")] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", min=1, help="In how many integration steps.")] = None,
    metric: Annotated[str | None, typer.Option(metavar="NAME", help="What metric was attributed.")] = None,
    positions: Annotated[str | None, typer.Option(metavar="NAME", help="Where it was taken.")] = None,
    ablation: Annotated[str | None, typer.Option(metavar="NAME", help="What an edge was replaced by.")] = None,
    examples: Annotated[int | None, typer.Option(metavar="N", min=1, help="How many examples were scored.")] = None,
    sign: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="ablated-minus-clean, or clean-minus-ablated, which is turned round."),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(metavar="LxH", help="Layers and heads, where the files do not tell: 12x12 or 6x8,parallel."),
    ] = None,
    db: DatabaseFile = DEFAULT_DATABASE,
    timeout: Patience = 60.0,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="CSV instead of a table.")] = False,
) -> None:
    """Copy circuits from the files of other tools.

    EAP-IG and circuit-stability (JSON, .pt), MIB submissions, auto-circuit, ACDC: each file is recognised by what it
    holds. What it does not say stays unknown. What is imported already is kept. A folder that `circuitdb export
    --format parquet` wrote comes back whole.

    Example: circuitdb import runs/*.json --model gemma-2-2b --task addition --pattern 'add-{digits_a}-{digits_b}.json'
    """
    from circuitdb.ingest.formats.importing import Told, import_files
    from circuitdb.ingest.formats.pattern import Pattern
    from circuitdb.store import Store

    form = form_of(json=json, csv=csv)
    told = Told(
        model=model, task=task, subtask=subtask, pattern=None if pattern is None else Pattern(pattern), method=method,
        metric=metric, steps=steps, positions=positions, ablation=ablation, examples=examples, sign=sign,
        shape=None if shape is None else _shape(shape),
    )  # fmt: skip
    outcomes = import_files(Store(db, timeout=timeout), [Path(path) for path in paths], told)
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    if len(outcomes) == len(failed) == 1:
        raise ScoreError(failed[0].reason or "")
    output.answer(_table(outcomes, db), form)
    if failed:
        raise typer.Exit(diagnostics.FAILED)


def _shape(text: str) -> GraphShape:
    from circuitdb.graph import GraphShape

    found = _SHAPE.fullmatch(text)
    if found is None:
        raise UsageError(f"--shape is layers x heads, such as 12x12 or 6x8,parallel, not {text!r}.")
    return GraphShape(int(found[1]), int(found[2]), found[3] is not None)


def _table(outcomes: Sequence[Imported], db: str) -> Result:
    import pyarrow as pa

    from circuitdb.queries.result import Result, count

    columns = {
        "file": pa.string(),
        "status": pa.string(),
        "kind": pa.string(),
        "number": pa.int32(),
        "model": pa.string(),
        "task": pa.string(),
        "subtask": pa.string(),
        "n_edges": pa.int32(),
        "n_missing": pa.int32(),
        "n_null": pa.int32(),
        "reason": pa.string(),
    }
    rows = {name: pa.array([getattr(o, name) for o in outcomes], kind) for name, kind in columns.items()}
    n_null = sum(bool(outcome.n_null) for outcome in outcomes)
    notes = list(dict.fromkeys(note for outcome in outcomes for note in outcome.notes))
    if n_null:
        notes.append(
            f"{count(n_null, 'circuit')} lack scores of some edges, missing in the file or not finite: stored as NULL, "
            "they count nowhere."
        )
    stored = [outcome for outcome in outcomes if outcome.status == "stored"]
    return Result(
        pa.table(rows), f"{len(stored)} of {count(len(outcomes), 'circuit')} imported into {db}", tuple(notes)
    )
