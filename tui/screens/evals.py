"""Evals: does a skill that is applied alike go with being right? A metric against similarity; what did not match."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from circuitdb.tui import evals
from circuitdb.tui.dialogs import Choice
from circuitdb.tui.evals import Asked, Told
from circuitdb.tui.frame import ROOMY
from circuitdb.tui.screen import View
from circuitdb.tui.widgets.pages import Column, Pages
from circuitdb.tui.widgets.plot import Plot, Series

if TYPE_CHECKING:
    from circuitdb.queries.database import Database

_OTHERS = 74  # columns that the table takes beside the name of the group
_NUMBER = "{:.4f}".format


class Evals(View[Told]):
    """A plot of the points, what is to be said of it, and the points as a table."""

    MODE = "evals"
    CSS_PATH = "evals.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("m", "metric", "Metric", tooltip="Choose the metric"),
        Binding("v", "over", "Over", tooltip="The points are subtasks, or models by their stability"),
        Binding("c", "corrected", "Corrected", tooltip="Divide similarities by what the noise of the circuits allows"),
        Binding("f", "reading", "Reading", tooltip="The next way of reading the answers, where there are several"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.asked = Asked()

    def content(self) -> ComposeResult:
        """Heading, plot, sentences, points."""
        yield Static(id="heading", markup=False)
        with Horizontal(id="plotted"):
            yield Plot()
            with VerticalScroll(id="said"):
                yield Static(id="sentences", markup=False)
        yield Pages(id="points")

    def depends_on(self) -> Hashable:
        """The circuits, what is asked of them, and how many evaluations there are."""
        extent = self.browser.extent
        return (self.selection.circuits, self.asked, extent and extent.evaluations)

    def question(self) -> Callable[[Database], Told] | None:
        """Nothing of no circuits."""
        circuits = self.selection.circuits
        return partial(evals.ask, asked=self.asked, circuits=circuits) if circuits else None

    def show(self, answer: Told) -> None:
        """Draw the points, say the rest."""
        found = answer.found
        self.query_one("#heading", Static).update(Content(evals.heading(answer)))
        self.query_one("#sentences", Static).update(Content("\n".join(evals.sentences(answer))))
        series = []
        if found is not None:
            for sign, points in zip(evals.signs(found), found.points, strict=True):
                series.append(Series(points.similarity, points.value, kind="points", sign=sign))
        what = "stability" if answer.asked.over == "models" else "mean similarity"
        self.query_one(Plot).draw(series, x=f"corrected {what}" if answer.asked.corrected else what, y=_last(answer))
        table = self._points(answer)

        async def fetch(offset: int, limit: int) -> pa.Table:
            return table.slice(offset, limit)

        several = found is not None and len(found.points) > 1
        columns = [
            *([Column("sign", "", 1)] if several else []),
            *([Column("of", "of", min(60, self.size.width - _OTHERS))] if several and self.size.width >= ROOMY else []),
            Column("label", "model" if answer.asked.over == "models" else "subtask", 24),
            Column("similarity", what, 15, right=True, form=_NUMBER),
            Column("ceiling", "ceiling", 8, right=True, form=_NUMBER),
            Column("value", _last(answer), 10, right=True, form=_NUMBER),
        ]
        self.query_one(Pages).show(columns, table.num_rows, fetch)

    def text(self) -> str:
        """The points, with the correlations above them."""
        if self.answer is None or self.answer.found is None:
            return ""
        table = self.answer.found.long().table
        rows = ["\t".join("" if v is None else str(v) for v in row.values()) for row in table.to_pylist()]
        said = [f"# {line}" for line in (evals.heading(self.answer), *evals.sentences(self.answer)) if line]
        return "\n".join([*said, "\t".join(table.column_names), *rows])

    def action_metric(self) -> None:
        """Choose the metric."""
        metrics = self.answer.metrics if self.answer is not None else ()

        def answered(place: int | None) -> None:
            if place is not None:
                self._change(replace(self.asked, metric=metrics[place], reading=None))

        if metrics:
            self.app.push_screen(Choice("Metric", metrics), answered)

    def action_over(self) -> None:
        """Subtasks or models."""
        self._change(replace(self.asked, over="models" if self.asked.over == "subtasks" else "subtasks"))

    def action_corrected(self) -> None:
        """Corrected or plain."""
        self._change(replace(self.asked, corrected=not self.asked.corrected))

    def action_reading(self) -> None:
        """The next reading."""
        if self.answer is None or len(self.answer.readings) < 2:
            self.notify("The answers were read in one way alone.")
            return
        readings = self.answer.readings
        here = readings.index(self.answer.asked.reading or "")
        self._change(replace(self.asked, reading=readings[(here + 1) % len(readings)]))

    def _change(self, asked: Asked) -> None:
        self.asked = asked
        self.renew()

    def _points(self, answer: Told) -> pa.Table:
        if answer.found is None:
            return pa.table({name: pa.array([], pa.string()) for name in ("sign", "of", "label", "similarity")})
        table = answer.found.long().table
        letters = [
            sign
            for sign, points in zip(evals.signs(answer.found), answer.found.points, strict=True)
            for _ in points.labels
        ]
        return table.append_column("sign", pa.array(letters, pa.string()))


def _last(answer: Told) -> str:
    """The metric without its source."""
    return str(answer.asked.metric).partition(".")[2]
