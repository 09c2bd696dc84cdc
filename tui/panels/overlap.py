"""How alike two circuits are: similarities with what they are worth, and what hard circuits share at every size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from circuitdb.queries.pair import Pair
from circuitdb.queries.result import Result
from circuitdb.queries.similarity import Similarity
from circuitdb.tui.widgets.plot import Plot, Series
from circuitdb.words import count

_HEAD = f"{'':<11}{'rho':>7}{'ceiling':>9}{'corrected':>11}{'rel. A':>8}{'rel. B':>8}"


class OverlapPanel(Container):
    """The numbers, and the shares over sizes as curves."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.pair: Pair | None = None
        self._curve: Result | None = None
        self._taken: tuple[int, bool] | None = None

    def compose(self) -> ComposeResult:
        """Numbers and curves."""
        with Container(id="overlap-both"):
            with VerticalScroll(id="alike"):
                yield Static(id="alike-text")
            yield Plot(id="sizes")

    def focus_first(self) -> None:
        """Nothing here takes the focus but the size."""
        self.screen.query_one("#size").focus()

    def take(self, pair: Pair, size: int, *, signed: bool) -> None:
        """Show the pair at a size."""
        if pair is not self.pair or self._taken is None or self._taken[1] != signed:
            self._curve = pair.overlap(signed=signed)
        self.pair, self._taken = pair, (size, signed)
        self._draw(size)
        self._say(pair, size, signed=signed)

    def text(self) -> str:
        """The similarities, then the sizes."""
        if self.pair is None or self._curve is None:
            return ""
        lines = ["scores\trho\tceiling\tcorrected\treliability_a\treliability_b"]
        for name, found in (("signed", self.pair.signed), ("magnitude", self.pair.magnitude)):
            lines.append("\t".join([name, *("" if math.isnan(v) else repr(v) for v in _values(found))]))
        columns = self._curve.columns
        lines += ["", "\t".join(columns)]
        lines += ["\t".join("" if v is None else str(v) for v in row.values()) for row in self._curve.rows()]
        return "\n".join(lines)

    def _draw(self, size: int) -> None:
        if self._curve is None or self.pair is None:
            return
        table = self._curve.arrow()
        x = np.log10(np.array(table["n"].to_pylist(), np.float64))
        a_in_b, b_in_a = (np.array(table[name].to_pylist(), np.float64) for name in ("a_in_b", "b_in_a"))
        # The share of a that a random circuit of the size of b would hold.
        by_chance = np.array(table["n_b"].to_pylist(), np.float64) / self.pair.n_edges
        # Of equal sizes the two shares are one, and one line would hide the other.
        alike = np.array_equal(a_in_b, b_in_a, equal_nan=True)
        shares = [Series(x, a_in_b, "A in B, and B in A" if alike else "A in B", sign="a")]
        shares += [] if alike else [Series(x, b_in_a, "B in A", sign="b")]
        self.query_one(Plot).draw(
            [Series(x, by_chance, "by chance", sign="."), *shares],
            title="Share of the hard circuit that is in the other",
            x="n edges, log10",
            at=math.log10(size),
            y_range=(0.0, 1.0),
        )

    def _say(self, pair: Pair, size: int, *, signed: bool) -> None:
        lines = [Content.styled(_HEAD, "bold")]
        for name, found in (("signed", pair.signed), ("magnitude", pair.magnitude)):
            rho, ceiling, corrected, first, second = map(_number, _values(found))
            lines.append(Content(f"{name:<11}{rho:>7}{ceiling:>9}{corrected:>11}{first:>8}{second:>8}"))
        (row,) = pair.overlap([size], signed=signed).rows()
        which = f"The {size:,} {'most positive' if signed else 'strongest'} of {pair.n_edges:,} edges"
        expected, p_value = f"{row['expected_shared']:,.4g}", _number(row["p_value"], ".3g")
        lines.append(Content.styled(f"\n{which}", "bold"))
        lines.append(Content(f"A in B {_share(row['a_in_b'])}, B in A {_share(row['b_in_a'])} of {_sizes(row)}"))
        lines.append(Content(f"{row['shared']:,} in both, by chance {expected} (p = {p_value})"))
        lines.append(Content(f"Jaccard {_number(row['jaccard'])}, by chance {_number(row['expected_jaccard'])}"))
        lines += [Content(f"\n{note}") for note in _notes(pair)]
        self.query_one("#alike-text", Static).update(Content("\n").join(lines))


def _values(found: Similarity) -> list[float]:
    """rho, ceiling, corrected, and both reliabilities."""
    pairs = [float(m[0, 1]) for m in (found.matrix, found.ceiling, found.corrected)]
    return [*pairs, *map(float, found.reliabilities)]


def _sizes(row: dict[str, Any]) -> str:
    n_a, n_b = row["n_a"], row["n_b"]
    return count(n_a, "edge") if n_a == n_b else f"{n_a:,} and {n_b:,} edges"


def _notes(pair: Pair) -> list[str]:
    """Why a number is missing, and what else must be said; once, though it is so for signed scores and magnitudes."""
    sides = (pair.signed, pair.magnitude)
    reasons = [reason for found in sides for reason in found.table["reason"].to_pylist() if reason]
    return list(dict.fromkeys([*reasons, *(note for found in sides for note in found.notes)]))


def _number(value: object, form: str = ".3f") -> str:
    return "-" if not isinstance(value, float) or math.isnan(value) else format(value, form)


def _share(value: object) -> str:
    return "-" if not isinstance(value, float) or math.isnan(value) else f"{value:.1%}"
