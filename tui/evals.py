"""What the Evals screen asks and says; free of Textual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from circuitdb.errors import UsageError
from circuitdb.queries.correlation import Correlation
from circuitdb.words import count, enumeration

if TYPE_CHECKING:
    from circuitdb.queries.database import Database

OURS = "circuitdb.accuracy"


@dataclass(frozen=True)
class Asked:
    """What is to be shown.

    Attributes:
        metric: SOURCE.METRIC; None for one from elsewhere if there is one, else our own accuracy.
        over: subtasks or models.
        corrected: whether similarities are divided by their ceilings.
        reading: how answers were read, '' for no such word; None for the only way there is, or the first.
    """

    metric: str | None = None
    over: str = "subtasks"
    corrected: bool = False
    reading: str | None = None


@dataclass(frozen=True)
class Told:
    """What the database answered.

    Attributes:
        asked: what it was asked, metric and reading filled in.
        metrics: all there are.
        readings: the ways in which answers were read for the metric.
        found: the correlation; None where it was refused, with the reason.
        refusal: the reason.
        unmatched: (source, kind, name) of names in added files that are taken for nothing of ours.
    """

    asked: Asked
    metrics: tuple[str, ...]
    readings: tuple[str, ...]
    found: Correlation | None
    refusal: str
    unmatched: tuple[tuple[str, str, str], ...]


def ask(db: Database, *, asked: Asked, circuits: Sequence[int]) -> Told:
    """Correlate, and see what did not match."""
    metrics = tuple(str(name) for name in db.metrics().table["name"].to_pylist())
    rows = db.evaluation_map().table.to_pylist()
    lost = tuple((r["source"], r["kind"], r["external"]) for r in rows if r["external"] and r["internal"] is None)
    theirs = [name for name in metrics if not name.startswith("circuitdb.")]
    metric = asked.metric if asked.metric in metrics else next(iter([*theirs, *metrics]), OURS)
    table = db.evaluations(circuits=circuits).table.select(["source", "metric", "filter"])
    own = {r["filter"] or "" for r in table.to_pylist() if f"{r['source']}.{r['metric']}" == metric}
    readings = tuple(sorted(own))
    reading = asked.reading if asked.reading in readings else next(iter(readings), None)
    full = replace(asked, metric=metric, reading=reading)
    found, refusal = None, ""
    try:
        found = db.correlate(
            metric, over=asked.over, corrected=asked.corrected, filter=reading if len(readings) > 1 else None,
            circuits=circuits,
        )  # fmt: skip
    except UsageError as error:
        refusal = str(error)
    return Told(full, metrics, readings, found, refusal, lost)


def heading(told: Told) -> str:
    """What is plotted, in a line."""
    asked = told.asked
    what = "mean similarity to the others" if asked.over == "subtasks" else "stability"
    what = f"corrected {what}" if asked.corrected else what
    reading = f" (read by {asked.reading or 'no filter'})" if len(told.readings) > 1 else ""
    return f"{asked.metric}{reading} against {what}, over {asked.over}"


def sentences(told: Told) -> list[str]:
    """What is said beside the plot: each correlation, what it must be taken with, what did not match."""
    lines: list[str] = []
    if told.found is None:
        lines.append(told.refusal)
    else:
        for sign, row in zip(signs(told.found), told.found.rows(), strict=True):
            lines += [f"{sign} {row['of']}", *_correlation(row), ""]
        lines += [f"- {note}" for note in told.found.notes]
    lines.append("")
    if told.unmatched:
        lines.append(f"{count(len(told.unmatched), 'name')} in added files matched nothing of ours:")
        kinds: dict[tuple[str, str], list[str]] = {}
        for source, kind, name in told.unmatched:
            kinds.setdefault((source, kind), []).append(name)
        for (source, kind), names in kinds.items():
            lines.append(f"{source}, {kind}s: {enumeration(names, most=40)}")
        source, kind, name = told.unmatched[0]
        lines.append(f"To say what one stands for: circuitdb evals map {source} --{kind} '{name}=OURS'")
    elif any(not name.startswith("circuitdb.") for name in told.metrics):
        lines.append("Every name in the added files matched one of ours.")
    else:
        lines.append("No evaluations were added yet: circuitdb evals add FILE --name NAME")
    return lines


def signs(found: Correlation) -> list[str]:
    """A letter for each group of points, with which they are plotted."""
    return [chr(ord("A") + i % 26) for i in range(len(found.points))]


def _correlation(row: dict[str, Any]) -> list[str]:
    n = f"{count(row['n'], 'point')}" + (f", {row['n_lacking']} without a value" if row["n_lacking"] else "")
    ceiling = "unknown" if row["mean_ceiling"] is None else f"{row['mean_ceiling']:.2f}"
    if row["rho"] is None:
        return [f"  no rank correlation, {n}", f"  mean ceiling of the similarities {ceiling}"]
    bounds = "no interval" if row["low"] is None else f"[{row['low']:.2f}, {row['high']:.2f}]"
    p = "" if row["p_value"] is None else f", p = {row['p_value']:.3g}"
    return [f"  rho = {row['rho']:.2f} {bounds}{p}", f"  {n}", f"  mean ceiling of the similarities {ceiling}"]
