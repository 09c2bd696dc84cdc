"""The containment order of hard circuits: which is a sub-circuit of which, as a Hasse diagram.

1. a is in b if at least 1 - tolerance of a's edges are b's.
2. Circuits that lie in each other, directly or over others, form one class: within the tolerance they are the same.
3. Between classes the order is closed (a in b and b in c puts a below c), and only its covers are drawn: the pairs with
   nothing in between.

With a tolerance the relation itself is not transitive; `share` shows what truly is contained.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb.errors import UsageError
from circuitdb.queries import arguments
from circuitdb.queries.columns import numbers, texts
from circuitdb.queries.containment import Containment
from circuitdb.queries.result import Answer, Result, count, enumeration

Relation = npt.NDArray[np.bool_]


@dataclass(frozen=True, repr=False)
class Order(Answer):
    """The Hasse diagram of a containment.

    Attributes:
        classes: rows of the containment that lie in each other, in the order of their first rows.
        covers: (inner, outer) classes with none between, ascending.
        containment: what it was made of.
        tolerance: the share of a circuit that may be missing in one that contains it.
        title, notes: what it is; warnings and explanations.
    """

    classes: tuple[tuple[int, ...], ...]
    covers: tuple[tuple[int, int], ...]
    containment: Containment
    tolerance: float
    title: str
    notes: tuple[str, ...] = ()

    @property
    def inside(self) -> Relation:
        """[a, b]: whether circuit a is in circuit b within the tolerance; so is each in itself, unless it is empty."""
        return _inside(self.containment, self.tolerance)

    def arrow(self) -> pa.Table:
        """The covers as a table, then the classes that have none.

        circuit, contained_in (labels of a class; NULL where it lies in none), n_circuit, n_contained_in (mean edges),
        share (the lowest share of a member that is in one of the other class), expected_share (by chance).
        """
        alone: list[int] = sorted(set(range(len(self.classes))) - {c for cover in self.covers for c in cover})
        rows: list[tuple[int, int | None]] = [*self.covers, *((c, None) for c in alone)]
        shares = self.containment.shares
        sizes = [float(self.containment.n[list(rows)].mean()) for rows in self.classes]
        n_edges = max(self.containment.n_edges, 1)
        lowest = [np.nan if b is None else self._between(shares, a, b).min() for a, b in rows]
        return pa.table(
            {
                "circuit": texts(self._name(a) for a, _ in rows),
                "contained_in": texts(None if b is None else self._name(b) for _, b in rows),
                "n_circuit": numbers(np.array([sizes[a] for a, _ in rows], np.float64)),
                "n_contained_in": numbers(np.array([np.nan if b is None else sizes[b] for _, b in rows], np.float64)),
                "share": numbers(np.array(lowest, np.float64)),
                "expected_share": numbers(
                    np.array([np.nan if b is None else sizes[b] / n_edges for _, b in rows], np.float64)
                ),
            }
        )

    def levels(self) -> list[int]:
        """Of each class: how many steps above a class that contains none of the others, by the longest way."""
        found = [0] * len(self.classes)
        for _ in self.classes:
            for inner, outer in self.covers:
                found[outer] = max(found[outer], found[inner] + 1)
        return found

    def result(self) -> Result:
        """The table, with title and notes."""
        return Result(self.arrow(), self.title, self.notes)

    def _name(self, number: int) -> str:
        return " = ".join(self.containment.labels[row] for row in self.classes[number])

    def _between(self, shares: npt.NDArray[np.float64], a: int, b: int) -> npt.NDArray[np.float64]:
        return shares[np.ix_(self.classes[a], self.classes[b])]


def order(found: Containment, tolerance: float = 0.0) -> Order:
    """The order within a tolerance of 0 (every edge) up to, but not, 1. Raises UsageError for another one."""
    tolerance = arguments.real("tolerance is a share of a circuit's edges, such as 0.05", tolerance)
    if not 0 <= tolerance < 1:
        raise UsageError(f"A tolerance is a share from 0 to below 1, not {tolerance:g}.")
    inside = _inside(found, tolerance)
    classes, covers = hasse(inside)
    labels = found.labels
    n_covers = count(len(covers), "cover")
    title = (
        f"{found.title}; {n_covers} of {count(len(classes), 'class', 'classes')} of circuits, tolerance {tolerance:g}"
    )
    notes = list(found.notes)
    same = [" = ".join(labels[i] for i in rows) for rows in classes if len(rows) > 1]
    if same:
        notes.append(f"Within the tolerance these lie in each other, and count as one: {enumeration(same)}.")
    chained = [
        " = ".join(labels[i] for i in rows)
        for rows in classes
        if len(rows) > 1 and not inside[np.ix_(rows, rows)].all()
    ]
    if chained:
        notes.append(
            f"Held together by a chain, since some of their members are not in each other: {enumeration(chained)}."
        )
    return Order(classes, covers, found, tolerance, title, tuple(notes))


def _inside(found: Containment, tolerance: float) -> Relation:
    with np.errstate(invalid="ignore"):
        return np.asarray(found.shares >= 1 - tolerance - 1e-12, np.bool_)


def hasse(inside: Relation) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, int], ...]]:
    """(classes, covers) of a relation [a, b] 'a is in b', which need not be transitive nor reflexive."""
    if not len(inside):
        return (), ()
    from scipy.sparse.csgraph import connected_components  # a third of a second to import

    n_classes, labels = connected_components(inside, directed=True, connection="strong")
    first = np.full(n_classes, len(labels))
    np.minimum.at(first, labels, np.arange(len(labels)))
    number = np.argsort(np.argsort(first))[labels]
    members = np.argsort(number, kind="stable")
    stops = [0, *(np.flatnonzero(np.diff(number[members])) + 1).tolist(), len(labels)]
    classes = tuple(tuple(members[start:stop].tolist()) for start, stop in pairwise(stops))
    below = np.zeros((n_classes, n_classes), bool)
    a, b = np.nonzero(inside)
    below[number[a], number[b]] = True
    np.fill_diagonal(below, False)
    closed = _closure(below)
    two_steps = (closed.astype(np.float32) @ closed.astype(np.float32)) > 0
    return classes, tuple((int(a), int(b)) for a, b in np.argwhere(closed & ~two_steps))


def _closure(relation: Relation) -> Relation:
    """The transitive closure, by squaring."""
    closed = relation
    while True:
        step = closed | ((closed.astype(np.float32) @ closed.astype(np.float32)) > 0)
        if (step == closed).all():
            return closed
        closed = step
