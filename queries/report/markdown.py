"""A study as Markdown, with its figures as SVG files beside it."""

from __future__ import annotations

import re

from circuitdb.queries.report.origin import sentence
from circuitdb.queries.report.tables import Page, page
from circuitdb.queries.studies.findings import Findings

FIGURES = "figures"
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def file_of(i: int, name: str) -> str:
    """Where the figure of that name of the i-th finding is, beside the text."""
    return f"{FIGURES}/{i:02d}-{name}.svg"


def markdown(found: Findings, made: str) -> str:
    """The text, which names the files of the figures; `made` is its date."""
    lines = [f"# {escaped(found.title)}", "", escaped(sentence(found, made)), ""]
    lines += [*(f"- {escaped(said)}" for said in found.summary), ""]
    for i, finding in enumerate(found.findings, start=1):
        subject = f"{escaped(finding.subject)}: " if finding.subject else ""
        lines += [f"## {i}. {subject}{escaped(finding.question)}", "", escaped(finding.answer), ""]
        lines += [*(f"> {escaped(said)}  " for said in finding.caveats), *([""] if finding.caveats else [])]
        for figure in finding.figures:
            lines += [f"![{escaped(figure.alt)}]({file_of(i, figure.name)})", "", f"*{escaped(figure.caption)}*", ""]
        for table in finding.tables:
            lines += _table(page(table))
        if finding.commands:
            lines += ["```console", *(f"$ {line}" for line in _single_lines(finding.commands)), "```", ""]
    lines += ["## Where these numbers come from", ""]
    for table in found.provenance:
        lines += _table(page(table))
    return "\n".join(lines).rstrip() + "\n"


def escaped(text: str) -> str:
    """A text in one line that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.replace("&", "&amp;").split()))


def _table(table: Page) -> list[str]:
    lines = [f"**{escaped(table.caption)}**", ""]
    if table.head:
        lines += [_row([escaped(name) for name in table.head])]
        lines += [_row(["---:" if numeric else "---" for numeric in table.numeric])]
        lines += [_row([escaped(cell) for cell in row]) for row in table.rows]
        lines.append("")
    if table.n_rows > len(table.rows):
        lines += [f"The first {len(table.rows)} of {table.n_rows:,} rows.", ""]
    return lines + [line for note in table.notes for line in (escaped(note), "")]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _single_lines(commands: tuple[str, ...]) -> list[str]:
    """Commands for a block of code: a name of several lines would end it, or be taken for another command."""
    return [" ".join(command.split()).replace("```", "'''") for command in commands]
