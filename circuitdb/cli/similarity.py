"""`circuitdb similarity`: how alike are the circuits?"""

from __future__ import annotations

from typing import Annotated

import typer

from circuitdb.cli import output
from circuitdb.cli.options import Ask, On, OnScores, question

_LABELS = 2  # of a row of the matrix: the circuit and its reliability


@question()
def similarity(
    ask: Ask,
    corrected: Annotated[
        bool, typer.Option("--corrected", help="The matrix corrected for the noise of both circuits.")
    ] = False,
    long: Annotated[
        bool, typer.Option("--long", help="One row a pair, with its ceiling, instead of the matrix.")
    ] = False,
    on: OnScores = On.SIGNED,
) -> None:
    """Compare every two circuits by Spearman's rho.

    The reliability of each stands beside its row: two circuits that are truly the same reach the square root of the
    product of theirs, not 1. --corrected divides by that.

    Example: circuitdb similarity --task addition --corrected
    """
    found = ask.database.similarity(on=on.value, corrected=corrected, **ask.filters)
    if long:
        output.answer(found.result(), ask.form)
    else:
        output.matrix(found.wide(corrected=corrected), ask.form, labels=_LABELS)
