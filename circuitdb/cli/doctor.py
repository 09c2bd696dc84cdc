"""`circuitdb doctor`: is the database file whole, does it agree with itself, and what does it take?"""

from __future__ import annotations

from typing import Annotated

import typer

from circuitdb.cli import diagnostics, output
from circuitdb.cli.options import Ask, question


@question(filters=False, csv=False)
def doctor(
    ask: Ask,
    every: Annotated[
        bool, typer.Option("--all", help="Compute the digests of all circuits anew, not of a few chosen at random.")
    ] = False,
    sample: Annotated[int, typer.Option("--sample", metavar="N", min=0, help="Of how many.")] = 16,
) -> None:
    """Examine the database file, and tell what to do about what is wrong.

    Whether it can be read, its schema, rows that refer to nothing, counts that disagree, digests of the scores, and
    what each table takes on disk. Nothing is written. The exit code is 1 if anything is wrong.

    Example: circuitdb doctor --all
    """
    import pyarrow as pa

    from circuitdb.doctor import examine
    from circuitdb.queries.result import Result

    found = examine(ask.path, every=every, sample=sample, timeout=ask.timeout)
    fields = ("check", "status", "found", "advice")
    findings = pa.table(
        {name: pa.array([getattr(finding, name) for finding in found.findings], pa.string()) for name in fields}
    )
    tables = pa.table(
        {
            "table": pa.array([use.table for use in found.tables], pa.string()),
            "n_rows": pa.array([use.n_rows for use in found.tables], pa.int64()),
            "n_row_groups": pa.array([use.n_row_groups for use in found.tables], pa.int64()),
            "mb": pa.array([use.n_bytes / 1e6 for use in found.tables], pa.float64()),
        }
    )
    n_wrong = sum(finding.status == "wrong" for finding in found.findings)
    verdict = "nothing is wrong" if found.healthy else f"{n_wrong} of {len(found.findings)} checks found a fault"
    parts = {
        "findings": Result(findings, f"What is in {ask.path}"),
        "tables": Result(tables, "Disk that the tables take, in blocks that they may share"),
    }
    output.page(f"{ask.path}, {found.n_bytes / 1e6:,.1f} MB: {verdict}", parts, ask.form)
    if not found.healthy:
        raise typer.Exit(diagnostics.FAILED)
