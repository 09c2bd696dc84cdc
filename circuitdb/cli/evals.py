"""`circuitdb evals`: how well the models do on the subtasks."""

from __future__ import annotations

from circuitdb.cli import output
from circuitdb.cli.options import Ask, question


@question()
def evals(ask: Ask) -> None:
    """List how well the models do on the subtasks.

    Accuracies that the ingest measured, and results imported from elsewhere.

    Example: circuitdb evals --task addition --csv
    """
    output.answer(ask.database.evaluations(**ask.filters), ask.form)
