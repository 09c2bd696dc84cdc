"""Figures of a report as SVG: the same bytes every time, in the colours of the page where they stand in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from circuitdb.queries import canvas, plots
from circuitdb.queries.studies.findings import Figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_INK = "#17171a"  # what is written and ruled outside the heat maps: the page's own colour takes its place
_BEFORE = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_SIZE = re.compile(r'(?<=\s)(?:width|height)="[^"]*pt"')
_PAPER = re.compile(r'<g id="patch_1">.*?</g>', re.DOTALL)  # the first patch that is drawn: the figure's own


def svg(figure: Figure) -> str:
    """A file of its own, on white. Raises UsageError without matplotlib."""
    return plots.render(_inked(figure.draw()), "svg", figure.caption).decode()


def inlined(drawn: str, prefix: str) -> str:
    """The same as an element of a page: its ids begin with the prefix, and black is the colour of the page's text."""
    text = _METADATA.sub("", _BEFORE.sub("", drawn))
    text = _PAPER.sub("", _SIZE.sub("", text, count=2), count=1)
    text = re.sub(r'\bid="', f'id="{prefix}-', text)
    text = re.sub(r'(xlink:href="#|url\(#)', rf"\1{prefix}-", text)
    text = text.replace(_INK, "currentColor")
    for name, colour in (("blue", canvas.BLUE), ("orange", canvas.ORANGE), ("grey", canvas.GREY)):
        text = text.replace(colour, f"var(--{name}, {colour})")
    return text.replace("<svg ", '<svg aria-hidden="true" focusable="false" ', 1).strip()


def _inked(drawing: Drawing) -> Drawing:
    """With ink for black, but for what is written on a heat map, which keeps its pale cells; and names as they are."""
    from matplotlib.text import Text

    for said in drawing.findobj(Text):
        said.set_parse_math(False)  # a dollar sign begins no formula
    for axes in drawing.axes:
        for spine in axes.spines.values():
            spine.set_edgecolor(_INK)
        axes.tick_params(color=_INK, labelcolor=_INK)
        legend = axes.get_legend()
        written = [axes.xaxis.label, axes.yaxis.label, *(legend.get_texts() if legend is not None else [])]
        if not axes.images:
            axes.patch.set_visible(False)
            written += axes.texts
            for line in axes.lines:
                if line.get_color() == "black":
                    line.set_color(_INK)
        for said in written:
            said.set_color(_INK)
    for said in [text for legend in drawing.legends for text in legend.get_texts()]:
        said.set_color(_INK)
    return drawing
