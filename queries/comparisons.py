"""The questions that compare circuits with each other, as methods that `Database` has.

Each opens the file, reads the scores or finds in the cache what was made of them, closes the file, and computes with it
free for a writer. What took long is kept in the file if that can be done at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import duckdb
import numpy as np

from circuitdb import cache
from circuitdb.connection import reading
from circuitdb.errors import UsageError
from circuitdb.queries import (
    barcode,
    crossing,
    embedding,
    families,
    matrix,
    measures,
    reliability,
    similarity,
    stability,
)
from circuitdb.queries.asked import Asked, parted
from circuitdb.queries.coefficients import CORRECTABLE, NAMES
from circuitdb.queries.comparison import Comparison
from circuitdb.queries.crossing import Crossing
from circuitdb.queries.matrix import ScoreMatrix, Subjects, require_side
from circuitdb.queries.measures import Measures
from circuitdb.queries.partition import parted as parted_by
from circuitdb.queries.partition import require_known
from circuitdb.queries.result import Result
from circuitdb.queries.selection import Selection, Where, select
from circuitdb.queries.similarity import Similarity


@dataclass(frozen=True)
class _Pending:
    """A set of circuits and their measures: from the cache, or still to be made of the scores."""

    key: str | None
    kept: Measures | None
    scores: tuple[ScoreMatrix, ...]


class Comparisons:
    """See `Database`."""

    path: str
    timeout: float
    keeps: bool

    def reliability(self, *, on: str = "signed", wanted: float = reliability.ENOUGH, **asked: Unpack[Asked]) -> Result:
        """How far each circuit agrees with itself, one row each.

        `fold_correlation` is the mean similarity of the two halves of its examples, over all splits of its folds,
        `reliability` the same stepped up by Spearman-Brown to all of them (at most 1), `examples_needed` how many
        examples would bring it to `wanted` (0.5). NULL, with the `reason`, where there are fewer than two folds or
        their correlation is undefined.
        """
        where, how = parted(asked)
        reliability.examples_needed(0.5, 1, wanted)  # refuses what can't be wanted
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, where)
            parts = list(chosen.groups().values())
            found = [self._look(connection, [part], how, on, "reliability") for part in parts]
        done = [
            (part, reliability.stepped_up(self._measure(one, how, on, "reliability").halves, _n_folds(part), how.kind))
            for part, one in zip(parts, found, strict=True)
        ]
        return reliability.reliability(done, on=on, how=how, wanted=wanted, notes=chosen.notes)

    def similarity(
        self, *, corrected: bool = False, intervals: bool = False, on: str = "signed", **asked: Unpack[Asked]
    ) -> Similarity:
        """The similarity of every two circuits, with the reliabilities that bound it.

        `kind` is spearman (rho, the default), pearson, kendall (tau-b), cosine, overlap (Jaccard of the `top` strongest
        edges) or kappa (the same corrected for chance). `layers`, `source`, `target`, `qkv`, `shared`, `nonzero` and
        `level` say over which edges, or nodes: see `Comparison`.

        The result has the plain and the corrected matrix (similarity / sqrt(reliability_a reliability_b), which may
        exceed 1); `corrected` only decides which of them `.wide()` shows. With `intervals` each pair has one of 95%,
        plain and corrected, by leaving out folds of the examples; it takes three folds or more. NULL, with the reason,
        where a similarity or its correction is undefined.

        Raises UsageError if the circuits are of different graph shapes.
        """
        where, how = parted(asked)
        what = "deleted" if intervals else "pairs"
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, where).compared(how)
            found = self._look(connection, [chosen], how, on, what)
        _require_correctable(how, corrected)
        return similarity.assembled(
            Subjects.of(chosen, on), self._measure(found, how, on, what), how, corrected=corrected
        )

    def between(
        self, first: Where, second: Where, *, corrected: bool = False, on: str = "signed", **asked: Unpack[Asked]
    ) -> Crossing:
        """The similarity of every circuit of a first set with every one of a second.

        `first` and `second` are filters, such as {"prompt_style": "few-shot"} and {"prompt_style": "chain-of-thought"};
        those given by name hold for both sets. Circuits of one subtask are matches, marked in the table, and their mean
        is in the notes.

        Raises UsageError if the circuits are of different graph shapes.
        """
        where, how = parted(asked)
        with reading(self.path, timeout=self.timeout) as connection:
            one, two = (select(connection, {**where, **side}) for side in (first, second))
            Selection((*one.members, *two.members)).require_alike(how)
            one, two = one.compared(how), two.compared(how)
            found = self._look(connection, [one, two], how, on, "between")
        _require_correctable(how, corrected)
        match = np.array(
            [[(a.group.task, a.subtask) == (b.group.task, b.subtask) for b in two.members] for a in one.members], bool
        ).reshape(len(one.members), len(two.members))
        return crossing.assembled(
            Subjects.of(one, on),
            Subjects.of(two, on),
            match,
            self._measure(found, how, on, "between"),
            how,
            corrected=corrected,
        )

    def stability(
        self,
        *,
        by: str | Sequence[str] = (),
        over: str = "subtasks",
        on: str = "signed",
        **asked: Unpack[Asked],
    ) -> Result:
        """Stability (Definition 4): the mean similarity of circuits of distinct subtasks, one row a group.

        A group is a model, a task and one way of scoring (method, steps, grid, metric, ablation, prompt style, shots,
        seed, examples, number format), and with `by` a value of each of these parameters of the subtasks:
        `by="digits_a"` gives the stability within every number of digits of a, across those of b. A pair never mixes
        two groups, nor is it of one subtask. Fields of a group are shown where they differ between rows.

        - `stability`: the mean over the `n_pairs` pairs that have a similarity; `stability_with_diagonal` counts each
          circuit with itself too. `low` and `high` bound it with 95% confidence, from resampled subtasks (other
          subtasks of the kind), or with `over="folds"` from folds left out (these subtasks, other examples); NULL for
          fewer than 4 subtasks, or 3 folds.
        - `ceiling`: the mean of sqrt(reliability_a reliability_b) over the `n_pairs_corrected` of them where both
          reliabilities are over 0.
        - `corrected`: the mean similarity of these same pairs, divided by `ceiling`. A ratio of means is not ruled by
          the pairs whose reliability is near 0, as a mean of ratios would be. NULL, with the reason in `warning`,
          where fewer than half of the pairs have a ceiling.
        """
        where, how = parted(asked)
        what = "deleted" if stability.require_over(over) == "folds" else "pairs"
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, where)
            names = require_known(chosen, [by] if isinstance(by, str) else by)
            groups = chosen.groups()
            found = [self._look(connection, [part], how, on, what) for part in groups.values()]
        cells: dict[stability.Cell, stability.Measured] = {}
        for (group, part), one in zip(groups.items(), found, strict=True):
            measured = self._measure(one, how, on, what)
            whole = similarity.assembled(Subjects.of(part, on), measured, how)
            for values, rows in parted_by(part, names).items():
                cells[group, values] = stability.Measured(
                    part.part(rows),
                    whole.part(rows),
                    tuple(part.members[i].n_examples for i in rows),
                    None if measured.deleted is None else measured.deleted.part(rows),
                )
        return stability.stability(cells, on=on, by=names, over=over, how=how, notes=chosen.notes)

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

    def _look(
        self, connection: duckdb.DuckDBPyConnection, parts: Sequence[Selection], how: Comparison, on: str, what: str
    ) -> _Pending:
        """The measures of circuits from the cache, else their scores from the file."""
        require_side(on)
        for part in parts:
            part.require_alike(how)
        key = measures.key(parts, how, on, what) if self.keeps and measures.worth_keeping(parts) else None
        content = cache.find(connection, key) if key else None
        kept = measures.unpacked(content) if content else None
        scores = () if kept else tuple(matrix.read(connection, part, folds=True, how=how) for part in parts)
        return _Pending(key, kept, scores)

    def _measure(self, pending: _Pending, how: Comparison, on: str, what: str) -> Measures:
        """The measures, made and kept if they were not found. The file must be closed."""
        if pending.kept is not None:
            return pending.kept
        seen = [scores.seen(on) for scores in pending.scores]
        if what == "between":
            made = measures.measured_between(seen[0], seen[1], how)
        else:
            made = measures.measured(seen[0], how, pairs=what != "reliability", deleted=what == "deleted")
        if pending.key:
            cache.keep(self.path, pending.key, measures.packed(made))
        return made


def _n_folds(part: Selection) -> list[int]:
    return [member.n_folds for member in part.members]


def _require_correctable(how: Comparison, corrected: bool) -> None:
    if corrected and how.kind not in CORRECTABLE:
        raise UsageError(
            f"There is no correction for noise for {NAMES[how.kind]}; ask without corrected, or for a kind that has "
            f"one: {', '.join(CORRECTABLE)}."
        )
