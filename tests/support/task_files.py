"""A task in five lines of CSV, and files to try it in."""

from __future__ import annotations

from pathlib import Path

FIVE = """clean,corrupted,answer,corrupted_answer,subtask
2 + 3 =,2 + 4 =,5,6,plus
5 + 1 =,5 + 3 =,6,8,plus
7 - 3 =,7 - 5 =,4,2,minus
9 - 1 =,9 - 4 =,8,5,minus
"""


def write(folder: Path, name: str, content: str | bytes) -> Path:
    """A file with that content, byte for byte."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def without(column: str) -> str:
    """The five lines less a column."""
    place = FIVE.split("\n", 1)[0].split(",").index(column)
    return "\n".join(",".join(c for i, c in enumerate(line.split(",")) if i != place) for line in FIVE.splitlines())
