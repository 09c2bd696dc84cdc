"""How many families at which alpha, and which digit counts go together?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from circuitdb.queries import plots, studyplots
from circuitdb.queries.barcode import SHARE, band, barcode
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.families import Family, components, family_sweep, merges, useful_alpha
from circuitdb.queries.pairing import Matrix
from circuitdb.queries.result import Result, count, enumeration
from circuitdb.queries.studies.digits import Cell, described, lettered, on_grid
from circuitdb.queries.studies.findings import Figure, Finding
from circuitdb.queries.studies.sentences import joined, listed, number
from circuitdb.queries.studies.subjects import Subject

PAPER_ALPHAS = (0.6, 0.4)
_PAPER_COUNTS = " (the paper has 5 and 1, of 64 circuits of Gemma-2-2B)"
_PAPER_BAND = " (in the paper 0.58 to 0.79)"


def how_many(subject: Subject) -> Finding:
    """How many families are there at which alpha?"""
    found = subject.similarity
    sentences = [subject.warning, _count_sentence(found.matrix, "")]
    tables = [family_sweep(found), barcode(found)]
    figures = [_curve(subject, corrected=False)]
    commands = ["families --sweep", "families --barcode"]
    if not np.isnan(found.corrected[np.triu_indices(subject.n, 1)]).all():
        sentences.append(_count_sentence(found.corrected, "Corrected for noise"))
        tables.append(family_sweep(found, corrected=True))
        figures.append(_curve(subject, corrected=True))
        commands.append("families --sweep --corrected")
    rising = "As alpha rises families can only part, so their number never falls."
    return Finding(
        "How many families of circuits are there, at which alpha?",
        joined([*sentences, rising]),
        tuple(Result(table.table, table.title) for table in tables),
        tuple(figures),
        tuple(dict.fromkeys(note for note in found.notes_on_alpha(corrected=False) if "alpha" in note)),
        tuple(subject.command(words) for words in commands),
        subject.name,
    )


def together(subject: Subject, cells: Sequence[Cell]) -> Finding:
    """Which digit counts go together, at the paper's alphas and at the one that tells most apart?"""
    found = subject.similarity
    known = not np.isnan(found.corrected[np.triu_indices(subject.n, 1)]).all()
    wanted: list[tuple[float, bool]] = [(alpha, False) for alpha in PAPER_ALPHAS]
    wanted += [(alpha, True) for alpha in PAPER_ALPHAS] if known else []
    sentences, tables, commands = [subject.warning], [], []
    drawn: dict[tuple[tuple[int, ...], ...], Figure] = {}  # by the families: several alphas may have the same
    for alpha, corrected in wanted:
        values = found.values(corrected=corrected)
        families = components(values, alpha)
        sentences.append(_together_sentence(families, cells, alpha, corrected=corrected))
        how = ", corrected for noise" if corrected else ""
        tables.append(_table(subject, families, cells, f"Families at alpha = {alpha:g}{how}"))
        drawn.setdefault(tuple(family.rows for family in families), _map(families, cells, alpha, corrected=corrected))
        more = ("--corrected",) if corrected else ()
        commands.append(subject.command("families", "--alpha", f"{alpha:g}", *more))
    level, why = useful_alpha(found.matrix)
    if len(families_there := components(found.matrix, level)) not in (1, subject.n):
        sentences.append(
            f"The circuits of this model part most clearly at alpha = {number(level)}, {why}: "
            f"{_named(families_there, cells)}."
        )
        tables.append(_table(subject, families_there, cells, f"Families at alpha = {level:.4g}"))
        drawn.setdefault(tuple(f.rows for f in families_there), _map(families_there, cells, level, corrected=False))
        commands.append(subject.command("families"))
    return Finding(
        "Which digit counts go together?",
        joined(sentences),
        tuple(tables),
        tuple(drawn.values()),
        _chained([components(found.values(corrected=corrected), alpha) for alpha, corrected in wanted], wanted),
        tuple(commands),
        subject.name,
    )


def _count_sentence(values: Matrix, how: str) -> str:
    heights = merges(values)
    n = len(values)
    if not len(heights):
        return f"{how or 'As they are'} no two circuits can be joined at any alpha."
    at = [len(components(values, alpha)) for alpha in PAPER_ALPHAS]
    low, high = band(heights) or (math.nan, math.nan)
    within = int(np.count_nonzero((heights >= low) & (heights <= high)))
    first, paper, span = f"Of {count(n, 'circuit')}", _PAPER_COUNTS, _PAPER_BAND
    if how:
        first, paper, span = how, "", ""
    return (
        f"{first} there are {count(at[0], 'family', 'families')} at alpha = {PAPER_ALPHAS[0]:g} and {at[1]} at "
        f"{PAPER_ALPHAS[1]:g}{paper}. They are joined as far as they can be at alpha = {number(float(heights[0]))}, "
        f"and all apart above {number(float(heights[-1]))}; {SHARE:.0%} of the families, {within} of "
        f"{len(heights)} that part off, appear between alpha = {number(low)} and {number(high)}{span}."
    )


def _curve(subject: Subject, *, corrected: bool) -> Figure:
    how = ", corrected for noise" if corrected else ""
    n = subject.n
    heights = merges(subject.similarity.values(corrected=corrected))
    ends = f" between alpha = {number(float(heights[0]))} and {number(float(heights[-1]))}" if len(heights) else ""
    return Figure(
        f"families{'-corrected' if corrected else ''}",
        f"Number of families against alpha{how}, above the barcode: a bar is a family, up from the alpha at which it "
        "joins another.",
        f"A staircase that rises to {n} families{ends}, and one bar for each join.",
        lambda: plots.families(subject.similarity, corrected=corrected),
    )


def _together_sentence(families: Sequence[Family], cells: Sequence[Cell], alpha: float, *, corrected: bool) -> str:
    how = ", corrected for noise," if corrected else ""
    if len(families) == len(cells):
        return f"At alpha = {alpha:g}{how} all {len(cells)} are apart."
    if len(families) == 1:
        return f"At alpha = {alpha:g}{how} all {len(cells)} are of one family."
    return f"At alpha = {alpha:g}{how} there are {len(families)} families: {_named(families, cells)}."


def _named(families: Sequence[Family], cells: Sequence[Cell]) -> str:
    """The families of several members in words, and how many are alone."""
    several = [family for family in families if len(family.rows) > 1]
    names = [
        f"{family.name}, {described([cells[i] for i in family.rows], cells)} ("
        f"{listed((_pair(cells[i]) for i in family.rows), most=6)})"
        for family in several[:8]
    ]
    more = [f"{len(several) - 8} more of several subtasks"] if len(several) > 8 else []
    alone = len(families) - len(several)
    return "; ".join([*names, *more, *([f"{alone} {'is' if alone == 1 else 'are'} alone"] if alone else [])])


def _table(subject: Subject, families: Sequence[Family], cells: Sequence[Cell], title: str) -> Result:
    found = subject.similarity
    medians = [_median(found.reliabilities[list(family.rows)]) for family in families]
    table = pa.table(
        {
            "family": texts(family.name for family in families),
            "size": integers(len(family.rows) for family in families),
            "what": texts(described([cells[i] for i in family.rows], cells) for family in families),
            "members": texts(enumeration((found.labels[i] for i in family.rows), most=64) for family in families),
            "lowest_within": numbers(np.array([family.lowest for family in families], np.float64)),
            "median_reliability": numbers(np.array(medians, np.float64)),
        }
    )
    return Result(table, f"{title}: {count(len(families), 'family', 'families')} of {count(subject.n, 'circuit')}")


def _map(families: Sequence[Family], cells: Sequence[Cell], alpha: float, *, corrected: bool) -> Figure:
    how = ", corrected for noise" if corrected else ""
    rows, columns = on_grid(cells)
    return Figure(
        f"family-map-{alpha:.3f}{'-corrected' if corrected else ''}".replace(".", "-"),
        f"The family of each subtask at alpha = {alpha:.2g}{how}: a letter each, the largest first, and a colour where "
        "it has several.",
        f"Grid of {len(rows)} by {len(columns)} digit counts in {count(len(families), 'family', 'families')}.",
        lambda: studyplots.family_map(
            lettered(cells, families), rows, columns, ("digits of the first operand", "digits of the second operand")
        ),
    )


def _chained(found: Sequence[Sequence[Family]], wanted: Sequence[tuple[float, bool]]) -> tuple[str, ...]:
    said = []
    for families, (alpha, corrected) in zip(found, wanted, strict=True):
        chained = [family.name for family in families if family.lowest < alpha]
        if chained:
            how = ", corrected" if corrected else ""
            word = "family" if len(chained) == 1 else "families"
            said.append(
                f"At alpha = {alpha:g}{how} {word} {listed(chained)} hold together by a chain: two members are less "
                "similar than alpha (lowest_within), since alpha-equivalence is not transitive."
            )
    return tuple(said)


def _median(values: Matrix) -> float:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if known.size else math.nan


def _pair(cell: Cell) -> str:
    return f"({cell[0]}, {cell[1]})"
