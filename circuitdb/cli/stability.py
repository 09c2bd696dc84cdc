"""`circuitdb stability`: does a model use one circuit across the subtasks of a task?"""

from __future__ import annotations

from circuitdb.cli import output
from circuitdb.cli.options import Ask, On, OnScores, question


@question()
def stability(ask: Ask, on: OnScores = On.SIGNED) -> None:
    """Tell how alike the circuits of a task's subtasks are.

    Stability is the mean similarity of two of them; the ceiling beside it is what their reliability allows.

    Example: circuitdb stability --task addition
    """
    output.answer(ask.database.stability(on=on.value, **ask.filters), ask.form)
