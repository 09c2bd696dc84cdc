"""The questions that compare circuits with each other, as methods that `Database` has.

Each opens the file, reads the scores or finds in the cache what was made of them, closes the file, and computes with it
free for a writer. What took long is kept in the file if that can be done at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np

from circuitdb.connection import reading
from circuitdb.queries import (
    conditions,
    contrast,
    crossing,
    generalisation,
    matrix,
    named,
    nulls,
    reliability,
    similarity,
    stability,
)
from circuitdb.queries.asked import Asked, parted
from circuitdb.queries.comparison import Comparison, require_correctable
from circuitdb.queries.crossing import Crossing
from circuitdb.queries.features import strata
from circuitdb.queries.filters import Where
from circuitdb.queries.matrix import Subjects
from circuitdb.queries.measuring import Measuring
from circuitdb.queries.partition import parted as parted_by
from circuitdb.queries.partition import require_known
from circuitdb.queries.result import Result
from circuitdb.queries.selection import Selection, select
from circuitdb.queries.similarity import Similarity


class Comparisons(Measuring):
    """See `Database`."""

    def reliability(self, *, on: str = "signed", wanted: float = reliability.ENOUGH, **asked: Unpack[Asked]) -> Result:
        """How far each circuit agrees with itself, one row each.

        `fold_correlation` is the mean similarity of the two halves of its examples, over all splits of its folds,
        `reliability` the same stepped up by Spearman-Brown to all of them (at most 1), `examples_needed` how many
        examples would bring it to `wanted` (0.5). NULL, with the `reason`, where there are fewer than two folds or
        their correlation is undefined.

        >>> for row in db.reliability().rows():
        ...     print(row["subtask"], round(row["fold_correlation"], 3), round(row["reliability"], 3))
        1+1 0.976 0.988
        1+2 0.976 0.988
        2+1 0.976 0.988
        2+2 0.976 0.988
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

        >>> db.similarity().wide()
        Similarity of 4 circuits: Spearman's rho, signed scores
        label  reliability     1+1     1+2     2+1     2+2
        1+1          0.988       1  0.8095  0.5238  0.9762
        1+2          0.988  0.8095       1  0.5238   0.881
        2+1          0.988  0.5238  0.5238       1  0.5476
        2+2          0.988  0.9762   0.881  0.5476       1
        >>> db.similarity(circuits=[1, 4], kind="overlap", top=4).rows()[0]["similarity"]
        1.0
        """
        where, how = parted(asked)
        require_correctable(how, corrected)
        what = "deleted" if intervals else "pairs"
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, where).compared(how)
            found = self._look(connection, [chosen], how, on, what)
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

        >>> db.between({"subtask": "1+1"}, {"subtask": ["1+2", "2+2"]})
        Similarity of 1 circuit to 2 circuits: Spearman's rho, signed scores
        a_id  a    b_id  b    same_subtask  similarity  ceiling  corrected  n_edges
           1  1+1     2  1+2  False             0.8095    0.988     0.8194        8
           1  1+1     4  2+2  False             0.9762    0.988     0.9881        8
        - Circuits of distinct subtasks: mean similarity 0.893 over 2 pairs, mean ceiling 0.988.
        """
        where, how = parted(asked)
        require_correctable(how, corrected)
        with reading(self.path, timeout=self.timeout) as connection:
            one, two = (select(connection, {**where, **side}) for side in (first, second))
            Selection((*one.members, *two.members)).require_alike(how)
            one, two = one.compared(how), two.compared(how)
            found = self._look(connection, [one, two], how, on, "between")
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

    def nulls(self, *, on: str = "signed", **asked: Unpack[Asked]) -> Result:
        """The similarity of every two circuits beside what any two circuits of the model share, one row a pair.

        - `permuted`, `permuted_sd`: the exact mean and standard deviation of the similarity when the scores of one
          circuit are permuted among edges of the same kind and layer; `z` is the distance from that mean in standard
          deviations. For spearman, pearson and cosine.
        - `other_tasks`: the mean similarity of the two to circuits of other tasks of the same model, scored in the same
          way; at most 64 of them are taken.

        >>> (row,) = db.nulls(circuits=[1, 3]).rows()
        >>> round(row["similarity"], 3), row["other_tasks"]
        (0.524, None)
        """
        where, how = parted(asked)
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, where).compared(how)
            found = self._look(connection, [chosen], how, on, "pairs")
            others, places = nulls.comparable(chosen, select(connection, {}))
            matrices = [matrix.read(connection, part, how=how) for part in (chosen, others)]
        whole = similarity.assembled(Subjects.of(chosen, on), self._measure(found, how, on, "pairs"), how)
        edges, elsewhere = (scores.seen(on) for scores in matrices)
        return nulls.nulls(whole, nulls.against(edges, strata(chosen, how), elsewhere, places, how), how)

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

        >>> (row,) = db.stability().rows()
        >>> row["n_pairs"], round(row["stability"], 3), round(row["ceiling"], 3)
        (6, 0.71, 0.988)
        >>> [round(row["stability"], 3) for row in db.stability(by="digits_a").rows()]
        [0.81, 0.548]
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

    def compare(
        self,
        by: str,
        values: str | Sequence[object] = (),
        *,
        relabellings: int = contrast.RELABELLINGS,
        on: str = "signed",
        **asked: Unpack[Asked],
    ) -> Result:
        """A test between two conditions, one row a statistic: do they differ in stability, do they change the circuit?

        `by` is a parameter of the subtasks (parentheses) or a field of the scoring (prompt_style, model, shots),
        `values` the two of it that are compared, where there are more.

        - `stability`: of the first and of the second condition, and their difference, the `effect`.
        - `separation`: the mean of these, the mean similarity across the conditions, and the difference: over 0 where
          the condition changes the circuit.
        - `corrected ...`: the same divided by the ceilings; `ceiling`: the ceilings themselves.

        `p` comes from exchanging the labels of the circuits, within a subtask where both conditions have it; `low` and
        `high` bound the effect with 95% confidence, from resampled subtasks; NULL for fewer than 4 of a condition.

        Raises UsageError unless `by` has two values.

        >>> found = {row["statistic"]: row for row in db.compare("digits_a").rows()}
        >>> [round(found["stability"][name], 3) for name in ("first", "second", "effect")]
        [0.81, 0.548, 0.262]
        """
        where, how = parted(asked)
        with reading(self.path, timeout=self.timeout) as connection:
            everything = select(connection, where)
            (name,) = require_known(everything, [by])
            part, two = conditions.conditions(everything, name, [values] if isinstance(values, str) else values)
            chosen = part.described(apart_from=name)
            unlike = chosen.unlike(how)
            sides = [list(range(len(chosen.members)))]
            if unlike is not None:
                sides = [np.flatnonzero(side).tolist() for side in (two.first, ~two.first)]
            found = [self._look(connection, [chosen.part(rows)], how, on, "pairs") for rows in sides]
        alike = [
            similarity.assembled(Subjects.of(chosen.part(rows), on), self._measure(one, how, on, "pairs"), how)
            for rows, one in zip(sides, found, strict=True)
        ]
        notes = [
            note if unlike is None else f"{name} {value}: {note}"
            for value, side in zip(two.names, alike, strict=False)
            for note in side.notes
        ]
        subjects = replace(Subjects.of(chosen, on), notes=(*chosen.notes, *notes))
        whole = similarity.side_by_side(subjects, list(zip(sides, alike, strict=True)), how)
        return contrast.contrast(whole, two, name, relabellings=relabellings, how=how, unlike=unlike)

    def commutativity(self, parameters: Sequence[str] = (), *, on: str = "signed", **asked: Unpack[Asked]) -> Result:
        """The circuit of (a, b) beside that of (b, a), one row a pair, with the gap of the model's accuracy on the two.

        `parameters` are the two whose values are exchanged; without them the only two that are whole numbers. A note
        has the mean similarity of these pairs and of all others.

        Raises UsageError where there are not two such parameters.

        >>> (row,) = db.commutativity().rows()
        >>> row["a"], row["b"], round(row["similarity"], 3), round(row["accuracy_gap"], 3)
        ('1+2', '2+1', 0.524, 0.1)
        """
        parts, accuracy, how, notes = self._groups(on, asked)
        whole = Selection(tuple(member for part in parts for member in part.selection.members))
        if not whole.members:
            return generalisation.pairs((), lambda _: iter(()), {}, what="Commutativity", on=on, how=how, notes=notes)
        one, two = generalisation.operands(whole, parameters)
        return generalisation.pairs(
            parts,
            lambda selection: generalisation.swapped(selection, one, two),
            accuracy,
            what=f"Commutativity of {one} and {two}",
            on=on,
            how=how,
            notes=notes,
        )

    def neighbours(self, parameters: Sequence[str] = (), *, on: str = "signed", **asked: Unpack[Asked]) -> Result:
        """The circuits of subtasks that differ by 1 in one parameter, one row a pair, with the gap of the accuracy.

        `parameters` are those to step through; without them all that are whole numbers.

        >>> for row in db.neighbours(["digits_b"]).rows():
        ...     print(row["a"], row["b"], round(row["similarity"], 3))
        1+1 1+2 0.81
        2+1 2+2 0.548
        """
        parts, accuracy, how, notes = self._groups(on, asked)
        whole = Selection(tuple(member for part in parts for member in part.selection.members))
        names = require_known(whole, parameters, fields=False) or tuple(generalisation.whole_numbers(whole))
        return generalisation.pairs(
            parts,
            lambda selection: generalisation.adjacent(selection, names),
            accuracy,
            what="Neighbours",
            on=on,
            how=how,
            notes=notes,
        )

    def _groups(
        self, on: str, asked: Mapping[str, object]
    ) -> tuple[list[generalisation.Part], dict[int, float | None], Comparison, tuple[str, ...]]:
        """(the groups with their similarity, the accuracy of each circuit's model on it, how, notes)."""
        where, how = parted(asked)
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, where)
            groups = list(chosen.groups().values())
            found = [self._look(connection, [part], how, on, "pairs") for part in groups]
            rows = named.run(connection, "circuits", circuits=chosen.ids).select(["circuit_id", "accuracy"]).to_pylist()
        parts = [
            generalisation.Part(
                part, similarity.assembled(Subjects.of(part, on), self._measure(one, how, on, "pairs"), how)
            )
            for part, one in zip(groups, found, strict=True)
        ]
        return parts, {row["circuit_id"]: row["accuracy"] for row in rows}, how, chosen.notes


def _n_folds(part: Selection) -> list[int]:
    return [member.n_folds for member in part.members]
