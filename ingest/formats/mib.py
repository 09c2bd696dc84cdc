"""MIB's submission folders: a folder `task_model` for each task and model, with a file of importances or nine of edges.

Nine files without scores are hard circuits of at most 0.1, 0.2, 0.5, 1, 2, 5, 10, 20 and 50 % of the edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from circuitdb.records import SHARES

SIZES = SHARES[:-1]
IMPORTANCES = "importances"


def names(folder: Path) -> tuple[str, str] | None:
    """(task, model) of a folder called task_model; None for another one. Only the task has dashes, so _ parts them."""
    task, underscore, model = folder.name.partition("_")
    return (task, model) if underscore and task and model else None


def shares(sizes: Sequence[int], n_edges: int) -> list[float | None]:
    """The share that each of nine hard circuits was cut for; None for all unless they are nine that fit."""
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    fits = len(sizes) == len(SIZES) and all(
        sizes[i] <= share * n_edges + 1 for i, share in zip(order, SIZES, strict=True)
    )
    found: list[float | None] = [None] * len(sizes)
    for i, share in zip(order, SIZES, strict=True) if fits else ():
        found[i] = share
    return found


def folder_name(task: str, model: str) -> str:
    """What a folder is called: the task with dashes for _, so that the first _ parts it from the model."""
    return f"{task.replace('_', '-')}_{model}".replace("/", "-")


def size_of(share: float, n_edges: int) -> int:
    """How many edges a share is, rounded down as MIB does."""
    return int(round(share * n_edges, 6))
