"""The commands that give a study's tables at the terminal: the fewest filters that leave exactly its circuits."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from circuitdb.queries.selection import Member, Selection, can_filter

_FIELDS = (
    "model", "task", "method", "steps", "grid", "metric", "positions", "contrast", "ablation", "prompt_style", "shots",
    "seed", "examples", "dtype",
)  # fmt: skip
_FEW = 12  # names that a command lists before circuits are numbered instead


def filters(chosen: Selection, everything: Selection) -> tuple[str, ...]:
    """Options that leave exactly the chosen circuits of the database."""
    left: Sequence[Member] = everything.members
    options: list[str] = []
    for field in (*_FIELDS, "subtask"):
        if len(left) == len(chosen.members):
            break
        if field != "subtask" and not all(can_filter(member.group, field) for member in chosen.members):
            continue
        values = dict.fromkeys(_value(member, field) for member in chosen.members)
        fewer = [member for member in left if _value(member, field) in values]
        if len(fewer) < len(left) and len(values) <= _FEW:
            left = fewer
            options += [part for value in values for part in (f"--{field.replace('_', '-')}", str(value))]
    if len(left) == len(chosen.members):
        return tuple(options)
    return tuple(part for circuit in chosen.ids for part in ("--circuit", str(circuit)))


def command(words: str, options: Sequence[str], *more: str) -> str:
    """`circuitdb similarity --task addition --corrected`, with quotes where the shell needs them."""
    return f"circuitdb {words} {shlex.join([*options, *more])}".rstrip()


def _value(member: Member, field: str) -> object:
    return member.subtask if field == "subtask" else getattr(member.group, field)
