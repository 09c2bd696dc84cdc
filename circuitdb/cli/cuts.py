"""The options that say how soft circuits are cut to hard ones, for `circuitdb.cli.options.question`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, cast

import typer

from circuitdb.cli import parameters

if TYPE_CHECKING:
    from circuitdb.queries.cuts import Cutting

_WAYS: dict[str, tuple[type[int] | type[float], str, str]] = {  # of each its type, the name of a value, what it does
    "top": (int, "N", "Cut each circuit to its N strongest edges"),
    "share": (float, "S", "To this share of the graph's edges instead, such as 0.01"),
    "threshold": (float, "T", "To all edges of at least this strength instead"),
    "greedy": (int, "N", "To N edges grown from the logits, strongest first, instead"),
}


def cuttings(values: Mapping[str, object]) -> list[Cutting]:
    """The cuts that were asked for, as keywords of the library: one, or one a value of a repeated option."""
    if "signed" not in values:
        return []
    each = {"signed": bool(values["signed"]), "prune": bool(values["prune"])}
    ways = {way: values[way] for way in _WAYS if values[way] is not None}
    repeated = {way: value for way, value in ways.items() if isinstance(value, list | tuple)}
    if not repeated:
        return [cast("Cutting", {**ways, **each})]
    return [cast("Cutting", {way: value, **each}) for way, given in repeated.items() for value in given]


def way(name: str, *, repeated: bool = False, text: str | None = None) -> inspect.Parameter:
    """The option of one way to cut, or of several cuts that way."""
    one, metavar, does = _WAYS[name]
    option = typer.Option(
        f"--{name}",
        metavar=metavar,
        min=1 if one is int else None,
        help=f"{text or does}{'; may be repeated' if repeated else ''}.",
        show_default="200 if no other cut" if name == "top" else True,
    )
    return parameters.parameter(name, Annotated[list[one] | None if repeated else one | None, option], None)  # type: ignore[valid-type]


HOW = [
    parameters.flag("signed", "By the score itself: the edges whose ablation raises the metric most."),
    parameters.flag("prune", "Keep only the edges on a path from input to logits."),
]
ONE = [*(way(name) for name in _WAYS), *HOW]
SEVERAL = [*(way(name, repeated=True) for name in _WAYS), *HOW]
