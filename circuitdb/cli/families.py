"""`circuitdb families`: which subtasks share a circuit?"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from circuitdb.cli import output
from circuitdb.cli.options import Ask, On, OnScores, question
from circuitdb.errors import UsageError


class Layout(StrEnum):
    """Ways to draw a map."""

    MDS = "mds"
    T_SNE = "t-sne"


@question(compares=True)
def families(
    ask: Ask,
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha",
            metavar="A",
            help="Similarity from which two circuits are of one family.",
            show_default="a useful one",
        ),
    ] = None,
    corrected: Annotated[
        bool, typer.Option("--corrected", help="By the similarity corrected for the noise of both circuits.")
    ] = False,
    every_pair: Annotated[
        bool, typer.Option("--every-pair", help="Classes in which every pair reaches alpha, not chains of such pairs.")
    ] = False,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="The number of families at every alpha where it changes, instead.")
    ] = False,
    barcode: Annotated[
        bool, typer.Option("--barcode", help="The H0 barcode, instead: each family from alpha = 1 to where it joins.")
    ] = False,
    births: Annotated[
        bool,
        typer.Option(
            "--births", help="The share of all families that has appeared by each alpha, as it rises, instead."
        ),
    ] = False,
    tree: Annotated[bool, typer.Option("--tree", help="The dendrogram, instead: what joins what, and where.")] = False,
    layout: Annotated[
        Layout | None, typer.Option("--map", help="A place in the plane for each circuit, instead.")
    ] = None,
    share: Annotated[
        list[float] | None,
        typer.Option(
            "--share",
            metavar="S",
            help="The alpha by which this share of the families has appeared, and the narrowest band of alpha that "
            "holds it, instead; may be repeated. With --barcode, the band of its note (0.8).",
        ),
    ] = None,
    on: OnScores = On.SIGNED,
) -> None:
    """Group the circuits into families of alike ones.

    Two circuits are of one family if similarities of at least alpha lead from one to the other.

    Example: circuitdb families --task addition --alpha 0.1

    Example: circuitdb families --share 0.5 --share 0.9
    """
    shares = list(share or ())
    views = {
        "--sweep": sweep,
        "--barcode": barcode,
        "--births": births,
        "--tree": tree,
        "--map": layout is not None,
        "--share": bool(shares) and not barcode,
    }
    chosen = [name for name, given in views.items() if given]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} are different answers; ask for one of them.")
    if chosen and alpha is not None:
        raise UsageError(f"{chosen[0]} is not of one alpha; give --alpha or {chosen[0]}, not both.")
    if every_pair and (barcode or layout):
        raise UsageError(f"{chosen[0]} has no classes; leave out --every-pair.")
    if barcode and len(shares) > 1:
        raise UsageError("--barcode has the band of one share; give one --share, or several without --barcode.")
    database = ask.database
    if sweep:
        found = database.family_sweep(
            corrected=corrected, every_pair=every_pair, on=on.value, **ask.comparison, **ask.filters
        )
    elif barcode:
        found = database.barcode(
            share=shares[0] if shares else 0.8, corrected=corrected, on=on.value, **ask.comparison, **ask.filters
        )
    elif births:
        found = database.family_births(
            corrected=corrected, every_pair=every_pair, on=on.value, **ask.comparison, **ask.filters
        )
    elif shares:
        found = database.family_bands(
            shares, corrected=corrected, every_pair=every_pair, on=on.value, **ask.comparison, **ask.filters
        )
    elif tree:
        found = database.dendrogram(
            corrected=corrected, every_pair=every_pair, on=on.value, **ask.comparison, **ask.filters
        )
    elif layout:
        found = database.embedding(layout.value, corrected=corrected, on=on.value, **ask.comparison, **ask.filters)
    else:
        found = database.families(
            alpha=alpha, corrected=corrected, every_pair=every_pair, on=on.value, **ask.comparison, **ask.filters
        )
    output.answer(found, ask.form)
