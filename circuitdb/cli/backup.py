"""`circuitdb backup`: a copy of the database file as it is at one moment."""

from __future__ import annotations

from typing import Annotated

import typer

from circuitdb.cli import output
from circuitdb.cli.options import DEFAULT_DATABASE, DatabaseFile, Json, Patience, form_of


def backup(
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The copy: a file, or a folder to put it in.")],
    db: DatabaseFile = DEFAULT_DATABASE,
    force: Annotated[bool, typer.Option("--force", help="Replace a file of that name.")] = False,
    timeout: Patience = 60.0,
    json: Json = False,
) -> None:
    """Copy the database file as it is at one moment.

    An ingest may be running: it waits for the copy before it stores its next circuit. In a folder the copy is named by
    the time.

    Example: circuitdb backup backups/
    """
    import pyarrow as pa

    from circuitdb.backup import back_up
    from circuitdb.queries.result import Result

    made = back_up(db, target, replace=force, timeout=timeout)
    table = pa.table({"file": [made.path], "mb": [made.n_bytes / 1e6], "n_circuits": [made.n_circuits]})
    output.answer(Result(table, f"Copy of {db}"), form_of(json=json, csv=False))
