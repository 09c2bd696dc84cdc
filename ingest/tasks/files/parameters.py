"""Columns beside the question as parameters of its subtask: one type a column, one value a subtask."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from circuitdb.ingest.tasks.files.sheet import Sheet

Parameter: TypeAlias = int | float | str | bool

_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}")
_DECIMAL = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")
_TRUTH = {"true": True, "false": False}
_KINDS: Mapping[type, str] = {bool: "true or false", int: "a number", float: "a number", str: "text"}


def parameters(found: Sheet, columns: Sequence[str], subtasks: Sequence[str]) -> dict[str, dict[str, Parameter]]:
    """The parameters of each subtask; `subtasks` names that of every line.

    In CSV a column is of numbers, or of true and false, if every cell is written so: 007 is text. Raises UsageError.
    """
    known: dict[str, dict[str, Parameter]] = {subtask: {} for subtask in subtasks}
    for name in columns:
        values = _typed(found, name) if found.typed else _read(found, name)
        first: dict[str, tuple[int, Parameter]] = {}
        for line, subtask, value in zip(found.lines, subtasks, values, strict=True):
            number, earlier = first.setdefault(subtask, (line.number, value))
            if value != earlier:
                raise found.error(
                    line.number,
                    f"{name} is {value!r}, but {earlier!r} in row {number} of the same subtask {subtask!r}; a "
                    "parameter has one value in a subtask, so give the rows subtasks of their own or drop the column.",
                )
            known[subtask][name] = value
    return known


def _read(found: Sheet, name: str) -> list[Parameter]:
    """Values of a column of text, as numbers or truths if all of them are written so."""
    place = found.columns.index(name)
    cells = [str(line.values[place]).strip() for line in found.lines]
    if all(cell.lower() in _TRUTH for cell in cells):
        return [_TRUTH[cell.lower()] for cell in cells]
    if all(_WHOLE.fullmatch(cell) for cell in cells):
        return [int(cell) for cell in cells]
    if all(_DECIMAL.fullmatch(cell) and math.isfinite(float(cell)) for cell in cells):
        return [float(cell) for cell in cells]
    return list(cells)


def _typed(found: Sheet, name: str) -> list[Parameter]:
    """Values of a column that have types; whole numbers and others together are numbers."""
    place = found.columns.index(name)
    values: list[Parameter] = []
    for line in found.lines:
        value = line.values[place]
        if not isinstance(value, bool | int | float | str):
            raise found.error(line.number, f"{name} is no number, text, or true or false, as a parameter must be.")
        if isinstance(value, float) and not math.isfinite(value):
            raise found.error(line.number, f"{name} is {value}, which is no number to tell subtasks by.")
        if values and _KINDS[type(value)] != _KINDS[type(values[0])]:
            raise found.error(
                line.number, f"{name} is {_KINDS[type(value)]}, but {_KINDS[type(values[0])]} in the rows before it."
            )
        values.append(value)
    if any(isinstance(value, float) for value in values):
        return [float(value) for value in values]
    return values
