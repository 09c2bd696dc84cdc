"""The arithmetic study of Sun (2025): circuits of two-number arithmetic by the operands' digit counts (a, b).

Commutativity: is (a, b) like (b, a)? Associativity, as the paper reads it: are neighbours of the grid, such as (6, 6)
and (6, 7), of one family?
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np
import pyarrow as pa

from circuitdb.queries import correlation, plots, studyplots
from circuitdb.queries.columns import flags, integers, numbers, texts
from circuitdb.queries.database import Database
from circuitdb.queries.filters import Where
from circuitdb.queries.generalisation import adjacent
from circuitdb.queries.mantel import mantel
from circuitdb.queries.metrics import Values
from circuitdb.queries.pairing import Matrix
from circuitdb.queries.result import Result, count
from circuitdb.queries.selection import Member
from circuitdb.queries.studies import families, hard, operands, quality, report_of, training
from circuitdb.queries.studies.digits import A, B, Cell, cell, distances, is_cell, joined_at, laid_out, on_grid
from circuitdb.queries.studies.findings import Figure, Finding, Findings
from circuitdb.queries.studies.sentences import interval, joined, number, p_value, percent
from circuitdb.queries.studies.subjects import Subject, by_group, chosen, subjects

_AXES = ("digits of the first operand", "digits of the second operand")
_ALPHA = 0.6  # the paper's, for neighbours


def findings(db: Database, *, on: str = "signed", **where: Unpack[Where]) -> Findings:
    """What the circuits of two-number arithmetic say of a model, one set of findings a model, operator and scoring.

    `on` is signed or magnitude, as in `Database.similarity`; the filters are those of all questions. Raises UsageError
    where there are circuits, but none of subtasks that are two digit counts (`digits_a`, `digits_b`).
    """
    selection, everything = chosen(db, where, is_cell, "two-number arithmetic by digit counts (addition, arithmetic)")
    parts = by_group(selection, _operator)
    found = [one for subject in subjects(db, parts, everything, on=on) for one in _findings(db, subject)]
    found += training.across(db, selection, everything, on=on)
    title = "Arithmetic: does the model use one circuit for numbers of all lengths?"
    return report_of.assembled(db, "arithmetic", title, found, selection, _KEY)


_KEY = (
    "How often is the model right?",
    "Are the circuits measured well enough to be compared?",
    "Which digit counts go together?",
    "Is (a, b) computed by the circuit of (b, a)?",
)  # of which the summary has the first sentences


def _operator(member: Member) -> str:
    return str(member.parameters.get("operator", ""))


def _findings(db: Database, subject: Subject) -> list[Finding]:
    cells = [cell(member) for member in subject.members]
    first = [quality.accuracy(subject, _accuracy_figure(subject, cells)), quality.reliability(subject)]
    if subject.n < 2:
        return [*first, report_of.nothing_to_compare(subject)]
    mirrored = operands.Mirrored.of(subject)
    return [
        *first,
        quality.alike(subject),
        families.how_many(subject),
        families.together(subject, cells),
        operands.commutativity(subject, mirrored),
        operands.gaps(subject, mirrored),
        _neighbours(subject),
        _distance(subject, cells),
        _stability_and_accuracy(subject),
        hard.contained(db, subject),
        hard.core(db, subject),
    ]


def _accuracy_figure(subject: Subject, cells: Sequence[Cell]) -> tuple[Figure, ...]:
    rows, columns = on_grid(cells)
    values = laid_out(cells, subject.accuracies.value)
    return (
        Figure(
            "accuracy",
            "Accuracy by the digits of the two operands.",
            f"Heat map of {len(rows)} by {len(columns)} digit counts with the percent of right answers.",
            lambda: studyplots.grid(values, rows, columns, _AXES, "share of right answers"),
        ),
    )


def _neighbours(subject: Subject) -> Finding:
    """Associativity: do neighbours of the grid part?"""
    question = "Are neighbours, such as (2, 2) and (2, 3), computed by one circuit?"
    found = subject.similarity
    pairs = [(i, j) for i, j, _ in adjacent(subject.selection, (A, B))]
    if not pairs:
        return Finding(question, "That can't be said: no two subtasks are one digit apart.", subject=subject.name)
    first, second = np.array(pairs).T
    apart, corrected = (joined_at(values)[first, second] for values in (found.matrix, found.corrected))
    n_apart = int(np.count_nonzero(~(apart >= _ALPHA)))
    n_corrected, told = int(np.count_nonzero(corrected < _ALPHA)), int(np.count_nonzero(~np.isnan(corrected)))
    even = np.array([a == b for a, b in map(cell, subject.members)], bool)
    equal = even[first] | even[second]
    own, others = found.matrix[first, second], _others(found.matrix, pairs)
    said = f"At alpha = {_ALPHA:g} {n_apart} of {count(len(pairs), 'pair')} of neighbours are in different families"
    if not np.isnan(found.corrected[first, second]).all():
        said += f", corrected for noise {n_corrected}"
        if told < len(pairs):  # where noise allows no similarity at all, neither can be told
            said += f" of the {told} that can be told"
    said += (
        f"; of those with equal digit counts on one side, {int((~(apart >= _ALPHA))[equal].sum())} of {equal.sum()}."
    )
    beside = f" against {number(float(np.mean(others)))} of all other pairs" if len(others) else ""
    means = "" if np.isnan(own).all() else f"Their mean similarity is {number(float(np.nanmean(own)))}{beside}."
    table = pa.table(
        {
            "first": texts(found.labels[i] for i in first),
            "second": texts(found.labels[j] for j in second),
            "similarity": numbers(own),
            "ceiling": numbers(found.ceiling[first, second]),
            "corrected": numbers(found.corrected[first, second]),
            "one_family_up_to": numbers(apart),
            "one_family": flags((apart >= _ALPHA).tolist()),
        }
    )
    return Finding(
        question,
        joined([subject.warning, said, means]),
        (Result(table, f"Neighbours on the grid: {count(len(pairs), 'pair')}; one_family at alpha = {_ALPHA:g}"),),
        caveats=quality.parted(subject),
        commands=(subject.command("neighbours", "--parameter", A, "--parameter", B),),
        subject=subject.name,
    )


def _distance(subject: Subject, cells: Sequence[Cell]) -> Finding:
    """Does similarity fall with distance on the grid?"""
    far, found = distances(cells), subject.similarity
    upper = np.triu_indices(subject.n, 1)
    plain, corrected = mantel(found.matrix, far), mantel(found.corrected, far)
    question = "Are circuits less alike the further apart their digit counts are?"
    if np.isnan(plain.rho):
        said = "That can't be said: it takes three subtasks with similarities and distances that differ."
    else:
        fall = "falls" if plain.rho < 0 else "rises"
        less = plain.p < 0.05
        said = (
            f"{'Yes' if less and plain.rho < 0 else 'No' if less else 'Not that can be told'}: similarity {fall} with "
        )
        said += f"distance by a rank correlation of {number(plain.rho)} over {count(plain.n, 'circuit')} "
        said += f"({p_value(plain.p)}, by permuting the circuits)."
        if not np.isnan(corrected.rho):
            said += f" Corrected for noise it is {number(corrected.rho)} ({p_value(corrected.p)})."
    steps = np.unique(far[upper])
    own, noise = found.matrix[upper], found.ceiling[upper]
    table = pa.table(
        {
            "distance": integers(int(step) for step in steps),
            "n_pairs": integers(int(np.count_nonzero(far[upper] == step)) for step in steps),
            "mean_similarity": numbers(np.array([_mean(own[far[upper] == step]) for step in steps])),
            "mean_ceiling": numbers(np.array([_mean(noise[far[upper] == step]) for step in steps])),
        }
    )
    figure = Figure(
        "distance",
        "Similarity of every two circuits against the distance of their digit counts, |a - a'| + |b - b'|.",
        f"{count(len(own), 'dot')}; the mean at each distance is a line; rank correlation {number(plain.rho)}.",
        lambda: studyplots.by_distance(far[upper], own, "similarity"),
    )
    return Finding(
        question,
        joined([subject.warning, said]),
        (Result(table, "Mean similarity by distance on the grid"),),
        (figure,),
        commands=(subject.command("similarity", "--long"),),
        subject=subject.name,
    )


def _stability_and_accuracy(subject: Subject) -> Finding:
    """Does being alike go with being right?"""
    question = "Is the model more often right where its circuit is like the others?"
    value = {m.circuit_id: float(v) for m, v in zip(subject.members, subject.accuracies.value, strict=True)}
    known = {circuit: share for circuit, share in value.items() if not np.isnan(share)}
    compared = [(subject.members[0].group, subject.selection, subject.similarity)]
    points = correlation.of_subtasks(compared, Values(known, {}))
    found = correlation.correlation(points, over="subtasks", metric="circuitdb.accuracy", on=subject.on)
    (row,) = found.rows()
    if row["rho"] is None:
        why = "no accuracy is stored" if not known else "similarities or accuracies do not differ, or are too few"
        return Finding(question, f"That can't be said: {why}.", subject=subject.name)
    rho, p = float(str(row["rho"])), float(str(row["p_value"]))
    low, high = (np.nan if row[name] is None else float(str(row[name])) for name in ("low", "high"))
    verdict = ("Yes" if rho > 0 else "The other way round") if p < 0.05 else "Not that can be told"
    said = f"{verdict}: the rank correlation of a circuit's mean similarity to the others with the accuracy is "
    said += f"{number(rho)}{interval(low, high)}, {p_value(p)}, over {count(int(str(row['n'])), 'subtask')}."
    figure = Figure(
        "stability-and-accuracy",
        "Accuracy against the mean similarity of a circuit to the others; dotted: its ceiling.",
        f"{row['n']} dots, one a subtask; rank correlation {number(rho)}.",
        lambda: plots.accuracy(found),
    )
    caveats = (*found.notes, *quality.parted(subject))
    if row["mean_ceiling"] is not None:
        caveats += (
            f"A circuit that is measured worse is less like the others for that alone (mean ceiling "
            f"{number(float(str(row['mean_ceiling'])))}).",
        )
    spread = subject.accuracies.value[subject.accuracies.known]
    if spread.max() - spread.min() < 0.1:
        caveats += (f"Accuracies differ by {percent(float(spread.max() - spread.min()))} only.",)
    return Finding(
        question,
        joined([subject.warning, said]),
        (Result(found.long().table, f"{found.title}: points"),),
        (figure,),
        caveats,
        (subject.command("correlate", "--with", "circuitdb.accuracy"),),
        subject.name,
    )


def _others(values: Matrix, pairs: Sequence[tuple[int, int]]) -> Matrix:
    """The similarities of all pairs but these."""
    rest = np.triu(np.ones(values.shape, bool), 1)
    for i, j in pairs:
        rest[min(i, j), max(i, j)] = False
    found: Matrix = values[rest & ~np.isnan(values)]
    return found


def _mean(values: Matrix) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
