"""What all screens share: the set of circuits, the one and the two that are looked at, and alpha; free of Textual.

The app holds it in its reactive `selection`. A change is a new value: `app.selection = app.selection.adding(ids)`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Selection:
    """What is looked at.

    Attributes:
        circuits: ids of the chosen circuits, in the order in which the library lists them.
        circuit: the one that is looked at, which need not be chosen.
        pair: the two that are compared.
        alpha: the similarity from which circuits are of one family; None lets each answer choose a useful one.
    """

    circuits: tuple[int, ...] = ()
    circuit: int | None = None
    pair: tuple[int, int] | None = None
    alpha: float | None = None

    def adding(self, ids: Iterable[int]) -> Selection:
        """With these circuits too."""
        return replace(self, circuits=tuple(dict.fromkeys((*self.circuits, *ids))))

    def dropping(self, ids: Collection[int]) -> Selection:
        """Without these circuits."""
        gone = set(ids)
        return replace(self, circuits=tuple(i for i in self.circuits if i not in gone))

    def toggling(self, ids: Collection[int]) -> Selection:
        """Without these circuits if all of them are chosen, else with all of them."""
        return self.dropping(ids) if set(ids) <= set(self.circuits) else self.adding(ids)

    def only(self, ids: Iterable[int]) -> Selection:
        """With these circuits alone."""
        return replace(self, circuits=tuple(dict.fromkeys(ids)))

    def looking_at(self, circuit: int) -> Selection:
        """With this circuit to look at."""
        return replace(self, circuit=circuit)

    def comparing(self, first: int, second: int) -> Selection:
        """With these two to compare."""
        return replace(self, pair=(first, second))

    def at(self, alpha: float | None) -> Selection:
        """With this alpha."""
        return replace(self, alpha=alpha)

    def among(self, known: Iterable[int]) -> Selection:
        """In the order of the `known` circuits, and without those that are not among them."""
        order = tuple(known)
        there, chosen = set(order), set(self.circuits)
        return replace(
            self,
            circuits=tuple(i for i in order if i in chosen),
            circuit=self.circuit if self.circuit in there else None,
            pair=self.pair if self.pair is not None and there.issuperset(self.pair) else None,
        )
