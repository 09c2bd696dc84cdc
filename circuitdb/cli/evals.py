"""`circuitdb evals`: how well the models do on the subtasks, and evaluations added from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from circuitdb.cli import output
from circuitdb.cli.options import Ask, misplaced, question
from circuitdb.errors import UsageError

if TYPE_CHECKING:
    from circuitdb.evals.writer import Mapping

MapFile = Annotated[
    str | None,
    typer.Option("--map", metavar="FILE", help="A CSV of kind, external, internal: what names of the files stand for."),
]
ModelIs = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="THEIRS=OURS", help="What a model of the files stands for; may be repeated."),
]
SubtaskIs = Annotated[
    list[str] | None,
    typer.Option("--subtask", metavar="THEIRS=OURS", help="The same of a subtask or task; may be repeated."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name that the evaluations were added under.")]

app = typer.Typer(rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})


@app.callback(invoke_without_command=True)
@question()
def evals(ask: Ask, context: typer.Context) -> None:
    """List how well the models do on the subtasks.

    Accuracies that the ingest measured, and results added from elsewhere by `circuitdb evals add`.

    Example: circuitdb evals --task addition --csv
    """
    if context.invoked_subcommand is None:
        output.answer(ask.database.evaluations(**ask.filters), ask.form)
    else:
        misplaced(context, "evals")


@app.command()
@question(filters=False)
def add(
    ask: Ask,
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files of evaluations.")],
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What to call them, letters and digits.")],
    map_file: MapFile = None,
    model: ModelIs = None,
    subtask: SubtaskIs = None,
    model_column: Annotated[
        str | None, typer.Option("--model-column", metavar="COLUMN", help="The column of a table that names the model.")
    ] = None,
    subtask_column: Annotated[
        str | None, typer.Option("--subtask-column", metavar="COLUMN", help="The column that names the subtask.")
    ] = None,
    model_name: Annotated[
        str | None, typer.Option("--model-name", metavar="NAME", help="The model of all rows, where no column has it.")
    ] = None,
    subtask_name: Annotated[
        str | None, typer.Option("--subtask-name", metavar="NAME", help="The subtask or task of all rows.")
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", metavar="TABLE", help="The table, of a DuckDB or SQLite file of several.")
    ] = None,
    attach: Annotated[
        bool,
        typer.Option("--attach", help="Copy nothing: leave the files where they are, and read them when asked."),
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace evaluations of this name; their map stays.")
    ] = False,
) -> None:
    """Copy evaluations from files, or attach the files, and report what matched.

    Tables as CSV, JSON, Parquet, Arrow, DuckDB and SQLite; results and samples of lm-evaluation-harness; logs of
    inspect_ai.

    Example: circuitdb evals add results_2026-01-02.json --name harness
    """
    from circuitdb.evals.columns import Columns

    found = ask.database.add_evaluations(
        files, name, mapping=_mapping(map_file, model, subtask), table=table, attach=attach,
        replace=replace, columns=Columns(model_column, subtask_column, model_name, subtask_name),
    )  # fmt: skip
    output.answer(found, ask.form)


@app.command(name="map")
@question(filters=False)
def map_(
    ask: Ask,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The name that the evaluations were added under; all if none.")
    ] = None,
    map_file: MapFile = None,
    model: ModelIs = None,
    subtask: SubtaskIs = None,
) -> None:
    """Show what the names in the files stand for, or say it.

    What --csv prints can be edited, and given back with --map. Nothing after the = takes a name for nothing of ours.

    Example: circuitdb evals map harness --model "gpt2-small=GPT-2 small"
    """
    mapping = _mapping(map_file, model, subtask)
    if mapping and name is None:
        raise UsageError("Which evaluations is it about? Name them: `circuitdb evals map NAME ...`.")
    found = ask.database.map_evaluations(name, mapping) if mapping and name else ask.database.evaluation_map(name)
    output.answer(found, ask.form)


@app.command()
@question(filters=False)
def remove(ask: Ask, name: Name) -> None:
    """Take added evaluations away again.

    Example: circuitdb evals remove harness
    """
    ask.database.remove_evaluations(name)
    output.answer(ask.database.evaluation_map(), ask.form)


def _mapping(file: str | None, models: list[str] | None, subtasks: list[str] | None) -> list[Mapping]:
    """What the options say; a row of the file without a name of theirs, or that only reports, says nothing."""
    from circuitdb.evals import tables
    from circuitdb.evals.writer import Mapping

    found = []
    for kind, pairs in (("model", models), ("subtask", subtasks)):
        for pair in pairs or ():
            theirs, equals, ours = pair.partition("=")
            if not equals or not theirs:
                raise UsageError(f"--{kind} {pair!r} is no pair THEIRS=OURS.")
            found.append(Mapping(kind, theirs, ours or None))
    if file is not None:
        if not Path(file).is_file():
            raise UsageError(f"There is no file {file}.")
        table = tables.read(Path(file))
        lacking = [name for name in ("kind", "external", "internal") if name not in table]
        if lacking:
            raise UsageError(f"{file} has no column {lacking[0]}; a map has kind, external and internal.")
        rows = zip(table["kind"], table["external"], table["internal"], strict=True)
        found += [Mapping(str(kind), str(theirs), str(ours)) for kind, theirs, ours in rows if theirs and ours]
    return found
