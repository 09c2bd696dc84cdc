"""What groups of circuits are called where an answer tells them apart: in its notes, as points, in a legend."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from circuitdb.queries.selection import Group

TELLING = tuple(field.name for field in fields(Group) if field.name not in ("model_id", "model", "task"))


def group_names(groups: Iterable[Group], *, task: bool = True) -> dict[Group, str]:
    """The name of each group: model, with `task` its task, and each field in which groups of one model and task differ.

    A field of which a group has no value is not in its name; the names differ all the same, for the others have one.
    """
    found = list(dict.fromkeys(groups))
    alike = {(group.model, group.task) for group in found}
    telling = [
        field
        for field in TELLING
        if len({(group.model, group.task, getattr(group, field)) for group in found}) > len(alike)
    ]
    names = {}
    for group in found:
        values = {field: getattr(group, field) for field in telling}
        marks = [f"{field} {value}" for field, value in values.items() if value is not None]
        names[group] = ", ".join([group.model, *([group.task] if task else []), *marks])
    return names
