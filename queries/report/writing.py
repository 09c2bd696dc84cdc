"""Writes a report into a folder: `index.html`, `report.md` and the figures of the latter."""

from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from circuitdb.errors import UsageError
from circuitdb.queries.report.drawings import svg
from circuitdb.queries.report.html import html
from circuitdb.queries.report.markdown import file_of, markdown
from circuitdb.queries.studies.findings import Findings

PAGE, TEXT = "index.html", "report.md"


def write(found: Findings, folder: str | os.PathLike[str] = "report", made: datetime | None = None) -> Path:
    """Write the report of a study, in the place of one that is there, and return the path of its page.

    Nothing is written until all of it is made, and each file is there whole or not at all. `made` is the date that it
    bears, today's if none is given.

    Raises UsageError where the folder can't be made or written to, and without matplotlib.
    """
    date = (made or datetime.now(UTC)).date().isoformat()
    drawn = {
        (i, figure.name): svg(figure) for i, finding in enumerate(found.findings, start=1) for figure in finding.figures
    }
    files = {
        **{file_of(*which): text for which, text in drawn.items()},
        TEXT: markdown(found, date),
        PAGE: html(found, drawn, date),
    }
    target = Path(folder)
    try:
        for name, content in files.items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            _place(target / name, content.encode())
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"The report can't be written to {target}: {why}; name another folder.") from error
    return target / PAGE


def _place(target: Path, content: bytes) -> None:
    """Write a file under another name and move it into place, so that nobody ever sees half of it."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
