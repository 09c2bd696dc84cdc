"""Reads a file of questions by its format: the first bytes tell Parquet, the ending the others."""

from __future__ import annotations

import os
from pathlib import Path

from circuitdb.errors import UsageError
from circuitdb.ingest.tasks.files import delimited, objects, parquet
from circuitdb.ingest.tasks.files.sheet import Sheet

_JSON = (".json", ".jsonl", ".ndjson")
_DELIMITED = (".csv", ".tsv")
ENDINGS = (*_DELIMITED, *_JSON, ".parquet")


def is_file(name: str) -> bool:
    """Whether the name of a task is that of a file: it has such an ending or a folder in it, or the file is there."""
    path = Path(name)
    return path.suffix.lower() in ENDINGS or os.sep in name or path.is_file()


def read(path: Path) -> Sheet:
    """The rows of a file. Raises UsageError."""
    if not path.is_file():
        raise UsageError(f"{path} is a folder; name a file in it." if path.is_dir() else f"There is no file {path}.")
    with path.open("rb") as file:
        magic = file.read(4)
    ending = path.suffix.lower()
    if magic == b"PAR1" or ending == ".parquet":
        return parquet.read(path)
    if ending in _JSON:
        return objects.read(path)
    if ending in _DELIMITED:
        return delimited.read(path)
    raise UsageError(f"{path} can't be read as a task: its name ends in none of {', '.join(ENDINGS)}.")
