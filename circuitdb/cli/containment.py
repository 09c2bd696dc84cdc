"""`circuitdb containment`: how much of one circuit lies in another?"""

from __future__ import annotations

from typing import Annotated

import typer

from circuitdb.cli import cuts, output
from circuitdb.cli.options import Ask, question
from circuitdb.errors import UsageError

_LABELS = 2  # of a row of the matrix: the circuit and its share by chance


@question(cut=cuts.ONE)
def containment(
    ask: Ask,
    long: Annotated[
        bool, typer.Option("--long", help="One row a pair, with counts and chance, instead of the matrix.")
    ] = False,
    order: Annotated[
        bool, typer.Option("--order", help="Which circuit is a sub-circuit of which (Hasse diagram), instead.")
    ] = False,
    tolerance: Annotated[
        float | None,
        typer.Option(
            "--tolerance",
            metavar="T",
            help="With --order: the share of a circuit's edges that the larger may lack.",
            show_default="0",
        ),
    ] = None,
) -> None:
    """Tell how much of one circuit lies in another.

    Each circuit is cut to its strongest edges; the matrix has the share of the row's that is among the column's, beside
    the share that random circuits of the same sizes would hold.

    Example: circuitdb containment --task addition --top 500
    """
    if long and order:
        raise UsageError("--long lists the pairs and --order draws their order; give one of them.")
    if tolerance is not None and not order:
        raise UsageError("--tolerance belongs to --order; give that too, or leave it out.")
    if order:
        output.answer(ask.database.containment_order(tolerance or 0.0, **ask.cut, **ask.filters), ask.form)
        return
    found = ask.database.containment(**ask.cut, **ask.filters)
    if long:
        output.answer(found.result(), ask.form)
    else:
        output.matrix(found.wide(), ask.form, labels=_LABELS)
