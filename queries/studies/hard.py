"""Hard circuits of a study: which lies in which, and which edges and nodes are in all."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa

from circuitdb.queries import plots
from circuitdb.queries.columns import integers, texts
from circuitdb.queries.cuts import Cutting
from circuitdb.queries.database import Database
from circuitdb.queries.result import Result, count
from circuitdb.queries.studies.commands import command
from circuitdb.queries.studies.findings import Figure, Finding
from circuitdb.queries.studies.sentences import joined, listed, number, percent
from circuitdb.queries.studies.subjects import Subject

_TOP, _SMALL_SHARE = 200, 0.1  # edges, or of a small graph this share of them
_CONTAINED = 0.8  # of a circuit's edges, from which it is said to lie in another
_SHOWN, _FEW = 12, 5


def contained(db: Database, subject: Subject) -> Finding:
    """Which hard circuits lie in which, beside what chance would share?"""
    cut, options = _cut(subject, prune=True)
    found = db.containment(circuits=subject.selection.ids, **cut)
    if not np.median(found.n):  # few edges of most circuits are on a path: without pruning there is more to compare
        cut, options = _cut(subject, prune=False)
        found = db.containment(circuits=subject.selection.ids, **cut)
    found = replace(found, labels=subject.selection.labels)
    rows = found.table
    share = _doubles(rows, "share_of_a")
    expected = _doubles(rows, "expected_share")
    kept = ~np.isnan(share)
    labels_a, labels_b = rows["a"].to_pylist(), rows["b"].to_pylist()
    order = np.argsort(-np.where(kept, share, -1.0), kind="stable")[:_SHOWN]
    order = order[kept[order]]
    columns = ["a", "b", "n_a", "n_b", "shared", "share_of_a", "expected_share", "p_value"]
    if not kept.any():
        answer = "That can't be said: nothing is left of the circuits once they are cut."
    else:
        overall = f"On average {percent(float(share[kept].mean()))} of a circuit's edges are in another one's"
        overall += f", against {percent(float(expected[kept].mean()))} by chance."
        nearest = [f"{labels_a[i]} in {labels_b[i]} ({percent(float(share[i]))})" for i in order]
        if n_inside := int(np.count_nonzero(kept & (share >= _CONTAINED))):
            first = "" if n_inside <= _FEW else ", first of all"
            within = f"In {count(n_inside, 'case')} one lies for {percent(_CONTAINED)} or more in another{first}: "
            within += f"{listed(nearest[: min(n_inside, _FEW)])}."
        else:
            within = f"None lies for {percent(_CONTAINED)} or more in another; the nearest is {nearest[0]}."
        path = ", and of these to what is on a path from input to logits" if cut.get("prune") else ""
        how = f"Each circuit is cut to {_words(subject, cut)}{path}."
        answer = joined([how, overall, within])
    title = f"The {count(len(order), 'pair')} of which most is contained; share_of_a is the share of a's edges in b"
    figure = Figure(
        "containment",
        "Share of the row's edges that are in the column's circuit.",
        f"Heat map of {subject.n} by {subject.n} circuits; mean share "
        f"{percent(float(share[kept].mean())) if kept.any() else 'unknown'}.",
        lambda: plots.containment(found),
    )
    return Finding(
        "Which hard circuits lie within which?",
        answer,
        (Result(rows.select(columns).take(pa.array(order)), title),),
        (figure,),
        (
            _CHANCE,
            *(note for note in found.notes if note not in subject.similarity.notes),
        ),
        (_command(subject, "containment", *options),),
        subject.name,
    )


def core(db: Database, subject: Subject) -> Finding:
    """Which edges and nodes are in the hard circuits of all subtasks?"""
    cut, options = _cut(subject, prune=False)
    found = db.inclusion(circuits=subject.selection.ids, consensus=_CONTAINED, **cut)
    kinds = found.table["kind"].to_pylist()
    names = found.table["edge"].to_pylist()
    shared = [name for name, kind in zip(names, kinds, strict=True) if kind == "core"]
    nodes: dict[str, int] = {}
    for name in shared:
        source, _, target = name.partition("->")
        for node in (source, target.partition("<")[0]):
            nodes[node] = nodes.get(node, 0) + 1
    ranked = sorted(nodes, key=lambda node: (-nodes[node], node))
    table = pa.table({"node": texts(ranked), "n_core_edges": integers(nodes[node] for node in ranked)})
    n_all, n_most = len(shared), sum(kind in ("core", "consensus") for kind in kinds)
    n = subject.n
    sizes = db.containment(circuits=subject.selection.ids, **cut).n / subject.members[0].n_edges
    expected = subject.members[0].n_edges * float(sizes.prod())
    by_chance = number(expected) if expected >= 0.01 else "less than 0.01"
    answer = (
        f"With {_words(subject, cut)} in each circuit, {count(n_all, 'edge is', 'edges are')} in all {n} circuits "
        f"({by_chance} by chance), {n_most:,} in at least {percent(_CONTAINED)} of them, and {len(names):,} in any."
    )
    if ranked:
        answer += f" The core joins {count(len(ranked), 'node')}, most of all {listed(ranked, most=6)}."
    return Finding(
        "Which edges and nodes do all subtasks share?",
        answer,
        (Result(found.table.slice(0, n_most), f"Edges in at least {percent(_CONTAINED)} of the circuits"),
         Result(table, f"Nodes of the core: {count(len(ranked), 'node')}")),
        caveats=(_CHANCE,),
        commands=(_command(subject, "inclusion", *options, "--consensus", f"{_CONTAINED:g}"),),
        subject=subject.name,
    )  # fmt: skip


_CHANCE = (
    "Chance draws all edges alike, so what any two circuits of one model have in common counts as agreement here; "
    "overlap is no measure of faithfulness."
)


def _command(subject: Subject, words: str, *more: str) -> str:
    """What gives a table of hard circuits, which are cut by the scores as they are: there is no `--on`."""
    return command(words, subject.options, *more)


def _cut(subject: Subject, *, prune: bool) -> tuple[Cutting, tuple[str, ...]]:
    """How a circuit is cut, and the options for it."""
    n_edges = subject.members[0].n_edges
    pruned = ("--prune",) if prune else ()
    if n_edges * _SMALL_SHARE < _TOP:
        return {"share": _SMALL_SHARE, "prune": prune}, ("--share", f"{_SMALL_SHARE:g}", *pruned)
    return {"top": _TOP, "prune": prune}, ("--top", str(_TOP), *pruned)


def _words(subject: Subject, cut: Cutting) -> str:
    n_edges = subject.members[0].n_edges
    size = cut.get("top") or max(1, round(_SMALL_SHARE * n_edges))
    return f"the {size:,} strongest of {n_edges:,} edges"


def _doubles(table: pa.Table, name: str) -> np.ndarray:
    return np.array([math.nan if value is None else value for value in table[name].to_pylist()], np.float64)
