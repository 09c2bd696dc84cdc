"""Parameters of subtasks, to part a selection by and to show: what the cells of a task's partition are called by."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from circuitdb.errors import UsageError
from circuitdb.queries.columns import integers, numbers, texts
from circuitdb.queries.result import enumeration
from circuitdb.queries.selection import Group, Member, Selection

Value: TypeAlias = "int | float | str | bool | None"
GROUP_FIELDS = tuple(field.name for field in fields(Group) if field.name != "model_id")


def parameters(selection: Selection) -> list[str]:
    """Names of all parameters that the subtasks of a selection have."""
    return list(dict.fromkeys(name for member in selection.members for name in member.parameters))


def require_known(selection: Selection, names: Iterable[str], *, fields: bool = True) -> tuple[str, ...]:
    """The names that are parameters of subtasks, and with `fields` those of a group. Raises UsageError for others."""
    given = tuple(dict.fromkeys(names))
    known = [*parameters(selection), *(GROUP_FIELDS if fields else ())]
    for name in given if selection.members else ():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"there are {enumeration(known) or 'none'}."
            raise UsageError(f"No subtask of the selection has a parameter {name!r}; {hint}")
    return given


def value_of(member: Member, name: str) -> Value:
    """A parameter of a circuit's subtask, else the field of its group of that name; None where it has neither."""
    if name in member.parameters:
        return member.parameters[name]
    value: Value = getattr(member.group, name, None) if name in GROUP_FIELDS else None
    return value


def parted(selection: Selection, names: Sequence[str]) -> dict[tuple[Value, ...], list[int]]:
    """The places of the circuits by their values of these parameters, in the order of the selection."""
    cells: dict[tuple[Value, ...], list[int]] = {}
    for i, member in enumerate(selection.members):
        cells.setdefault(tuple(value_of(member, name) for name in names), []).append(i)
    return cells


def value_column(values: Sequence[Value]) -> pa.Array:
    """BIGINT or DOUBLE where all values are numbers, else VARCHAR; None is NULL."""
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, int) and not isinstance(value, bool) for value in known):
        return integers(value if isinstance(value, int) else None for value in values)
    if known and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        return numbers(np.array([value if isinstance(value, int | float) else np.nan for value in values], np.float64))
    return texts(None if value is None else str(value) for value in values)
