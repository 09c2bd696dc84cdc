"""`circuitdb sql`: one statement of the user's own, read only."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from circuitdb.cli import output
from circuitdb.cli.options import Ask, Form, question
from circuitdb.errors import UsageError

_PLAN = ["explain_key", "explain_value"]  # what EXPLAIN gives: a drawing of many lines
_SUFFIXES = {".csv": Form.CSV, ".json": Form.JSON, ".parquet": Form.PARQUET}


@question(filters=False)
def sql(
    ask: Ask,
    statement: Annotated[
        str, typer.Argument(metavar="STATEMENT", help="The statement, or - to read it from standard input.")
    ],
    form: Annotated[
        Form | None,
        typer.Option("--format", help="Table if not given, or what the name after -o ends in.", show_default=False),
    ] = None,
    file: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write into a file instead.")
    ] = None,
    dialect: Annotated[
        str,
        typer.Option("--dialect", metavar="NAME", help="Whose SQL the statement is: postgres, spark, bigquery, ..."),
    ] = "duckdb",
    force: Annotated[bool, typer.Option("--force", help="Replace the file if there is one.")] = False,
) -> None:
    """Ask in SQL: one statement that only reads. `circuitdb schema` lists what there is to ask.

    Example: circuitdb sql "select subtask, accuracy from circuits" -o accuracy.csv
    """
    chosen = _form(form, ask.form, file)
    if chosen is Form.PARQUET and file is None:
        output.refuse_terminal()
    if file is not None:
        output.refuse_existing(file, force=force)
    elif force:
        raise UsageError("--force replaces the file of -o; name one, or leave --force out.")
    result = ask.database.sql(sys.stdin.read() if statement == "-" else statement, dialect=dialect)
    if file is not None:
        output.save(result, chosen, file, force=force)
    elif chosen is Form.PARQUET:
        output.parquet(result)
    elif chosen is Form.TABLE and result.columns == _PLAN:
        output.text("".join(f"{row['explain_value']}\n" for row in result.rows()))
    else:
        output.answer(result, chosen)


def _form(form: Form | None, flags: Form, file: str | None) -> Form:
    if form is not None:
        if flags not in (Form.TABLE, form):
            raise UsageError(f"--format {form.value} and --{flags.value} contradict each other; give one of them.")
        return form
    if flags is not Form.TABLE or file is None:
        return flags
    return _SUFFIXES.get(Path(file).suffix.lower(), Form.TABLE)
