"""`circuitdb inclusion`: which edges do the circuits agree on?"""

from __future__ import annotations

from typing import Annotated

import typer

from circuitdb.cli import output
from circuitdb.cli.cuts import Prune, Signed
from circuitdb.cli.options import Ask, question


@question()
def inclusion(
    ask: Ask,
    top: Annotated[
        list[int] | None,
        typer.Option(
            "--top",
            metavar="N",
            min=1,
            help="Cut each circuit to its N strongest edges; may be repeated.",
            show_default="200 if no other cut",
        ),
    ] = None,
    greedy: Annotated[
        list[int] | None,
        typer.Option("--greedy", metavar="N", min=1, help="To N edges grown from the logits; may be repeated."),
    ] = None,
    signed: Signed = False,
    prune: Prune = False,
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

    sizes: list[dict[str, int]] = [*({"top": n} for n in top or ()), *({"greedy": n} for n in greedy or ())]
    cuts = [Cut.of(**size, signed=signed, prune=prune) for size in sizes or [{}]]
    output.answer(ask.database.inclusion(cuts, consensus=consensus, least=least, **ask.filters), ask.form)
