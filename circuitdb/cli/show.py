"""`circuitdb show`: everything about one circuit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from circuitdb.cli import output, statements
from circuitdb.cli.options import Ask, On, question

if TYPE_CHECKING:
    from circuitdb.queries.result import Answer, Result


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
    import pyarrow as pa

    from circuitdb.connection import reading
    from circuitdb.queries.result import Result, count

    database = ask.database
    reliabilities = [database.reliability(on=on.value, circuits=[circuit]) for on in On]
    strongest = database.top_edges(circuit, edges)
    with reading(ask.path, timeout=ask.timeout) as connection:
        provenance = statements.run(connection, "show_provenance", circuit=circuit)
        skipped = statements.run(connection, "show_skipped", circuit=circuit)
    left_out = f"{count(len(skipped), 'question')} left out" if len(skipped) else "No question was left out"
    parts: dict[str, Answer] = {
        "provenance": Result(provenance, ""),
        "reliability": Result(pa.concat_tables(r.table for r in reliabilities), "Reliability", _notes(reliabilities)),
        "edges": strongest,
        "skipped": Result(skipped, left_out),
    }
    output.page(f"Circuit {circuit}", parts, ask.form)


def _notes(results: list[Result]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note for result in results for note in result.notes))
