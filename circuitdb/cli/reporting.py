"""A study's report: its questions asked of the database, written into a folder, and their short answers printed."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from circuitdb.cli import output
from circuitdb.cli.options import Form
from circuitdb.errors import UsageError
from circuitdb.queries.columns import texts
from circuitdb.queries.result import Result, count
from circuitdb.queries.studies.findings import Finding, Findings


def folder_of(study: str) -> str:
    """Where a study's report goes if nobody says where."""
    return f"report/{study}"


def require_folder(path: str) -> Path:
    """Make the folder of a report and return it, before any work is done.

    Raises UsageError if nothing can be written there.
    """
    target = Path(path)
    standing = next((each for each in (target, *target.parents) if each.exists() and not each.is_dir()), None)
    if standing is not None:
        raise UsageError(f"{standing} is a file; name a folder for the report with --report.")
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target):
            pass
    except OSError as error:
        raise UsageError(
            f"The report can't be written to {path} ({error.strerror}); name another folder with --report."
        ) from error
    return target


def with_missing(found: Findings, missing: Result) -> Findings:
    """The findings with what could not be scored as a question of its own, right after the summary."""
    if not len(missing):
        return found
    answer = (
        f"No: {count(len(missing), 'part')} of this study could not be scored, for the reasons below. What is said "
        "here is about the others; the same command tries the missing ones again."
    )
    finding = Finding("Is the study complete?", answer, (missing,))
    return replace(found, summary=(answer, *found.summary), findings=(finding, *found.findings))


def tables(title: str, parts: Mapping[str, Result], form: Form) -> None:
    """Print several answers, as one object where that is JSON; of tables those that have rows."""
    if form is Form.JSON:
        output.page(title, parts, form)
        return
    for i, part in enumerate(part for part in parts.values() if len(part)):
        output.text("\n" if i else "")
        output.answer(part, form)


def show(found: Findings, page: Path, parts: Mapping[str, Result], form: Form) -> None:
    """Print the summary of the answers, below the tables of other things, and where the report is."""
    if form is Form.JSON:
        where = Result(pa.table({"page": texts([str(page)])}), "Report")
        output.page(found.title, {**parts, "findings": _answers(found), "report": where}, form)
        return
    tables(found.title, parts, form)
    output.text("\n" if parts else "")
    output.prose(found.title, found.summary)
    output.text(f"\nThe report is {page}, the same as text beside it.\n")


def _answers(found: Findings) -> Result:
    """Questions and answers, a row each."""
    table = {
        "subject": texts(one.subject or None for one in found.findings),
        "question": texts(one.question for one in found.findings),
        "answer": texts(one.answer for one in found.findings),
        "caveats": texts(" ".join(one.caveats) or None for one in found.findings),
    }
    return Result(pa.table(table), found.title, found.summary)
