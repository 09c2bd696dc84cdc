"""`circuitdb commutativity` and `circuitdb neighbours`: how a circuit goes on to the next subtask."""

from __future__ import annotations

from typing import Annotated

import typer

from circuitdb.cli import output
from circuitdb.cli.options import Ask, On, OnScores, question

Parameters = Annotated[
    list[str] | None,
    typer.Option("--parameter", metavar="NAME", help="A parameter of the subtasks to take; may be repeated."),
]


@question(compares=True)
def commutativity(ask: Ask, parameter: Parameters = None, on: OnScores = On.SIGNED) -> None:
    """Compare the circuits of (a, b) and of (b, a).

    Beside the similarity stand the model's accuracies on the two and their gap. Without --parameter the two parameters
    that are whole numbers are exchanged.

    Example: circuitdb commutativity --task addition
    """
    found = ask.database.commutativity(parameter or (), on=on.value, **ask.comparison, **ask.filters)
    output.answer(found, ask.form)


@question(compares=True)
def neighbours(ask: Ask, parameter: Parameters = None, on: OnScores = On.SIGNED) -> None:
    """Compare the circuits of subtasks one step apart.

    Two subtasks are neighbours if they differ by 1 in one parameter, such as (6, 6) and (6, 7).

    Example: circuitdb neighbours --task addition --parameter digits_b
    """
    found = ask.database.neighbours(parameter or (), on=on.value, **ask.comparison, **ask.filters)
    output.answer(found, ask.form)
