"""Questions in JSON: a list of objects, an object a line, or the files of auto-circuit and BIG-bench."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from circuitdb.errors import UsageError
from circuitdb.ingest.tasks.files import auto_circuit, big_bench, text
from circuitdb.ingest.tasks.files.sheet import Line, Sheet, sheet


def read(path: Path) -> Sheet:
    """The rows: those of JSON Lines are its lines, others count from one. Raises UsageError."""
    content = text.read(path, text.line_of)
    if path.suffix.lower() != ".json":
        lines = enumerate(content.split("\n"), start=1)
        return _rows(path, [(number, _value(path, line, number)) for number, line in lines if line.strip()])
    value = _value(path, content, None)
    if isinstance(value, dict) and auto_circuit.KEY in value:
        return auto_circuit.sheet_of(path, value)
    if isinstance(value, dict) and big_bench.KEY in value:
        return big_bench.sheet_of(path, value)
    if not isinstance(value, list):
        raise UsageError(
            f"{path.name}, row 1: it is neither a list of objects nor a file of auto-circuit ({auto_circuit.KEY}) or "
            f"BIG-bench ({big_bench.KEY})."
        )
    return _rows(path, list(enumerate(value, start=1)))


def _value(path: Path, content: str, number: int | None) -> object:
    """The value of a text; `number` is the row that it is, None where it is the whole file."""
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        where = f"row {number}" if number else f"line {error.lineno}"
        raise UsageError(f"{path.name}, {where}: it is no valid JSON ({error.msg}, column {error.colno}).") from error
    except RecursionError as error:
        raise UsageError(f"{path.name}, row {number or 1}: it is nested too deeply to be a question.") from error
    except ValueError as error:  # a number of more digits than Python reads
        raise UsageError(f"{path.name}, row {number or 1}: a number has too many digits.") from error


def _rows(path: Path, values: Sequence[tuple[int, object]]) -> Sheet:
    columns: tuple[str, ...] = ()
    lines = []
    for number, value in values:
        if not isinstance(value, dict):
            raise UsageError(f"{path.name}, row {number}: it is no object with named values.")
        if not columns:
            columns, first = tuple(value), number
        if set(value) != set(columns):
            odd = sorted(set(value) ^ set(columns))[0]
            which = f"a value {odd!r} that row {first} does not have" if odd in value else f"no value {odd!r}"
            raise UsageError(f"{path.name}, row {number}: it has {which}; all rows need the same.")
        lines.append(Line(number, tuple(_cell(value[name]) for name in columns)))
    return sheet(path.name, columns, lines, typed=True)


def _cell(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value
