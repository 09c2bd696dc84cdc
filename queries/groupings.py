"""The questions that group circuits by their similarity, as methods that `Database` has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from circuitdb.queries import barcode, births, embedding, families
from circuitdb.queries.asked import Asked
from circuitdb.queries.comparisons import Comparisons
from circuitdb.queries.result import Result


class Groupings(Comparisons):
    """See `Database`."""

    def families(
        self,
        alpha: float | None = None,
        *,
        corrected: bool = False,
        every_pair: bool = False,
        on: str = "signed",
        **asked: Unpack[Asked],
    ) -> Result:
        """Circuit families (Definition 5), one row a circuit: connected components of similarity >= alpha.

        With `every_pair` classes instead in which every pair reaches alpha (complete linkage), because the relation is
        not transitive. Families are named A, B, ... by size; `subtask` is the circuit's label in the selection.
        `medoid` marks the member most similar to the others, `lowest_within` is the lowest similarity of two members,
        which in a component may be under alpha. `silhouette` (-1..1) says how much nearer a circuit is to its own
        family than to the next. Without `alpha` the middle of the widest range with neither one family nor all apart is
        taken; the title says so.
        """
        found = self.similarity(on=on, corrected=corrected, **asked)
        return families.families(found, alpha, corrected=corrected, every_pair=every_pair)

    def family_sweep(
        self, *, corrected: bool = False, every_pair: bool = False, on: str = "signed", **asked: Unpack[Asked]
    ) -> Result:
        """Every alpha at which the number of families changes, exactly, ascending.

        `n_families` is the number at that alpha, and below it down to the row before; `n_above` that just above it.
        """
        found = self.similarity(on=on, corrected=corrected, **asked)
        return families.family_sweep(found, corrected=corrected, every_pair=every_pair)

    def barcode(
        self, *, share: float = barcode.SHARE, corrected: bool = False, on: str = "signed", **asked: Unpack[Asked]
    ) -> Result:
        """The H0 barcode, one row a bar: a family from alpha = 1 down to where it joins another (`joins_at`).

        `circuits` are its members then, `into` those of the family it joins; NULL where it joins none. A note gives the
        narrowest band of alpha in which `share` of the families join.
        """
        found = self.similarity(on=on, corrected=corrected, **asked)
        return barcode.barcode(found, corrected=corrected, share=share)

    def family_births(
        self, *, corrected: bool = False, every_pair: bool = False, on: str = "signed", **asked: Unpack[Asked]
    ) -> Result:
        """How the births of families spread over alpha, one row an alpha at which some are born, ascending.

        A family is born where two part as alpha rises: `n_born` of them just above this `alpha`, `n_so_far` up to
        there, which is the `share` (0..1) of all births.
        """
        found = self.similarity(on=on, corrected=corrected, **asked)
        return births.family_births(found, corrected=corrected, every_pair=every_pair)

    def family_bands(
        self,
        shares: float | Iterable[float] = births.SHARES,
        *,
        corrected: bool = False,
        every_pair: bool = False,
        on: str = "signed",
        **asked: Unpack[Asked],
    ) -> Result:
        """The alpha in which given shares (0..1) of the families appear, one row a share.

        `n_born` is how many births it takes. They have appeared by alpha = `appeared_by` as alpha rises from below, and
        `low` to `high` is the narrowest band of alpha that holds as many, wherever it lies; NULL where none is born.
        """
        found = self.similarity(on=on, corrected=corrected, **asked)
        return births.family_bands(found, shares, corrected=corrected, every_pair=every_pair)

    def dendrogram(
        self, *, corrected: bool = False, every_pair: bool = False, on: str = "signed", **asked: Unpack[Asked]
    ) -> Result:
        """The joins of families as alpha falls, one row each: `first` and `second` join at `alpha`.

        Single linkage, or with `every_pair` complete linkage. A note gives the order of the circuits from left to
        right.
        """
        found = self.similarity(on=on, corrected=corrected, **asked)
        return families.dendrogram(found, corrected=corrected, every_pair=every_pair)

    def embedding(
        self, layout: str = "mds", *, corrected: bool = False, on: str = "signed", **asked: Unpack[Asked]
    ) -> Result:
        """The circuits as points of a plane, one row each: `x` and `y`.

        The `layout` is that of classical scaling (mds) or of t-sne.

        Raises UsageError for t-sne where scikit-learn is not installed.
        """
        found = self.similarity(on=on, corrected=corrected, **asked)
        return embedding.embedding(found, layout, corrected=corrected)
