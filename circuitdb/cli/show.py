"""`circuitdb show`: everything about one circuit."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from circuitdb.cli import output
from circuitdb.cli.options import Ask, question


@question(filters=False, csv=False)
def show(
    ask: Ask,
    circuit: Annotated[
        int, typer.Argument(metavar="ID", help="The circuit, by the id that `circuitdb circuits` lists.")
    ],
    edges: Annotated[int, typer.Option("--edges", metavar="N", min=1, help="How many of its strongest edges.")] = 10,
) -> None:
    """Show everything about one circuit.

    Its provenance, accuracy and reliability, its strongest edges, and the questions that it left out and why.

    Example: circuitdb show 3 --edges 20
    """
    found = ask.database.show(circuit, edges=edges)
    parts = {
        "provenance": replace(found.provenance, title=""),
        "reliability": found.reliability,
        "edges": found.edges,
        "skipped": found.skipped,
    }
    output.page(found.provenance.title, parts, ask.form)
