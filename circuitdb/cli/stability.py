"""`circuitdb stability`: does a model use one circuit across the subtasks of a task?"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from circuitdb.cli import output
from circuitdb.cli.options import Ask, On, OnScores, question


class Over(StrEnum):
    """What is resampled for the intervals."""

    SUBTASKS = "subtasks"
    FOLDS = "folds"


@question(compares=True)
def stability(
    ask: Ask,
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="NAME", help="Within each value of this parameter; may be repeated."),
    ] = None,
    over: Annotated[
        Over, typer.Option("--over", help="The intervals are for other subtasks, or for these and other examples.")
    ] = Over.SUBTASKS,
    on: OnScores = On.SIGNED,
) -> None:
    """Tell how alike the circuits of a task's subtasks are.

    Stability is the mean similarity of two of them; the ceiling beside it is what their reliability allows.

    Example: circuitdb stability --task addition --by digits_a
    """
    found = ask.database.stability(by=by or (), over=over.value, on=on.value, **ask.comparison, **ask.filters)
    output.answer(found, ask.form)
