"""`circuitdb reliability`: how well each circuit is measured."""

from __future__ import annotations

from circuitdb.cli import output
from circuitdb.cli.options import Ask, On, OnScores, question


@question()
def reliability(ask: Ask, on: OnScores = On.SIGNED) -> None:
    """Tell how well each circuit is measured.

    Reliability is what a circuit would correlate with itself from other examples; it comes from the folds of its own.

    Example: circuitdb reliability --task addition
    """
    output.answer(ask.database.reliability(on=on.value, **ask.filters), ask.form)
