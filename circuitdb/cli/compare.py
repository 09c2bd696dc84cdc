"""`circuitdb compare`: do two conditions differ, and do they change the circuit?"""

from __future__ import annotations

from typing import Annotated

import typer

from circuitdb.cli import output
from circuitdb.cli.options import Ask, On, OnScores, question


@question(compares=True)
def compare(
    ask: Ask,
    by: Annotated[
        str,
        typer.Option("--by", metavar="NAME", help="What they differ in: a parameter of subtasks, prompt_style, model."),
    ],
    value: Annotated[
        list[str] | None,
        typer.Option("--value", metavar="V", help="A value to compare, where there are more than two; give it twice."),
    ] = None,
    on: OnScores = On.SIGNED,
) -> None:
    """Test two conditions against each other.

    Stability of each and the difference, and whether circuits are less alike across the conditions than within them: p
    by exchanging the labels of circuits, intervals by resampling subtasks.

    Example: circuitdb compare --task boolean --by parentheses
    """
    output.answer(ask.database.compare(by, value or (), on=on.value, **ask.comparison, **ask.filters), ask.form)
