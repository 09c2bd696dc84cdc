"""The options that say how soft circuits are cut to hard ones, shared by the commands that do so."""

from __future__ import annotations

from typing import Annotated, TypedDict

import typer

Top = Annotated[
    int | None,
    typer.Option(
        "--top",
        metavar="N",
        min=1,
        help="Cut each circuit to its N strongest edges.",
        show_default="200 if no other cut",
    ),
]
Share = Annotated[
    float | None, typer.Option("--share", metavar="S", help="To this share of the graph's edges instead, such as 0.01.")
]
Threshold = Annotated[
    float | None, typer.Option("--threshold", metavar="T", help="To all edges of at least this strength instead.")
]
Greedy = Annotated[
    int | None,
    typer.Option("--greedy", metavar="N", min=1, help="To N edges grown from the logits, strongest first, instead."),
]
Signed = Annotated[
    bool, typer.Option("--signed", help="By the score itself: the edges whose ablation raises the metric most.")
]
Prune = Annotated[bool, typer.Option("--prune", help="Keep only the edges on a path from input to logits.")]


class Chosen(TypedDict):
    """The keywords of a cut, as the methods of `Database` take them."""

    top: int | None
    share: float | None
    threshold: float | None
    greedy: int | None
    signed: bool
    prune: bool
