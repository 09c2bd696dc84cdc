"""`circuitdb merge`: bring circuits that workers scored into the database."""

from __future__ import annotations

from typing import Annotated

import typer

from circuitdb.cli import diagnostics, output
from circuitdb.cli.options import DEFAULT_DATABASE, DatabaseFile, Json, Patience, form_of


def merge(
    paths: Annotated[
        list[str], typer.Argument(metavar="SHARD...", help="Folders that workers wrote, or single files of them.")
    ],
    db: DatabaseFile = DEFAULT_DATABASE,
    timeout: Patience = 60.0,
    json: Json = False,
) -> None:
    """Bring circuits that workers scored into the database.

    Each is stored once, in a transaction of its own: stop it and run it again, and it goes on. Files that are damaged,
    and circuits that a shard lacks, are refused, and the others go in; then the exit code is 1.

    Example: circuitdb merge shards/ --db circuits.duckdb
    """
    import pyarrow as pa

    from circuitdb.merging import merge as bring_in
    from circuitdb.queries.result import Result
    from circuitdb.store import Store

    done = list(bring_in(Store(db, timeout=timeout), paths))
    columns = {"subtask": pa.string(), "status": pa.string(), "circuit_id": pa.int32(), "file": pa.string(),
               "reason": pa.string()}  # fmt: skip
    rows = {name: pa.array([getattr(one, name) for one in done], kind) for name, kind in columns.items()}
    counts = {status: sum(one.status == status for one in done) for status in ("stored", "kept", "refused")}
    told = ", ".join(f"{n} {status}" for status, n in counts.items())
    output.answer(Result(pa.table(rows), f"Circuits merged into {db}: {told}"), form_of(json=json, csv=False))
    if counts["refused"]:
        raise typer.Exit(diagnostics.FAILED)
