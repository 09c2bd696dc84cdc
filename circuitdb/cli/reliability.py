"""`circuitdb reliability`: how well each circuit is measured."""

from __future__ import annotations

from typing import Annotated

import typer

from circuitdb.cli import output
from circuitdb.cli.options import Ask, On, OnScores, question


@question(compares=True)
def reliability(
    ask: Ask,
    wanted: Annotated[
        float,
        typer.Option("--wanted", metavar="R", help="The reliability that examples_needed is for."),
    ] = 0.5,
    on: OnScores = On.SIGNED,
) -> None:
    """Tell how well each circuit is measured.

    Reliability is what a circuit would correlate with itself from other examples; it comes from the folds of its own.

    Example: circuitdb reliability --task addition --wanted 0.8
    """
    output.answer(ask.database.reliability(on=on.value, wanted=wanted, **ask.comparison, **ask.filters), ask.form)
