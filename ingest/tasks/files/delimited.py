"""Questions in CSV and TSV, all cells text as they stand; the header is row 1, and an empty row counts."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from circuitdb.errors import UsageError
from circuitdb.ingest.tasks.files import text
from circuitdb.ingest.tasks.files.sheet import Line, Sheet, sheet

_DELIMITERS = ",;\t"


def read(path: Path) -> Sheet:
    """The rows; the delimiter is the one of , ; and tab that the header has most of. Raises UsageError."""
    content = text.read(path, _row_of)
    header = content.lstrip("\n").split("\n", 1)[0]
    delimiter = "\t" if path.suffix.lower() == ".tsv" else max(_DELIMITERS, key=header.count)
    rows: list[list[str]] = []
    try:
        rows.extend(csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        open_ended = str(error) == "unexpected end of data"
        reason = "a quotation mark that opens in it never closes" if open_ended else f"it is no valid CSV ({error})"
        raise UsageError(f"{path.name}, row {len(rows) + 1}: {reason}.") from error
    numbered = [(number, row) for number, row in enumerate(rows, start=1) if row]
    if not numbered:
        raise UsageError(f"{path.name}, row 1: the file is empty.")
    (first, names), *following = numbered
    for number, row in following:
        if len(row) != len(names):
            raise UsageError(
                f"{path.name}, row {number}: it has {len(row)} cells and the header {len(names)}; text with a "
                f"{_spoken(delimiter)} in it stands between quotation marks."
            )
    lines = [Line(number, tuple(cell if cell.strip() else None for cell in row)) for number, row in following]
    return sheet(path.name, names, lines, typed=False, first=first)


def _row_of(before: str) -> int:
    """The row that a text ends in; line breaks between quotation marks begin no row."""
    try:
        return len(list(csv.reader(io.StringIO(before + "x", newline=""))))
    except csv.Error:
        return text.line_of(before)


def _spoken(delimiter: str) -> str:
    return {",": "comma", ";": "semicolon", "\t": "tab"}[delimiter]
