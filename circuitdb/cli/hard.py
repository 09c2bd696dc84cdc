"""`circuitdb hard`: the edges of one hard circuit."""

from __future__ import annotations

from typing import Annotated

import typer

from circuitdb.cli import cuts, output
from circuitdb.cli.options import Ask, question


@question(filters=False, cut=cuts.ONE)
def hard(
    ask: Ask,
    circuit: Annotated[
        int, typer.Argument(metavar="ID", help="The circuit, by the id that `circuitdb circuits` lists.")
    ],
) -> None:
    """List the edges of one circuit cut to a hard one.

    Example: circuitdb hard 3 --greedy 100 --prune
    """
    output.answer(ask.database.hard_circuit(circuit, **ask.cut), ask.form)
