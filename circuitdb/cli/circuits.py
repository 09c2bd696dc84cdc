"""`circuitdb circuits`: what is in the database."""

from __future__ import annotations

from circuitdb.cli import output
from circuitdb.cli.options import Ask, question


@question()
def circuits(ask: Ask) -> None:
    """List the circuits with their provenance and accuracy.

    Example: circuitdb circuits --task addition
    """
    output.answer(ask.database.circuits(**ask.filters), ask.form)
