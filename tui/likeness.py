"""What the screen of similarity shows of an answer: its order, families, curve and bars; free of Textual."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from circuitdb.queries import families
from circuitdb.queries.barcode import Bar, bars
from circuitdb.queries.coefficients import KINDS
from circuitdb.queries.comparison import LEVELS
from circuitdb.queries.database import Database
from circuitdb.queries.families import Family
from circuitdb.queries.linkage import Tree, tree
from circuitdb.queries.matrix import SIDES
from circuitdb.queries.pairing import Matrix
from circuitdb.queries.similarity import Similarity

ORDERS = ("parameters", "dendrogram", "families")
CHOICES = {"kind": KINDS, "on": tuple(SIDES), "level": LEVELS}


@dataclass(frozen=True)
class How:
    """How circuits are compared: the keywords of `Database.similarity` that the screen can change."""

    kind: str = "spearman"
    on: str = "signed"
    level: str = "edge"


@dataclass(frozen=True, eq=False)
class Linked:
    """One matrix of similarities with what joins its circuits, by families or by classes in which every pair is alike.

    `bars` are those of families (single linkage) in both cases.
    """

    values: Matrix
    every_pair: bool

    @cached_property
    def tree(self) -> Tree:
        """What joins what."""
        return tree(self.values, "complete" if self.every_pair else "single")

    @cached_property
    def bars(self) -> list[Bar]:
        """The H0 barcode."""
        return bars(tree(self.values))

    @cached_property
    def sweep(self) -> tuple[Matrix, list[int], list[int]]:
        """(alphas ascending, number of families at each, number just above each)."""
        return families.sweep(self.values, every_pair=self.every_pair)

    @cached_property
    def useful(self) -> float:
        """The alpha that is taken where none is chosen."""
        return families.useful_alpha(self.values, every_pair=self.every_pair)[0]

    def families(self, alpha: float) -> list[Family]:
        """Named A, B, ..., the largest first."""
        return (families.classes if self.every_pair else families.components)(self.values, alpha)

    def order(self, name: str, found: Sequence[Family]) -> list[int]:
        """The rows in one of `ORDERS`; `found` are the families at the present alpha."""
        if name == "dendrogram":
            return self.tree.order()
        return list(range(len(self.values))) if name == "parameters" else [row for one in found for row in one.rows]

    def span(self) -> tuple[float, float]:
        """(low, high) of the alphas worth showing: all that part something, and 1."""
        alphas = self.sweep[0].tolist()
        if not alphas:
            return 0.0, 1.0
        # On twentieths, and the lowest join not at the very edge, where it could not be seen.
        return math.floor(min(alphas[0], 0.95) * 20 - 1e-9) / 20, max(1.0, math.ceil(alphas[-1] * 20) / 20)

    def curve(self) -> tuple[list[float], list[int]]:
        """(alpha, number of families) of the corners of the curve, from the left."""
        alphas, at, above = self.sweep
        low, high = self.span()
        if not len(alphas):
            return [low, high], [len(self.values)] * 2
        steps = [number for pair in zip(at, above, strict=True) for number in pair]
        return [low, *np.repeat(alphas, 2).tolist(), high], [at[0], *steps, above[-1]]

    def next_alpha(self, alpha: float, way: int) -> float:
        """The next alpha up (way 1) or down (-1) at which there are other families than at `alpha`."""
        alphas = self.sweep[0]
        beyond = alphas[alphas > alpha] if way > 0 else alphas[alphas < alpha]
        if not len(beyond):
            return max(alpha, self.span()[1]) if way > 0 else alpha
        return float(beyond[0] if way > 0 else beyond[-1])


@dataclass(frozen=True, eq=False)
class Likeness:
    """A similarity, how it was asked for, and what joins its circuits, worked out when it is first looked at."""

    found: Similarity
    how: How
    _linked: dict[tuple[bool, bool], Linked] = field(default_factory=dict)

    def linked(self, *, corrected: bool, every_pair: bool) -> Linked:
        """What joins the circuits by one of the two matrices."""
        key = (corrected, every_pair)
        if key not in self._linked:
            self._linked[key] = Linked(self.found.values(corrected=corrected), every_pair)
        return self._linked[key]

    def reason(self, a: int, b: int) -> str | None:
        """Why a pair has no similarity, or no corrected one; None if it has both."""
        return self.found.reasons.get((min(a, b), max(a, b)))


def ask(db: Database, *, circuits: Sequence[int], how: How) -> Likeness:
    """Ask for the similarity of circuits.

    Raises UsageError for circuits of different shapes, StoreError where the file can't be read.
    """
    answer = Likeness(db.similarity(circuits=circuits, kind=how.kind, on=how.on, level=how.level), how)
    for every_pair in (False, True):
        # SciPy's clustering, which takes long to import, is in this thread then, and ready for the screen.
        linked = answer.linked(corrected=False, every_pair=every_pair)
        linked.families(linked.useful)
    return answer
