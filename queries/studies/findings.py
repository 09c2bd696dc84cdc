"""What a study says: questions with their answers in sentences, and the tables and figures behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from circuitdb.queries.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


@dataclass(frozen=True)
class Figure:
    """A figure of a finding, drawn when it is asked for: matplotlib is an extra.

    Attributes:
        name: for its file: lower case, no spaces, unique within a finding.
        caption: what is shown, in a sentence.
        alt: what there is to see, for those who do not see it.
        draw: makes it.
    """

    name: str
    caption: str
    alt: str
    draw: Callable[[], Drawing]


@dataclass(frozen=True)
class Finding:
    """One question of a study.

    Attributes:
        question: in a line.
        answer: whole sentences, made of the numbers.
        tables, figures: what the answer is read from.
        caveats: what it must not be read without, a sentence each.
        commands: what gives these tables at the terminal.
        subject: the model, or the part of its circuits, that it is about; empty where there is one.
    """

    question: str
    answer: str
    tables: tuple[Result, ...] = ()
    figures: tuple[Figure, ...] = ()
    caveats: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    subject: str = ""


@dataclass(frozen=True)
class Findings:
    """A study of the circuits in a database.

    Attributes:
        study: its name, such as arithmetic.
        title: what it asks, of what.
        summary: what it found, a sentence each.
        findings: the questions in order.
        provenance: models, ways of scoring and versions that the circuits come from.
        database: the file.
        version: of circuitdb.
    """

    study: str
    title: str
    summary: tuple[str, ...]
    findings: tuple[Finding, ...]
    provenance: tuple[Result, ...] = ()
    database: str = ""
    version: str = ""

    def __str__(self) -> str:
        lines = [self.title, ""]
        for finding in self.findings:
            subject = f"{finding.subject}: " if finding.subject else ""
            lines += [f"{subject}{finding.question}", finding.answer, *(f"- {said}" for said in finding.caveats), ""]
        return "\n".join(lines if self.findings else [self.title, *self.summary]).rstrip()
