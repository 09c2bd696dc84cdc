"""`circuitdb similarity`: how alike are the circuits?"""

from __future__ import annotations

from typing import Annotated

import typer

from circuitdb.cli import filters, output
from circuitdb.cli.options import Ask, On, OnScores, question
from circuitdb.errors import UsageError

_LABELS = 2  # of a row of the matrix: the circuit and its reliability


@question(compares=True)
def similarity(
    ask: Ask,
    corrected: Annotated[
        bool, typer.Option("--corrected", help="The matrix corrected for the noise of both circuits.")
    ] = False,
    long: Annotated[
        bool, typer.Option("--long", help="One row a pair, with its ceiling, instead of the matrix.")
    ] = False,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="One row a pair, with intervals by leaving out folds of the examples.")
    ] = False,
    null: Annotated[
        bool, typer.Option("--null", help="One row a pair, beside what any two circuits of the model share.")
    ] = False,
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against", metavar="FILTER=VALUE", help="Compare with a second set, of other filters; may be repeated."
        ),
    ] = None,
    on: OnScores = On.SIGNED,
) -> None:
    """Compare every two circuits, by Spearman's rho.

    The reliability of each stands beside its row: two circuits that are truly the same reach the square root of the
    product of theirs, not 1. --corrected divides by that.

    With --against the rows are the circuits that the filters choose, and the columns those of the same filters but for
    the ones given there, such as --prompt-style few-shot --against prompt_style=zero-shot.

    Example: circuitdb similarity --task addition --corrected
    """
    if null and (corrected or intervals or against):
        raise UsageError("--null goes without --corrected, --intervals and --against; it has columns of its own.")
    if intervals and against:
        raise UsageError("--intervals are of the pairs of one set; leave out --against.")
    if null:
        output.answer(ask.database.nulls(on=on.value, **ask.comparison, **ask.filters), ask.form)
        return
    if against:
        second = filters.from_texts("--against", against)
        found = ask.database.between(
            ask.filters, {**ask.filters, **second}, corrected=corrected, on=on.value, **ask.comparison
        )
        wide, pairs = found.wide(), found.result()
    else:
        one = ask.database.similarity(
            on=on.value, corrected=corrected, intervals=intervals, **ask.comparison, **ask.filters
        )
        wide, pairs = one.wide(corrected=corrected), one.result()
    if long or intervals:
        output.answer(pairs, ask.form)
    else:
        output.matrix(wide, ask.form, labels=_LABELS)
