"""`circuitdb hard`: the edges of one hard circuit."""

from __future__ import annotations

from typing import Annotated

import typer

from circuitdb.cli import output
from circuitdb.cli.cuts import Chosen, Greedy, Prune, Share, Signed, Threshold, Top
from circuitdb.cli.options import Ask, question


@question(filters=False)
def hard(
    ask: Ask,
    circuit: Annotated[
        int, typer.Argument(metavar="ID", help="The circuit, by the id that `circuitdb circuits` lists.")
    ],
    top: Top = None,
    share: Share = None,
    threshold: Threshold = None,
    greedy: Greedy = None,
    signed: Signed = False,
    prune: Prune = False,
) -> None:
    """List the edges of one circuit cut to a hard one.

    Example: circuitdb hard 3 --greedy 100 --prune
    """
    cut: Chosen = {
        "top": top, "share": share, "threshold": threshold, "greedy": greedy, "signed": signed, "prune": prune,
    }  # fmt: skip
    output.answer(ask.database.hard_circuit(circuit, **cut), ask.form)
