"""`circuitdb plot`: an answer as a figure in a file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from circuitdb.cli import output
from circuitdb.cli.correlate import Over
from circuitdb.cli.cuts import Chosen, Greedy, Prune, Share, Signed, Threshold, Top
from circuitdb.cli.options import Ask, On, OnScores, question
from circuitdb.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from circuitdb.queries.result import Answer


class Kind(StrEnum):
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


@question(form=False)
def plot(
    ask: Ask,
    kind: Annotated[
        Kind, typer.Argument(metavar="KIND", help="similarity, families, containment, accuracy or circuit.")
    ],
    file: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The figure: .png, .svg or .pdf.")],
    force: Annotated[bool, typer.Option("--force", help="Replace the file if there is one.")] = False,
    corrected: Annotated[
        bool, typer.Option("--corrected", help="similarity, families: corrected for the noise of both circuits.")
    ] = False,
    order: Annotated[
        Order, typer.Option("--order", help="similarity: by the subtasks' parameters, or like beside like.")
    ] = Order.PARAMETER,
    with_: Annotated[
        str, typer.Option("--with", metavar="NAME.METRIC", help="accuracy: the metric, as in `circuitdb correlate`.")
    ] = "circuitdb.accuracy",
    over: Annotated[Over, typer.Option("--over", help="accuracy: circuits of one model, or models.")] = Over.SUBTASKS,
    reader: Annotated[
        str | None, typer.Option("--filter", metavar="NAME", help="accuracy: how answers were read.")
    ] = None,
    on: OnScores = On.SIGNED,
    top: Top = None,
    share: Share = None,
    threshold: Threshold = None,
    greedy: Greedy = None,
    signed: Signed = False,
    prune: Prune = False,
) -> None:
    """Draw an answer into a file, as wide as a column.

    similarity: heat map with reliabilities; families: their number against alpha, and the barcode; containment: heat
    map; accuracy: against stability; circuit: layers x heads of the one circuit that --circuit names.

    Example: circuitdb plot similarity --task addition -o similarity.pdf
    """
    from circuitdb.queries import plots

    output.refuse_existing(file, force=force)
    form = Path(file).suffix.lower().removeprefix(".")
    if form not in plots.FORMATS:
        raise UsageError(f"{file} ends in none of .{', .'.join(plots.FORMATS)}; the ending says what is written.")
    answer: Answer
    figure: Figure
    if kind is Kind.SIMILARITY:
        compared = ask.database.similarity(corrected=corrected, on=on.value, **ask.filters)
        answer, figure = compared, plots.similarity(compared, corrected=corrected, by_likeness=order is Order.LIKENESS)
    elif kind is Kind.FAMILIES:
        swept = ask.database.family_sweep(corrected=corrected, on=on.value, **ask.filters)
        answer, figure = swept, plots.families(swept)
    elif kind is Kind.CONTAINMENT:
        cut: Chosen = {
            "top": top, "share": share, "threshold": threshold, "greedy": greedy, "signed": signed, "prune": prune,
        }  # fmt: skip
        contained = ask.database.containment(**cut, **ask.filters)
        answer, figure = contained, plots.containment(contained)
    elif kind is Kind.ACCURACY:
        found = ask.database.correlate(with_, over=over.value, filter=reader, on=on.value, **ask.filters)
        answer, figure = found, plots.accuracy(found)
    else:
        scores = ask.database.node_scores(_one(ask))
        answer, figure = scores, plots.circuit(scores)
    output.binary(plots.render(figure, form, answer.title), file, answer.notes, force=force)


def _one(ask: Ask) -> int:
    circuits = ask.filters.get("circuits")
    if not isinstance(circuits, list) or len(circuits) != 1:
        raise UsageError("Which circuit? Name one with --circuit ID; `circuitdb circuits` lists them.")
    return int(circuits[0])
