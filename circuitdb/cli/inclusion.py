"""`circuitdb inclusion`: which edges do the circuits agree on?"""

from __future__ import annotations

from typing import Annotated

import typer

from circuitdb.cli import cuts, output
from circuitdb.cli.options import Ask, question


@question(cut=cuts.SEVERAL)
def inclusion(
    ask: Ask,
    consensus: Annotated[
        float, typer.Option("--consensus", metavar="Q", help="The share of all cuts that makes an edge consensus.")
    ] = 0.8,
    least: Annotated[
        float, typer.Option("--least", metavar="Q", help="Leave out edges that are in a smaller share of all cuts.")
    ] = 0.0,
) -> None:
    """List which edges the circuits agree on: core, consensus, unique.

    Every circuit of the selection, cut in every way that is named, counts alike.

    Example: circuitdb inclusion --top 100 --top 200 --least 0.5
    """
    from circuitdb.queries.cuts import Cut

    ways = [Cut.of(**cut) for cut in ask.cuts]
    output.answer(ask.database.inclusion(ways, consensus=consensus, least=least, **ask.filters), ask.form)
