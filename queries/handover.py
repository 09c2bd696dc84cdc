"""Circuits handed over to be written elsewhere: scores, edges that are in, and where they are from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from circuitdb.connection import reading
from circuitdb.graph import GraphShape
from circuitdb.queries import matrix, named
from circuitdb.queries.cuts import Cut, Members, hard
from circuitdb.queries.filters import Where
from circuitdb.queries.matrix import FloatArray
from circuitdb.queries.selection import Group, Selection, select


@dataclass(frozen=True, eq=False)
class Handed:
    """One circuit.

    Attributes:
        circuit_id, label, subtask, group: which it is, and how it was made.
        shape: its graph.
        d_model: width of the model, None where it is not known.
        scores: [n_edges] float32, NaN where there is none.
        members: [n_edges] by cut, the edges that are in; empty without a cut.
    """

    circuit_id: int
    label: str
    subtask: str
    group: Group
    shape: GraphShape
    d_model: int | None
    scores: FloatArray
    members: tuple[Members, ...]


@dataclass(frozen=True)
class Handover:
    """The circuits of a selection, read one by one as they are asked for."""

    path: str
    timeout: float
    selection: Selection
    cuts: tuple[Cut, ...]

    @classmethod
    def of(cls, path: str, where: Where, cuts: tuple[Cut, ...] = (), *, timeout: float = 10.0) -> Handover:
        """The circuits that the filters leave. Raises UsageError for a name that the database does not have."""
        with reading(path, timeout=timeout) as connection:
            return cls(path, timeout, select(connection, where), cuts)

    def __iter__(self) -> Iterator[Handed]:
        """Each circuit, its scores read by itself, so that not all need memory at once."""
        with reading(self.path, timeout=self.timeout) as connection:
            widths = {row["model_id"]: row["d_model"] for row in named.run(connection, "widths").to_pylist()}
        for member in self.selection.members:
            with reading(self.path, timeout=self.timeout) as connection:
                scores = matrix.read(connection, Selection((member,))).scores
            found = tuple(hard(scores, cut, member.shape).members[0] for cut in self.cuts)
            yield Handed(
                member.circuit_id, member.label, member.subtask, member.group, member.shape,
                widths[member.group.model_id], np.ascontiguousarray(scores[0]), found,
            )  # fmt: skip
