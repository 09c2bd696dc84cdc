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
        `medoid` marks the member most similar to the others. `lowest_within` and `mean_within` are the lowest and the
        mean similarity of two members (in a component the lowest may be under alpha), `lowest_ceiling` that pair's
        ceiling sqrt(reliability_a reliability_b), `mean_ceiling` the mean of those of the pairs that have one.
        `silhouette` (-1..1) says how much nearer a circuit is to its own family than to the next. With `corrected` the
        similarities are those already divided by their ceilings; what is over 1 stays so. Without `alpha` the middle of
        the widest range with neither one family nor all apart is taken; the title says so.

        >>> found = db.families(0.9)
        >>> found.title
        '3 families of 4 circuits at alpha = 0.9 (similarity, signed scores)'
        >>> for row in found.rows():
        ...     print(row["family"], row["subtask"], row["lowest_within"] and round(row["lowest_within"], 3))
        A 1+1 0.976
        A 2+2 0.976
        B 1+2 None
        C 2+1 None
        >>> round(found.rows()[0]["lowest_ceiling"], 3)
        0.988
        >>> db.families().title.partition(":")[0]
        '2 families of 4 circuits at alpha = 0.7143 (similarity, signed scores)'
        """
        found = self.similarity(on=on, corrected=corrected, **asked)
        return families.families(found, alpha, corrected=corrected, every_pair=every_pair)

    def family_sweep(
        self, *, corrected: bool = False, every_pair: bool = False, on: str = "signed", **asked: Unpack[Asked]
    ) -> Result:
        """Every alpha at which the number of families changes, exactly, ascending.

        `n_families` is the number at that alpha, and below it down to the row before; `n_above` that just above it.

        >>> found = db.family_sweep()
        >>> [(round(row["alpha"], 3), row["n_families"]) for row in found.rows()]
        [(0.548, 1), (0.881, 2), (0.976, 3)]
        """
        found = self.similarity(on=on, corrected=corrected, **asked)
        return families.family_sweep(found, corrected=corrected, every_pair=every_pair)

    def barcode(
        self, *, share: float = barcode.SHARE, corrected: bool = False, on: str = "signed", **asked: Unpack[Asked]
    ) -> Result:
        """The H0 barcode, one row a bar: a family from alpha = 1 down to where it joins another (`joins_at`).

        `circuits` are its members then, `into` those of the family it joins; NULL where it joins none. `ceiling` is
        that of the pair that joins them. A note gives the narrowest band of alpha in which `share` of the families
        join.

        >>> for row in db.barcode().rows():
        ...     print(row["circuits"], "joins", row["into"])
        1+1, 1+2, 2+1, 2+2 joins None
        2+1 joins 1+1, 1+2, 2+2
        1+2 joins 1+1, 2+2
        2+2 joins 1+1
        >>> db.barcode(share=0.5).notes[-1]
        '50% of the joins of families lie between alpha = 0.881 and 0.976, the narrowest such band.'
        """
        found = self.similarity(on=on, corrected=corrected, **asked)
        return barcode.barcode(found, corrected=corrected, share=share)

    def family_births(
        self, *, corrected: bool = False, every_pair: bool = False, on: str = "signed", **asked: Unpack[Asked]
    ) -> Result:
        """How the births of families spread over alpha, one row an alpha at which some are born, ascending.

        A family is born where two part as alpha rises: `n_born` of them just above this `alpha`, `n_so_far` up to
        there, which is the `share` (0..1) of all births.

        >>> for row in db.family_births().rows():
        ...     print(f"{row['share']:.0%} of the families have appeared by {row['alpha']:.3f}")
        33% of the families have appeared by 0.548
        67% of the families have appeared by 0.881
        100% of the families have appeared by 0.976
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

        >>> for row in db.family_bands([0.5, 1]).rows():
        ...     print(row["n_born"], *(round(row[name], 3) for name in ("appeared_by", "low", "high")))
        2 0.881 0.881 0.976
        3 0.976 0.548 0.976
        """
        found = self.similarity(on=on, corrected=corrected, **asked)
        return births.family_bands(found, shares, corrected=corrected, every_pair=every_pair)

    def dendrogram(
        self, *, corrected: bool = False, every_pair: bool = False, on: str = "signed", **asked: Unpack[Asked]
    ) -> Result:
        """The joins of families as alpha falls, one row each: `first` and `second` join at `alpha`.

        Single linkage, or with `every_pair` complete linkage. `ceiling` is that of the pair whose similarity is `alpha`
        (of several the first). A note gives the order of the circuits from left to right.

        >>> for row in db.dendrogram().rows():
        ...     print(f"{row['first']} and {row['second']} at {row['alpha']:.3f}")
        1+1 and 2+2 at 0.976
        1+1, 2+2 and 1+2 at 0.881
        1+1, 1+2, 2+2 and 2+1 at 0.548
        """
        found = self.similarity(on=on, corrected=corrected, **asked)
        return families.dendrogram(found, corrected=corrected, every_pair=every_pair)

    def embedding(
        self, layout: str = "mds", *, corrected: bool = False, on: str = "signed", **asked: Unpack[Asked]
    ) -> Result:
        """The circuits as points of a plane, one row each: `x` and `y`.

        The `layout` is that of classical scaling (mds) or of t-sne.

        Raises UsageError for t-sne where scikit-learn is not installed.

        >>> found = db.embedding()
        >>> found.columns
        ['circuit_id', 'subtask', 'x', 'y', 'reliability']
        >>> found.title
        'Map of 4 circuits by mds (similarity, signed scores)'
        """
        found = self.similarity(on=on, corrected=corrected, **asked)
        return embedding.embedding(found, layout, corrected=corrected)
