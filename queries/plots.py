"""Figures of answers, as wide as a column of a paper; matplotlib comes with the extra `plot`.

Each takes an answer and draws it, with nothing computed but its order; a similarity stands beside its ceiling. Colours
run from orange (below zero) over white to blue and can be told apart by everybody; a sign is never shown by colour
alone: cells have their number, or where they are too many those below zero a bar. Matplotlib's global settings are not
touched.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from circuitdb.errors import UsageError
from circuitdb.queries import canvas
from circuitdb.queries.containment import Containment
from circuitdb.queries.correlation import Correlation
from circuitdb.queries.crossing import Crossing
from circuitdb.queries.families import family_sweep
from circuitdb.queries.linkage import tree
from circuitdb.queries.result import Result
from circuitdb.queries.similarity import Similarity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")


def similarity(found: Similarity, *, corrected: bool = False, by_likeness: bool = False) -> Figure:
    """The similarity matrix as a heat map, with each circuit's reliability beside its row.

    In the order of the subtasks' parameters, or with `by_likeness` in that of the leaves of the complete-linkage tree.
    What two circuits can reach at most, plain, is the root of the product of their reliabilities.
    """
    values = found.values(corrected=corrected)
    order = tree(values, "complete").order() if by_likeness else list(range(len(values)))
    labels = [found.labels[i] for i in order]
    figure, (beside, axes) = canvas.blank(canvas.side(len(values)), 1, 2, width_ratios=[1, max(len(values), 4)])
    image = canvas.heat(axes, values[np.ix_(order, order)], canvas.limit(values), labels, labels)
    axes.set_yticks([])
    canvas.bar(figure, image, axes, _scale(found, found.on, corrected=corrected))
    canvas.greys(beside, found.reliabilities[order][:, None], labels, [])
    beside.set_xticks([0], ["reliability (black: 1)"], rotation=90, fontsize=canvas.SMALL)
    return figure


def between(found: Crossing, *, corrected: bool = False) -> Figure:
    """The similarity of two sets as a heat map, from `Database.between`, with reliabilities beside rows and columns."""
    values = found.corrected if corrected else found.matrix
    rows, columns = found.rows_of.labels, found.columns_of.labels
    figure, (beside, axes, corner, below) = canvas.blank(
        canvas.side(len(rows)) + 0.3, 2, 2, width_ratios=[1, max(len(columns), 4)], height_ratios=[max(len(rows), 4), 1]
    )
    image = canvas.heat(axes, values, canvas.limit(values), rows, columns)
    axes.set_xticks([])
    axes.set_yticks([])
    canvas.bar(figure, image, axes, _scale(found, found.rows_of.on, corrected=corrected))
    canvas.greys(beside, found.row_reliability.whole[:, None], rows, [])
    canvas.greys(below, found.column_reliability.whole[None, :], [], columns)
    corner.set_axis_off()
    said = corner.text(
        1, 0.5, "reliability\n(black: 1)", fontsize=canvas.SMALL, ha="right", va="center", transform=corner.transAxes
    )
    said.set_in_layout(False)  # it may reach under the names of the rows
    return figure


def families(found: Similarity, *, corrected: bool = False, every_pair: bool = False) -> Figure:
    """The number of families against alpha, as `Database.family_sweep` has it, above the bars of those that merge.

    A bar is a family: it is there for every alpha over the one at which it merges into another. With `every_pair` both
    are of classes in which every pair reaches alpha. The dotted line is the median ceiling of the similarities.
    """
    rows = family_sweep(found, corrected=corrected, every_pair=every_pair).rows()
    ceiling = np.nan if corrected else found.median_ceiling
    figure, (above, below) = canvas.blank(3.2, 2, 1, height_ratios=[3, 2], sharex=True)
    alphas = np.array([row["alpha"] for row in rows], np.float64)
    at = [int(str(row["n_families"])) for row in rows]
    more = [int(str(row["n_above"])) for row in rows]
    if rows:
        low, high = float(alphas[0]), max(1.0, float(alphas[-1]))
        low -= 0.05 * (high - low)
        above.step([low, *alphas, high], [at[0], *at, more[-1]], where="pre", color=canvas.BLUE, linewidth=1.2)
        merges = np.repeat(alphas, np.subtract(more, at))[::-1]
        below.hlines(
            np.arange(len(merges)), merges, high, color=canvas.BLUE, linewidth=max(0.4, min(2.0, 60 / len(merges)))
        )
        below.plot(merges, np.arange(len(merges)), "|", color="black", markersize=3)
        below.set_xlim(low, high)
    if not np.isnan(ceiling):
        for axes in (above, below):
            axes.axvline(ceiling, color=canvas.GREY, linestyle=":", linewidth=0.8)
    what = "classes" if every_pair else "families"
    of = f"{'corrected ' if corrected else ''}similarity of {found.on} scores ({_coefficient(found.short)})"
    dotted = "" if np.isnan(ceiling) else f"; dotted: its median ceiling, {canvas.number(ceiling)}"
    canvas.dress(above, ylabel=what)
    canvas.dress(below, xlabel=f"alpha: {of}{dotted}", ylabel=f"{what} that merge")
    below.set_yticks([])
    return figure


def containment(found: Containment) -> Figure:
    """The share of the row's edges that are in the column's circuit, as a heat map; below it what chance would give."""
    figure, (axes,) = canvas.blank(canvas.side(len(found.labels)), 1, 1)
    image = canvas.heat(axes, found.shares, 1.0, found.labels, found.labels, signed=False)
    by_chance = float(found.n.mean()) / max(found.n_edges, 1) if len(found.n) else 0.0
    canvas.bar(figure, image, axes, "share of the row's edges\nthat are in the column's")
    axes.set_xlabel(f"by chance: {by_chance:.2g}", fontsize=canvas.FONT)
    return figure


def accuracy(found: Correlation) -> Figure:
    """The metric against stability, or a circuit's mean similarity, from `Database.correlate`; a marker a group.

    A model's own ceiling is a bar, with a dotted line from its point; circuits of one group have that of their means.
    That of corrected similarities is 1.
    """
    rows = found.rows()
    shown = ["undefined" if row["rho"] is None else canvas.number(float(str(row["rho"]))) for row in rows]
    names = [canvas.wrapped(f"{row['of']}: rho {rho} (n = {row['n']})") for row, rho in zip(rows, shown, strict=True)]
    figure, (axes,) = canvas.blank(2.6 + 0.125 * sum(1 + name.count("\n") for name in names), 1, 1)
    for i, (points, row) in enumerate(zip(found.points, rows, strict=True)):
        turn, place = divmod(i, len(canvas.MARKERS))  # the markers of a second turn have other colours
        colour = canvas.COLOURS[(place + turn) % len(canvas.COLOURS)]
        ceilings = np.where(np.isnan(points.ceiling), np.nan, 1.0) if found.corrected else points.ceiling
        axes.plot(
            points.similarity, points.value, linestyle="none", marker=canvas.MARKERS[place], markersize=4, color=colour,
            label=names[i],
        )  # fmt: skip
        if len(points.labels) <= canvas.MOST_LABELS and len(found.points) == 1:
            for label, x, y in zip(points.labels, points.similarity, points.value, strict=True):
                if not np.isnan(x + y):  # it would be written at the edge
                    axes.annotate(
                        canvas.short(label, 24), (x, y), (2, 2), textcoords="offset points", fontsize=canvas.SMALL
                    )
        if found.over == "models":
            axes.hlines(points.value, points.similarity, ceilings, colour, ":", linewidth=0.8)
            axes.plot(ceilings, points.value, linestyle="none", marker="|", markersize=5, color=colour)
        elif row["mean_ceiling"] is not None:
            axes.axvline(
                1.0 if found.corrected else float(str(row["mean_ceiling"])), color=colour, linestyle=":", linewidth=0.8
            )
    what, bar = ("stability", "bar") if found.over == "models" else ("mean similarity to the others", "dotted")
    what = f"corrected {what}" if found.corrected else what
    canvas.dress(axes, xlabel=f"{what} ({found.short}, {found.on} scores; {bar}: its ceiling)", ylabel=found.metric)
    if found.points:
        figure.legend(fontsize=canvas.SMALL, frameon=False, loc="outside lower center")
    return figure


def circuit(found: Result) -> Figure:
    """One circuit as layers x heads, from `Database.node_scores`: the score of each head, and of the MLPs beside it."""
    rows = found.rows()
    layers = 1 + max((int(str(row["layer"])) for row in rows if row["layer"] is not None), default=0)
    heads = 1 + max((int(str(row["head"])) for row in rows if row["head"] is not None), default=0)
    values, mlps = np.full((layers, heads), np.nan), np.full((layers, 1), np.nan)
    for row in rows:
        if row["kind"] == "input" or row["score"] is None:
            continue
        target = mlps if row["kind"] == "mlp" else values
        target[int(str(row["layer"])), int(str(row["head"] or 0))] = float(str(row["score"]))
    figure, (left, right) = canvas.blank(max(1.8, min(6.0, 0.9 + 0.16 * layers)), 1, 2, width_ratios=[max(heads, 3), 1])
    names = [str(i) for i in range(layers)]
    for axes, cells, columns in ((left, values, [str(i) for i in range(heads)]), (right, mlps, ["MLP"])):
        limit = float(np.nanmax(np.abs(cells), initial=0.0)) or 1.0
        image = canvas.heat(axes, cells, limit, names, columns, numbers=False)
        axes.invert_yaxis()
        canvas.bar(figure, image, axes, "score (bar: below zero)" if axes is left else "")
    right.set_yticks([])
    left.set_xlabel("head", fontsize=canvas.FONT)
    left.set_ylabel("layer", fontsize=canvas.FONT)
    return figure


def render(figure: Figure, form: str, title: str) -> bytes:
    """The figure as a file of png (300 dots an inch), svg or pdf, with its title in the metadata. Raises UsageError."""
    if form not in FORMATS:
        raise UsageError(f"A figure is written as {', '.join(FORMATS)}, not {form or 'without an ending'}.")
    dates: dict[str, dict[str, None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    import matplotlib

    buffer = io.BytesIO()
    # Without a salt the ids in an SVG are random, so that no two files of one figure are the same.
    with matplotlib.rc_context({"svg.hashsalt": "circuitdb"}):
        figure.savefig(buffer, format=form, dpi=300, metadata={"Title": title, **dates.get(form, {})})
    return buffer.getvalue()


def _scale(found: Similarity | Crossing, on: str, *, corrected: bool) -> str:
    """What the colours of similarities are."""
    name = _coefficient(found.short)
    if corrected:
        name += ", corrected for attenuation"
    elif not np.isnan(found.median_ceiling):
        name += f"; median ceiling {canvas.number(found.median_ceiling)}"
    return f"similarity of {on} scores\n({name})"


def _coefficient(short: str) -> str:
    return "Spearman's rho" if short == "rho" else short
