"""Names of models as answers show them: other weights under one name are another model, and must look like one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from circuitdb.queries import named
from circuitdb.queries.result import enumeration

_DIGITS = 8


@dataclass(frozen=True)
class ModelName:
    """`name` is the model's own, `shown` is what tells it apart from all others of the database."""

    name: str
    shown: str


def model_names(connection: duckdb.DuckDBPyConnection) -> dict[int, ModelName]:
    """Of each model id: its name alone where no other model has it, else with what tells it apart.

    That is the revision where each has one of its own (name@step1000), else the digest of the weights (name@1a2b3c4d),
    else the id (name#2).
    """
    rows = named.run(connection, "models").to_pylist()
    often = Counter(row["name"] for row in rows)
    shown: dict[int, ModelName] = {}
    for name in often:
        same = [row for row in rows if row["name"] == name]
        digests = [row["weights_digest"] and row["weights_digest"][:_DIGITS] for row in same]
        for row, text in zip(same, _told_apart(name, digests, same), strict=True):
            shown[row["model_id"]] = ModelName(name, text)
    return shown


def _told_apart(name: str, digests: Sequence[str | None], same: Sequence[dict[str, object]]) -> list[str]:
    if len(same) == 1:
        return [name]
    for marks in ([row["revision"] for row in same], digests):
        if all(marks) and len(set(marks)) == len(same):
            return [f"{name}@{mark}" for mark in marks]
    return [f"{name}#{row['model_id']}" for row in same]


def namesakes(names: Sequence[ModelName]) -> tuple[str, ...]:
    """A note for each name that several of these models have."""
    found: dict[str, list[str]] = {}
    for model in dict.fromkeys(names):
        found.setdefault(model.name, []).append(model.shown)
    return tuple(
        f"{len(shown)} different models are called {name}: {enumeration(shown)}. They are kept apart; filter by "
        "such a name to have one of them."
        for name, shown in found.items()
        if len(shown) > 1
    )
