"""`circuitdb containment`: how much of one circuit lies in another?"""

from __future__ import annotations

from typing import Annotated

import typer

from circuitdb.cli import output
from circuitdb.cli.options import Ask, question

_LABELS = 1  # of a row of the matrix: the circuit


@question()
def containment(
    ask: Ask,
    top: Annotated[
        int, typer.Option("--top", metavar="N", min=1, help="Cut each circuit to its N strongest edges.")
    ] = 200,
    long: Annotated[
        bool, typer.Option("--long", help="One row a pair, with counts and chance, instead of the matrix.")
    ] = False,
) -> None:
    """Tell how much of one circuit lies in another.

    Each circuit is cut to its strongest edges; the matrix has the share of the row's that is among the column's.

    Example: circuitdb containment --task addition --top 500
    """
    found = ask.database.containment(top=top, **ask.filters)
    if long:
        output.answer(found.result(), ask.form)
    else:
        output.matrix(found.wide(), ask.form, labels=_LABELS)
