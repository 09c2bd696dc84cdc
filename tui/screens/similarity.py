"""The similarity of the chosen circuits as a heat map, their families at alpha, and how these change with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from circuitdb.queries.coefficients import NAMES
from circuitdb.queries.families import Family
from circuitdb.queries.pairing import Matrix
from circuitdb.tui import likeness
from circuitdb.tui.frame import LEAST, ROOMY
from circuitdb.tui.likeness import CHOICES, ORDERS, How, Likeness, Linked
from circuitdb.tui.screen import View
from circuitdb.tui.summary import hundredths
from circuitdb.tui.widgets import shades
from circuitdb.tui.widgets.barcode import Barcode, Line
from circuitdb.tui.widgets.choices import Choices
from circuitdb.tui.widgets.heatmap import LABEL, Heatmap, fitted, plain
from circuitdb.tui.widgets.plot import Plot, Series
from circuitdb.tui.widgets.slider import Slider
from circuitdb.words import count, enumeration

if TYPE_CHECKING:
    from circuitdb.queries.database import Database

_STEP, _FINE = 0.05, 0.01  # of alpha: by its keys, by the slider
_LISTED = 20  # families, in words
_TALL = 22  # lines from which there is room for curve and bars
_NARROW_LABEL = 14  # columns for family and name where there are fewer than ROOMY in all
_LONG_LABELS = 34  # lines from which the columns have the names of their circuits


class Similarity(View[Likeness]):
    """The heat map with a cursor, what is under it at the right, alpha below, then the curve and the barcode.

    Attributes:
        how: what is asked for.
        corrected: whether the map and the families are of corrected similarities, where there are such.
        every_pair: whether families are classes in which every pair reaches alpha.
        order: of the circuits, one of `ORDERS`.
    """

    MODE = "similarity"
    CSS_PATH = "similarity.tcss"
    VERTICAL_BREAKPOINTS = [(0, "-low"), (LEAST[1], "-high"), (_TALL, "-tall")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "correct", "Corrected", show=False, tooltip="Plain similarities, or those corrected for noise"),
        Binding("k", "next('kind',1)", "Coefficient", show=False, tooltip="The next coefficient"),
        Binding("K", "next('kind',-1)", "Coefficient back", show=False, tooltip="The coefficient before"),
        Binding("m", "next('on',1)", "Magnitude", show=False, tooltip="Signed scores, or their magnitudes"),
        Binding("v", "next('level',1)", "Nodes", show=False, tooltip="Compare edge by edge, or node by node"),
        Binding("o", "order", "Order", show=False, tooltip="Order by parameters, dendrogram or families"),
        Binding("l", "link", "Classes", show=False, tooltip="Families by a chain, or classes in which every pair is"),
        Binding("left_square_bracket", "alpha(-1)", "Alpha down", show=False, key_display="[", tooltip="Lower alpha"),
        Binding("right_square_bracket", "alpha(1)", "Alpha up", show=False, key_display="]", tooltip="Raise alpha"),
        Binding(
            "left_curly_bracket", "jump(-1)", "Joins", show=False, key_display="{",
            tooltip="Lower alpha to where families join next",
        ),
        Binding(
            "right_curly_bracket", "jump(1)", "Parts", show=False, key_display="}",
            tooltip="Raise alpha to where a family parts next",
        ),
        Binding(
            "backslash", "alpha(0)", "Useful alpha", show=False, key_display="\\",
            tooltip="Let alpha be chosen by the similarities",
        ),
    ]  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.how = How()
        self.corrected = self.every_pair = False
        self.order = ORDERS[0]
        self._rows: list[int] = []
        self._families: list[Family] = []
        self._pair: tuple[int, int] | None = None
        self._drawn: Hashable = None
        self._told = Content()

    def content(self) -> ComposeResult:
        """Choices, map and cell, slider, curve and bars."""
        yield Choices(id="asked")
        with Horizontal():
            yield Heatmap(id="map")
            with VerticalScroll(id="beside"):
                yield Static(id="cell")
        yield Slider("alpha", -1.0, 1.0, _FINE, id="alpha")
        with Horizontal(id="beneath"):
            yield Plot(id="curve")
            yield Barcode(id="bars")

    def on_mount(self) -> None:
        """Colours of families follow the theme."""
        super().on_mount()
        self.app.theme_changed_signal.subscribe(self, lambda _: self._draw())

    def question(self) -> Callable[[Database], Likeness] | None:
        """The similarity of two circuits or more."""
        chosen = self.selection.circuits
        return partial(likeness.ask, circuits=chosen, how=self.how) if len(chosen) > 1 else None

    def depends_on(self) -> Hashable:
        """The circuits, and how they are compared."""
        return self.selection.circuits, self.how

    def remark(self) -> tuple[str, str] | None:
        """One circuit is no set."""
        if len(self.selection.circuits) == 1:
            return "One circuit is chosen", "Two or more can be compared: press 1, and space on another one."
        return super().remark()

    def renew(self) -> None:
        """Follow alpha too."""
        super().renew()
        if self.is_current and self.answer is not None and self._state() != self._drawn:
            self._draw()

    def show(self, answer: Likeness) -> None:
        """Draw the answer."""
        self._draw()

    def text(self) -> str:
        """The matrix as it is shown: family, circuit, reliability, then a column a circuit."""
        if self.answer is None:
            return ""
        found = self.answer.found
        names = self._names()
        lines = ["\t".join(["family", "circuit", "reliability", *(plain(found.labels[row]) for row in self._rows)])]
        for row in self._rows:
            values = [found.reliabilities[row], *self._linked.values[row, self._rows]]
            lines.append("\t".join([names[row], plain(found.labels[row]), *map(_digits, values)]))
        return "\n".join(lines)

    @property
    def is_corrected(self) -> bool:
        """Whether corrected similarities are wanted, and this coefficient has such."""
        return self.corrected and self.answer is not None and self.answer.found.reliability.correctable

    @property
    def alpha(self) -> float:
        """The chosen alpha, or the one that the similarities choose."""
        return self._linked.useful if self.selection.alpha is None else self.selection.alpha

    @property
    def _linked(self) -> Linked:
        assert self.answer is not None
        return self.answer.linked(corrected=self.is_corrected, every_pair=self.every_pair)

    def _state(self) -> Hashable:
        """What the content is drawn of."""
        room = self.size.height >= _LONG_LABELS, self.size.width >= ROOMY
        return id(self.answer), self.how, self.corrected, self.every_pair, self.order, self.selection.alpha, room

    def _draw(self) -> None:
        if self.answer is None:
            return
        self._drawn = self._state()
        linked, found = self._linked, self.answer.found
        self._families = linked.families(self.alpha)
        self._rows = linked.order(self.order, self._families)
        names, numbers = self._names(), self._numbers()
        wide = max(map(len, names), default=0)
        labels = [plain(label) for label in found.labels]
        most = LABEL if self.size.width >= ROOMY else _NARROW_LABEL
        room = min(most - 1 - wide, max(map(cell_len, labels), default=0))
        rows = [f"{fitted(labels[row], room)} {names[row]:>{wide}}" for row in self._rows]
        tall = self.size.height >= _LONG_LABELS
        columns = [f"{labels[row]} {names[row]:>{wide}}" if tall else f"{names[row]:>{wide}}" for row in self._rows]
        groups = [numbers[row] for row in self._rows]
        self._draw_map(linked.values[np.ix_(self._rows, self._rows)], rows, columns, groups)
        slider = self.query_one("#alpha", Slider)
        with slider.prevent(Slider.Changed):
            slider.span(-1.0, max(1.0, linked.span()[1]), _FINE)
            slider.value = self.alpha
        self._draw_beneath(linked, names, numbers)
        self._say_asked()
        self._tell()

    def _draw_map(self, values: Matrix, rows: list[str], columns: list[str], groups: list[int]) -> None:
        shown = self.query_one(Heatmap)
        places = {row: place for place, row in enumerate(self._rows)}
        pair = self._pair
        shown.draw(values, rows, columns, limit=1.0, row_groups=groups, column_groups=groups)
        if pair is not None and pair[0] in places and pair[1] in places:
            shown.cursor = places[pair[0]], places[pair[1]]

    def _draw_beneath(self, linked: Linked, names: list[str], numbers: list[int]) -> None:
        assert self.answer is not None
        found = self.answer.found
        alphas, numbers_of = linked.curve()
        what = "classes" if self.every_pair else "families"
        plot = self.query_one(Plot)
        plot.draw(
            [Series(alphas, numbers_of)], title=f"number of {what} against alpha", at=self.alpha, x_range=linked.span(),
            y_range=(0, len(found.labels) + 1), y_ticks=sorted({1, (1 + len(found.labels)) // 2, len(found.labels)}),
        )  # fmt: skip
        lines = [
            Line(bar.joins, names[bar.eldest], numbers[bar.eldest], found.labels[bar.eldest]) for bar in linked.bars
        ]
        ceiling = math.nan if self.is_corrected else found.median_ceiling
        self.query_one(Barcode).draw(lines, span=linked.span(), alpha=self.alpha, ceiling=ceiling)

    def _say_asked(self) -> None:
        reading = self.answer is not None and self.answer.how != self.how
        self.query_one(Choices).say(
            [
                ("k", "next('kind',1)", self.how.kind),
                ("m", "next('on',1)", self.how.on),
                ("c", "correct", "corrected" if self.is_corrected else "plain"),
                ("v", "next('level',1)", f"{self.how.level}s"),
                ("o", "order", f"by {self.order}"),
                ("l", "link", "every pair" if self.every_pair else "by chains"),
            ],
            "reading ..." if reading else "",
        )

    def _tell(self) -> None:
        """What is under the cursor, the families, and what must be minded."""
        if self.answer is None or not self._rows:
            return
        told = Content("\n").join([*self._cell(), *self._listed(), *self._notes()])
        if not told.is_same(self._told):  # an update lays the whole screen out anew
            self._told = told
            self.query_one("#cell", Static).update(told)

    def _cell(self) -> list[Content]:
        assert self.answer is not None
        found, names = self.answer.found, self._names()
        row, column = self.query_one(Heatmap).cursor
        a, b = self._rows[row], self._rows[column]
        both = (a,) if a == b else (a, b)
        lines = [
            Content.assemble((f"{names[i]} ", self._colour(self._numbers()[i])), (plain(found.labels[i]), "bold"))
            for i in both
        ]
        lines += map(
            Content,
            (
                f"{self.answer.how.kind} {_known(found.matrix[a, b])}",
                f"ceiling {_known(found.ceiling[a, b])}",
                f"corrected {_known(found.corrected[a, b])}",
                f"reliability {' and '.join(_known(found.reliabilities[i]) for i in both)}",
                f"over {count(int(found.n_edges[a, b]), self.answer.how.level)}",
            ),
        )
        reason = self.answer.reason(a, b)
        return [*lines, *([Content(f"{reason[0].upper()}{reason[1:]}.")] if reason else [])]

    def _listed(self) -> list[Content]:
        assert self.answer is not None
        found = self.answer.found
        what = ("class", "classes") if self.every_pair else ("family", "families")
        lines = [Content.styled(f"\n{count(len(self._families), *what)} at alpha = {hundredths(self.alpha)}", "bold")]
        if not math.isnan(found.median_ceiling):
            lines.append(Content(f"median ceiling {hundredths(found.median_ceiling)}"))
        for number, family in enumerate(self._families[:_LISTED]):
            lowest = "" if math.isnan(family.lowest) else f" (lowest within {hundredths(family.lowest)})"
            members = enumeration((plain(found.labels[row]) for row in family.rows), most=12)
            lines.append(
                Content.assemble((family.name, self._colour(number)), f" {len(family.rows)}: {members}{lowest}")
            )
        if len(self._families) > _LISTED:
            lines.append(Content(f"and {len(self._families) - _LISTED:,} more"))
        return lines

    def _notes(self) -> list[Content]:
        assert self.answer is not None
        notes = self.answer.found.notes_elsewhere
        return [Content.styled("\nMind", "bold"), *map(Content, notes)] if notes else []

    def _names(self) -> list[str]:
        """The family of each circuit."""
        names = [""] * sum(len(family.rows) for family in self._families)
        for family in self._families:
            for row in family.rows:
                names[row] = family.name
        return names

    def _numbers(self) -> list[int]:
        """The number of the family of each circuit."""
        numbers = [0] * sum(len(family.rows) for family in self._families)
        for number, family in enumerate(self._families):
            for row in family.rows:
                numbers[row] = number
        return numbers

    def _colour(self, number: int) -> str:
        return shades.group(number, dark=self.app.current_theme.dark)

    def on_heatmap_moved(self, message: Heatmap.Moved) -> None:
        """Tell what is under the cursor."""
        if max(message.row, message.column) < len(self._rows):
            self._pair = self._rows[message.row], self._rows[message.column]
            self._tell()

    def on_heatmap_picked(self, message: Heatmap.Picked) -> None:
        """Compare the two circuits of a cell; on the diagonal look at the one."""
        assert self.answer is not None
        a, b = (self.answer.found.circuit_ids[self._rows[place]] for place in (message.row, message.column))
        if a == b:
            self.browser.look_at(a)
        else:
            self.browser.compare(a, b)

    def on_slider_changed(self, message: Slider.Changed) -> None:
        """Another alpha."""
        self.browser.selection = self.selection.at(round(message.value, 6))

    def on_resize(self) -> None:
        """More lines have room for longer labels."""
        if self.answer is not None and self._state() != self._drawn:
            self._draw()

    def action_alpha(self, steps: int) -> None:
        """Move alpha by steps of 0.05; 0 lets it be chosen."""
        if self.answer is None:
            return
        highest = max(1.0, self._linked.span()[1])
        moved = None if steps == 0 else max(-1.0, min(highest, round(round(self.alpha / _STEP + steps) * _STEP, 6)))
        self.browser.selection = self.selection.at(moved)

    def action_jump(self, way: int) -> None:
        """Move alpha to where families change."""
        if self.answer is not None:
            self.browser.selection = self.selection.at(self._linked.next_alpha(self.alpha, way))

    def action_correct(self) -> None:
        """Plain or corrected."""
        if self.answer is not None and not self.answer.found.reliability.correctable:
            self.notify(f"There is no correction for noise for {NAMES[self.answer.how.kind]}.", severity="warning")
            return
        self.corrected = not self.corrected
        self._draw()

    def action_link(self) -> None:
        """Families or classes."""
        self.every_pair = not self.every_pair
        self._draw()

    def action_order(self) -> None:
        """The next order."""
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
        self._draw()

    def action_next(self, name: str, way: int) -> None:
        """The next value of what is asked for."""
        values = CHOICES[name]
        value = values[(values.index(getattr(self.how, name)) + way) % len(values)]
        self.how = replace(self.how, **{name: value})
        self._say_asked()
        self.renew()


def _known(value: float) -> str:
    return "not known" if math.isnan(value) else hundredths(value)


def _digits(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"
