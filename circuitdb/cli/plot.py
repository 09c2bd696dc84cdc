"""`circuitdb plot`: an answer as a figure in a file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from circuitdb.cli import comparing, cuts, filters, output
from circuitdb.cli.correlate import Over
from circuitdb.cli.options import Ask, On, OnScores, question
from circuitdb.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from circuitdb.queries.result import Answer


class Drawn(StrEnum):
    """What is drawn."""

    SIMILARITY = "similarity"
    FAMILIES = "families"
    CONTAINMENT = "containment"
    ACCURACY = "accuracy"
    CIRCUIT = "circuit"


class Order(StrEnum):
    """The order of the rows of a heat map."""

    PARAMETER = "parameter"
    LIKENESS = "likeness"


_COMPARED = (*(one.name for one in comparing.COMPARISON), "on")
_OF = {  # options that are not for every figure
    Drawn.SIMILARITY: (*_COMPARED, "corrected", "order", "against"),
    Drawn.FAMILIES: (*_COMPARED, "corrected", "every_pair"),
    Drawn.CONTAINMENT: tuple(one.name for one in cuts.ONE),
    Drawn.ACCURACY: (*_COMPARED, "corrected", "with_", "over", "reader"),
    Drawn.CIRCUIT: (),
}
_NAMES = {"with_": "with", "reader": "filter"}
_TOP = cuts.way(
    "top", text="containment: cut to the N strongest edges; --kind overlap and kappa: how many these are of"
)


@question(compares=True, cut=[_TOP, *(one for one in cuts.ONE if one.name != "top")], form=False)
def plot(
    ask: Ask,
    context: typer.Context,
    drawn: Annotated[
        Drawn, typer.Argument(metavar="KIND", help="similarity, families, containment, accuracy or circuit.")
    ],
    file: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The figure: .png, .svg or .pdf.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the file if there is one.")] = False,
    corrected: Annotated[
        bool,
        typer.Option("--corrected", help="similarity, families, accuracy: corrected for the noise of both circuits."),
    ] = False,
    order: Annotated[
        Order, typer.Option("--order", help="similarity: by the subtasks' parameters, or like beside like.")
    ] = Order.PARAMETER,
    against: Annotated[
        list[str] | None,
        typer.Option("--against", metavar="FILTER=VALUE", help="similarity: to a second set, of other filters."),
    ] = None,
    every_pair: Annotated[
        bool, typer.Option("--every-pair", help="families: classes in which every pair reaches alpha.")
    ] = False,
    with_: Annotated[
        str, typer.Option("--with", metavar="NAME.METRIC", help="accuracy: the metric, as in `circuitdb correlate`.")
    ] = "circuitdb.accuracy",
    over: Annotated[Over, typer.Option("--over", help="accuracy: circuits of one model, or models.")] = Over.SUBTASKS,
    reader: Annotated[
        str | None, typer.Option("--filter", metavar="NAME", help="accuracy: how answers were read.")
    ] = None,
    on: OnScores = On.SIGNED,
) -> None:
    """Draw an answer into a file, as wide as a column.

    similarity: heat map with reliabilities; families: their number against alpha, and the barcode; containment: heat
    map; accuracy: against stability, over subtasks or over models; circuit: layers x heads of one circuit. Each takes
    the options of the command that gives it as a table: similarity, families --sweep, containment, correlate.

    Example: circuitdb plot similarity --task addition -o similarity.pdf
    """
    from circuitdb.queries import plots
    from circuitdb.queries.families import family_sweep

    _refuse_others(context, drawn)
    if against and order is Order.LIKENESS:
        raise UsageError("--order is of the circuits of one set; leave out --against.")
    output.refuse_existing(file, force=force)
    form = Path(file).suffix.lower().removeprefix(".")
    if form not in plots.FORMATS:
        raise UsageError(f"{file} ends in none of .{', .'.join(plots.FORMATS)}; the ending says what is written.")
    answer: Answer
    figure: Figure
    if drawn is Drawn.CONTAINMENT:
        answer = contained = ask.database.containment(**ask.cut, **ask.filters)
        figure = plots.containment(contained)
    elif drawn is Drawn.ACCURACY:
        answer = found = ask.database.correlate(
            with_, over=over.value, corrected=corrected, filter=reader, on=on.value, **ask.comparison, **ask.filters
        )
        figure = plots.accuracy(found)
    elif drawn is Drawn.CIRCUIT:
        answer = scores = ask.database.node_scores(_one(ask))
        figure = plots.circuit(scores)
    elif against:
        second = filters.from_texts("--against", against)
        answer = crossed = ask.database.between(
            ask.filters, {**ask.filters, **second}, corrected=corrected, on=on.value, **ask.comparison
        )
        figure = plots.between(crossed, corrected=corrected)
    else:
        answer = compared = ask.database.similarity(corrected=corrected, on=on.value, **ask.comparison, **ask.filters)
        if drawn is Drawn.SIMILARITY:
            figure = plots.similarity(compared, corrected=corrected, by_likeness=order is Order.LIKENESS)
        else:
            answer = family_sweep(compared, corrected=corrected, every_pair=every_pair)
            figure = plots.families(compared, corrected=corrected, every_pair=every_pair)
    output.binary(plots.render(figure, form, answer.title), file, answer.notes, force=force)


def _refuse_others(context: typer.Context, drawn: Drawn) -> None:
    """Raise UsageError for an option of another figure: left out, the figure would not be what was asked for."""
    for name in dict.fromkeys(name for names in _OF.values() for name in names):
        source = context.get_parameter_source(name)
        if name not in _OF[drawn] and source is not None and source.name == "COMMANDLINE":
            whose = " and ".join(kind for kind, names in _OF.items() if name in names)
            raise UsageError(f"--{_NAMES.get(name, name.replace('_', '-'))} is for {whose}, not for {drawn}.")


def _one(ask: Ask) -> int:
    """The only circuit of the selection. Raises UsageError."""
    circuits = ask.database.circuits(**ask.filters).arrow()["circuit_id"].to_pylist()
    if len(circuits) != 1:
        raise UsageError(
            f"Which circuit? The filters leave {len(circuits):,}; name one with --circuit ID, which `circuitdb "
            "circuits` lists."
        )
    return int(circuits[0])
