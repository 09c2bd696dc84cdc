"""What the file knows of a circuit beside its scores: how it was made, how reliable it is, how faithful when cut."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from circuitdb.queries.softcircuit import SoftCircuit
from circuitdb.tui.panels.panel import Panel
from circuitdb.tui.widgets.plot import Plot, Series

if TYPE_CHECKING:
    from circuitdb.queries.database import Database, Shown
    from circuitdb.queries.faithfulness import Faithfulness


class RecordPanel(Panel):
    """Everything that is stored of the run, a line each, below how reliable it is."""

    found: Shown | None = None

    def compose(self) -> ComposeResult:
        """A scrolling text."""
        with VerticalScroll():
            yield Static(id="facts")

    def draw(self, circuit: SoftCircuit) -> None:
        """Ask for the record."""
        self.found = None
        facts = self.query_one("#facts", Static)
        facts.update("Reading ...")
        self.frame.ask(
            partial(_record, circuit=circuit.circuit_id),
            self._answered,
            group="record",
            otherwise=lambda told: facts.update(Content(told)),
        )

    def text(self) -> str:
        """Name and value of each line."""
        return "" if self.found is None else "\n".join(f"{name}\t{value}" for name, value in facts(self.found))

    def _answered(self, answer: Shown) -> None:
        self.found = answer
        rows = facts(answer)
        width = max(len(name) for name, _ in rows)
        lines = [Content.assemble((f"{name:<{width}}  ", "bold"), value) for name, value in rows]
        lines += [Content(f"\n{note}") for note in answer.reliability.notes]
        self.query_one("#facts", Static).update(Content("\n").join(lines))


class CurvePanel(Panel):
    """Faithfulness over the size of the cut, on the circuit's own examples."""

    found: Faithfulness | None = None

    def compose(self) -> ComposeResult:
        """Curve, and the runs in numbers."""
        yield Plot(id="faithfulness")
        with VerticalScroll(id="runs"):
            yield Static(id="runs-text")

    def draw(self, circuit: SoftCircuit) -> None:
        """Ask for the runs."""
        self.found = None
        self.query_one(Plot).display = False
        text = self.query_one("#runs-text", Static)
        text.update("Reading ...")
        self.frame.ask(
            partial(_runs, circuit=circuit.circuit_id),
            self._answered,
            group="curve",
            otherwise=lambda told: text.update(Content(told)),
        )

    def text(self) -> str:
        """The runs."""
        return (
            "" if self.found is None or not len(self.found) else "\n".join("\t".join(row) for row in runs(self.found))
        )

    def _answered(self, answer: Faithfulness) -> None:
        self.found = answer
        text, plot = self.query_one("#runs-text", Static), self.query_one(Plot)
        plot.display = len(answer) > 0
        if not len(answer):
            text.update(Content("Its cut circuits were not run yet: `circuitdb faithfulness --load MODEL` does it."))
            return
        curves: dict[str, tuple[list[float], list[float]]] = {}
        for row in answer.arrow().to_pylist():
            if row["faithfulness"] is not None and row["share"] > 0:
                xs, ys = curves.setdefault(row["selection"], ([], []))
                xs.append(row["share"])
                ys.append(row["faithfulness"])
        series = [Series(xs, ys, name, "points") for name, (xs, ys) in curves.items()]
        plot.draw(series, title="Faithfulness of the cut circuit", x="share of the edges", y="")
        rows = runs(answer)
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        text.update(Content("\n".join([*lines, *answer.notes])))


def facts(shown: Shown) -> list[tuple[str, str]]:
    """(name, value) of all that is known: reliability first, then the record, nothing where it is not known."""
    found = []
    for row in shown.reliability.rows():
        value, reason = row["reliability"], row.get("reason")
        told = f"{value:.3f}" if isinstance(value, float) else str(reason or "unknown")
        found.append((f"reliability, {row['on']}", told))
    record = shown.provenance.arrow()
    found += [(name, str(record[name][0])) for name in record.column_names if record[name][0].is_valid]
    return [*found, ("left out", shown.skipped.title)]


def runs(found: Faithfulness) -> list[list[str]]:
    """A head, then a row a run."""
    rows = [["edges", "share", "chosen by", "faithfulness"]]
    for row in found.arrow().to_pylist():
        value = row["faithfulness"]
        told = row["reason"] or "unknown" if value is None else f"{value:.3f}"
        rows.append([f"{row['n_edges']:,}", f"{row['share']:g}", row["selection"], told])
    return rows


def _record(db: Database, *, circuit: int) -> Shown:
    return db.show(circuit, edges=1)


def _runs(db: Database, *, circuit: int) -> Faithfulness:
    return db.faithfulness(circuits=circuit)
