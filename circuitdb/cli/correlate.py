"""`circuitdb correlate`: does stability go with being right?"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from circuitdb.cli import output
from circuitdb.cli.options import Ask, On, OnScores, question


class Over(StrEnum):
    """What the points are: the circuits of a group, or the groups of a task."""

    SUBTASKS = "subtasks"
    MODELS = "models"


@question(compares=True)
def correlate(
    ask: Ask,
    with_: Annotated[
        str,
        typer.Option("--with", metavar="NAME.METRIC", help="The metric: our accuracy, or one of `circuitdb evals`."),
    ] = "circuitdb.accuracy",
    over: Annotated[
        Over, typer.Option("--over", help="Circuits of one model and task, or models by their stability.")
    ] = Over.SUBTASKS,
    corrected: Annotated[
        bool, typer.Option("--corrected", help="Similarities divided by what the noise of the circuits allows.")
    ] = False,
    reader: Annotated[
        str | None,
        typer.Option(
            "--filter", metavar="NAME", help="How the answer was read, where there are several ways; '' for none."
        ),
    ] = None,
    points: Annotated[bool, typer.Option("--points", help="The points themselves, instead.")] = False,
    on: OnScores = On.SIGNED,
) -> None:
    """Correlate stability with a metric, such as accuracy.

    Over subtasks: each circuit's mean similarity to those of other subtasks. Over models: the stability of each.

    Example: circuitdb correlate --with harness.acc
    """
    found = ask.database.correlate(
        with_, over=over.value, corrected=corrected, filter=reader, on=on.value, **ask.comparison, **ask.filters
    )
    output.answer(found.long() if points else found.result(), ask.form)
