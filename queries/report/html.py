"""A study as one page: nothing outside it is asked for, names are escaped, and it is legible light, dark and narrow."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from circuitdb.queries.report.drawings import inlined
from circuitdb.queries.report.origin import sentence
from circuitdb.queries.report.tables import Page, page
from circuitdb.queries.studies.findings import Finding, Findings

_MINUS = re.compile(r"(?<![\w.)-])-(?=\d)")  # of a number, and no hyphen
_OPEN_ROWS = 12  # a finding whose tables have no more is shown with them open


@dataclass(frozen=True)
class _Drawn:
    """A figure of a section; `letter` is empty where it is the only one."""

    letter: str
    caption: str
    alt: str
    svg: str


@dataclass(frozen=True)
class _Section:
    """A finding as it is laid out; `wide` says that its tables are open."""

    finding: Finding
    figures: tuple[_Drawn, ...]
    tables: tuple[Page, ...]
    wide: bool


def html(found: Findings, drawn: Mapping[tuple[int, str], str], made: str) -> str:
    """The page; `drawn` has the SVG of every figure by the number of its finding and its name, `made` is its date."""
    from jinja2 import Environment
    from markupsafe import Markup

    environment = Environment(autoescape=True, keep_trailing_newline=True)
    environment.filters["typeset"] = lambda text: _MINUS.sub("\u2212", text)
    template = environment.from_string(_read("page.html.jinja"))
    # The style and the drawings are our own markup; all else is escaped.
    sections = [
        _Section(
            finding,
            tuple(
                _Drawn(letter, figure.caption, figure.alt, Markup(inlined(drawn[i, figure.name], f"f{i}{letter}")))
                for letter, figure in zip(_letters(len(finding.figures)), finding.figures, strict=True)
            ),
            tuple(map(page, finding.tables)),
            sum(len(table.table) for table in finding.tables) <= _OPEN_ROWS,
        )
        for i, finding in enumerate(found.findings, start=1)
    ]
    return template.render(
        found=found,
        sections=sections,
        provenance=[page(table) for table in found.provenance],
        origin=sentence(found, made),
        style=Markup(_read("page.css")),
    )


def _letters(n: int) -> Sequence[str]:
    return [""] if n == 1 else [chr(ord("a") + i) for i in range(n)]


def _read(name: str) -> str:
    return resources.files("circuitdb.queries.report").joinpath(name).read_text(encoding="utf-8")
