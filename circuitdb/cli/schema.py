"""`circuitdb schema`: the tables, views and macros that SQL can ask, in the words of the schema's own comments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from circuitdb.cli import output
from circuitdb.cli.options import DEFAULT_DATABASE, Ask, question


@question(filters=False)
def schema(
    ask: Ask,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A table, view or macro, to see its columns.")
    ] = None,
) -> None:
    """List the tables, views and macros that SQL can ask.

    With a name, the columns of that one. Where there is no database yet, the schema that an ingest would make.

    Example: circuitdb schema scores
    """
    if ask.path != DEFAULT_DATABASE or Path(ask.path).exists():
        output.answer(ask.database.schema(name), ask.form)
        return
    from circuitdb.queries.schema import describe, fresh

    with fresh() as connection:
        found = describe(connection, name)
    note = f"There is no {ask.path} here; this is the schema that `circuitdb ingest` would make."
    output.answer(replace(found, notes=(note,)), ask.form)
