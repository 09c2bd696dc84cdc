"""`circuitdb report`: the report of a case study, from the circuits that are stored."""

from __future__ import annotations

from typing import Annotated

import typer

from circuitdb.cli.options import Ask, question


@question(csv=False)
def report(
    ask: Ask,
    name: Annotated[str, typer.Argument(metavar="STUDY", help="arithmetic, boolean, sports or training.")],
    folder: Annotated[
        str | None, typer.Option("--report", metavar="DIR", help="Its folder; report/STUDY.", show_default=False)
    ] = None,
) -> None:
    """Write the report of a study about circuits that are stored already.

    It has the same answers, tables and figures as that of `circuitdb study`, of whatever circuits the filters leave.

    Example: circuitdb report arithmetic --model gpt2
    """
    from circuitdb.cli import reporting
    from circuitdb.queries.report import write

    found = ask.database.study(name, **ask.filters)
    target = reporting.require_folder(folder or reporting.folder_of(name))
    reporting.show(found, write(found, target), {}, ask.form)
