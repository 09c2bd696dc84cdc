"""How much a database holds: what a program that watches the file compares, to tell whether something is new."""

from __future__ import annotations

import os
from dataclasses import dataclass

from circuitdb.connection import reading
from circuitdb.queries import named


@dataclass(frozen=True)
class Extent:
    """How many rows there are of what a person may see change.

    Attributes:
        circuits: circuits.
        newest: the highest id of a circuit, which a replaced circuit raises too; 0 without circuits.
        evaluations: our own accuracies and those of other tools.
        faithfulness: runs of cut circuits.
        notes: the user's own.
    """

    circuits: int
    newest: int
    evaluations: int
    faithfulness: int
    notes: int


def extent(path: str | os.PathLike[str], *, timeout: float) -> Extent:
    """The extent of a database; `timeout` is in seconds. Raises StoreError where the file can't be read."""
    with reading(path, timeout=timeout) as connection:
        (row,) = named.run(connection, "extent").to_pylist()
    return Extent(**row)
