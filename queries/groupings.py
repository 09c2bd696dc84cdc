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

        >>> db.families(0.9)
        3 families of 4 circuits at alpha = 0.9 (similarity, signed scores)
        family  size  circuit_id  subtask  medoid  lowest_within  silhouette  reliability
        A          2           1  1+1      True           0.9762       0.875        0.988
        A          2           4  2+2      False          0.9762         0.8        0.988
        B          1           2  1+2      True             NULL           0        0.988
        C          1           3  2+1      True             NULL           0        0.988
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

        `circuits` are its members then, `into` those of the family it joins; NULL where it joins none. A note gives the
        narrowest band of alpha in which `share` of the families join.

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

        Single linkage, or with `every_pair` complete linkage. A note gives the order of the circuits from left to
        right.

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
