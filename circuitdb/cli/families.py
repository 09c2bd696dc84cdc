"""`circuitdb families`: which subtasks share a circuit?"""

from __future__ import annotations

from typing import Annotated

import typer

from circuitdb.cli import output
from circuitdb.cli.options import Ask, On, OnScores, question
from circuitdb.errors import UsageError


@question()
def families(
    ask: Ask,
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha",
            metavar="A",
            help="Similarity from which two circuits are of one family.",
            show_default="a useful one",
        ),
    ] = None,
    corrected: Annotated[
        bool, typer.Option("--corrected", help="By the similarity corrected for the noise of both circuits.")
    ] = False,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="The number of families at every alpha where it changes, instead.")
    ] = False,
    on: OnScores = On.SIGNED,
) -> None:
    """Group the circuits into families of alike ones.

    Two circuits are of one family if similarities of at least alpha lead from one to the other.

    Example: circuitdb families --task addition --alpha 0.1
    """
    if sweep and alpha is not None:
        raise UsageError("--sweep goes through every alpha; give --alpha or --sweep, not both.")
    if sweep:
        found = ask.database.family_sweep(corrected=corrected, on=on.value, **ask.filters)
    else:
        found = ask.database.families(alpha=alpha, corrected=corrected, on=on.value, **ask.filters)
    output.answer(found, ask.form)
