"""The questions, as methods: each opens the file, asks, closes it, and computes with the file free for a writer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import pyarrow as pa

from circuitdb.connection import reading
from circuitdb.errors import UsageError
from circuitdb.queries import arguments, families, matrix, named, reliability, schema, similarity, stability
from circuitdb.queries.asking import with_models
from circuitdb.queries.evaluations import Evaluations
from circuitdb.queries.hardcircuits import HardCircuits
from circuitdb.queries.result import Result, count
from circuitdb.queries.selection import Where, select
from circuitdb.queries.similarity import Similarity
from circuitdb.queries.statement import run as run_sql


@dataclass(frozen=True)
class Shown:
    """Everything about one circuit.

    Attributes:
        provenance: one row, all that the store knows of the run, its model and its subtask.
        reliability: one row on signed scores, one on magnitudes.
        edges: the strongest.
        skipped: the questions that were left out, and why.
    """

    provenance: Result
    reliability: Result
    edges: Result
    skipped: Result


class Database(HardCircuits, Evaluations):
    """A circuit database, open for questions.

    Every question about circuits takes the filters `model`, `task`, `subtask`, `method`, `metric` (a name or several),
    `shots`, `seed`, `examples` (drawn for a circuit, scored or skipped) and `circuits` (a number or several); without
    them it is about all circuits. Questions about scores take `on="signed"` (the paper's definition, the default) or
    `on="magnitude"` (absolute values). Different models of one name are shown as
    name@revision or name@1a2b3c4d (the digest of the weights), with a note.

    Each method raises UsageError for a name that the database does not have, MissingDatabase, SchemaMismatch or
    LockedDatabase where the file can't be read. An empty database gives empty answers.
    """

    def circuits(self, **where: Unpack[Where]) -> Result:
        """The circuits with their provenance, one row each, sorted by model, task, method and subtask.

        `accuracy` is the model's share of right answers (0..1) on the circuit's questions, `wall_time_s` in seconds.
        """
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, where)
            table = with_models(connection, named.run(connection, "circuits", circuits=chosen.ids))
        return Result(table, count(len(table), "circuit"), chosen.notes)

    def reliability(self, *, on: str = "signed", **where: Unpack[Where]) -> Result:
        """How far each circuit agrees with itself, one row each.

        `fold_correlation` is the mean Spearman's rho between the folds of its examples, `reliability` the same stepped
        up by Spearman-Brown to all of them (at most 1), `examples_needed` how many examples would bring it to 0.5.
        NULL, with the `reason`, where there are fewer than two folds or their correlation is undefined.
        """
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, where)
            parts = [(part, matrix.read(connection, part, folds=True)) for part in chosen.groups().values()]
        seen = [(part, scores.seen(on)) for part, scores in parts]
        return reliability.reliability(seen, on=on, notes=chosen.notes)

    def similarity(self, *, corrected: bool = False, on: str = "signed", **where: Unpack[Where]) -> Similarity:
        """Spearman's rho over all edges of every two circuits, with the reliabilities that bound it.

        The result has the plain and the corrected matrix (rho / sqrt(reliability_a reliability_b), which may exceed 1);
        `corrected` only decides which of them `.wide()` shows. NULL, with the reason, where rho or the correction is
        undefined.

        Raises UsageError if the circuits are of different graph shapes.
        """
        return similarity.similarity(self._scores(where, on, folds=True), corrected=corrected)

    def stability(self, *, on: str = "signed", **where: Unpack[Where]) -> Result:
        """Stability (Definition 4): the mean similarity of circuits of distinct subtasks, one row a group.

        A group is a model, a task and one way of scoring (method, steps, grid, metric, ablation, prompt style, shots,
        seed, examples, number format): a pair never mixes two. Nor is it of one subtask. Fields of a group are shown
        where they differ between rows.

        - `stability`: the mean over the `n_pairs` pairs that have a similarity; `stability_with_diagonal` counts each
          circuit with itself too.
        - `ceiling`: the mean of sqrt(reliability_a reliability_b) over the `n_pairs_corrected` of them where both
          reliabilities are over 0.
        - `corrected`: the mean similarity of these same pairs, divided by `ceiling`. A ratio of means is not ruled by
          the pairs whose reliability is near 0, as a mean of ratios would be. NULL, with the reason in `warning`,
          where fewer than half of the pairs have a ceiling.
        """
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, where)
            parts = {g: (part, matrix.read(connection, part, folds=True)) for g, part in chosen.groups().items()}
        seen = {group: (part, scores.seen(on)) for group, (part, scores) in parts.items()}
        return stability.stability(seen, on=on, notes=chosen.notes)

    def families(
        self, alpha: float | None = None, *, corrected: bool = False, on: str = "signed", **where: Unpack[Where]
    ) -> Result:
        """Circuit families (Definition 5): connected components of similarity >= alpha, one row a circuit.

        Families are named A, B, ... by size; `subtask` is the circuit's label in the selection. `medoid` marks the
        member most similar to the others, `lowest_within` is the lowest similarity of two members, which may be under
        alpha: the relation is not transitive. Without `alpha` the middle of the widest range with neither one family
        nor all apart is taken; the title says so.
        """
        return families.families(self.similarity(on=on, corrected=corrected, **where), alpha, corrected=corrected)

    def family_sweep(self, *, corrected: bool = False, on: str = "signed", **where: Unpack[Where]) -> Result:
        """Every alpha at which the number of families changes, exactly, ascending.

        `n_families` is the number at that alpha, and below it down to the row before; `n_above` that just above it.
        """
        return families.family_sweep(self.similarity(on=on, corrected=corrected, **where), corrected=corrected)

    def top_edges(self, circuit: int, n: int = 20) -> Result:
        """The `n` edges of a circuit with the largest absolute scores, ties by edge id.

        A positive score says that ablating the edge raises the metric (nats for kl).
        """
        circuit, n = arguments.whole("circuit", circuit), arguments.amount("edge", n)
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, {"circuits": circuit})
            if not chosen.members:
                raise UsageError(f"There is no circuit {circuit}; the database holds none yet.")
            table = named.run(connection, "top_edges", circuit=circuit, n=n)
        return Result(table, f"Strongest {count(len(table), 'edge')} of circuit {circuit} ({', '.join(chosen.labels)})")

    def node_scores(self, circuit: int) -> Result:
        """The score of every node of a circuit, layer by layer: the sum over its outgoing edges, NULL if none has one.

        A positive score says that ablating the node's edges raises the metric (nats for kl).
        """
        circuit = arguments.whole("circuit", circuit)
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, {"circuits": circuit})
            if not chosen.members:
                raise UsageError(f"There is no circuit {circuit}; the database holds none yet.")
            table = named.run(connection, "node_scores", circuit=circuit)
        return Result(table, f"Scores of {count(len(table), 'node')} of circuit {circuit} ({', '.join(chosen.labels)})")

    def show(self, circuit: int, *, edges: int = 10) -> Shown:
        """Everything about one circuit: provenance, reliability, its strongest `edges`, the questions left out."""
        circuit = arguments.whole("circuit", circuit)
        strongest = self.top_edges(circuit, edges)
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, {"circuits": circuit})
            scores = matrix.read(connection, chosen, folds=True)
            provenance = named.run(connection, "provenance", circuit=circuit)
            skipped = named.run(connection, "skipped", circuit=circuit)
        sides = [reliability.reliability([(chosen, scores.seen(on))], on=on) for on in matrix.SIDES]
        left_out = f"{count(len(skipped), 'question')} left out" if len(skipped) else "No question was left out"
        return Shown(
            Result(provenance, f"Circuit {circuit}"),
            Result(
                pa.concat_tables(side.table for side in sides),
                "Reliability",
                tuple(dict.fromkeys(note for side in sides for note in side.notes)),
            ),
            strongest,
            Result(skipped, left_out),
        )

    def schema(self, name: str | None = None) -> Result:
        """Tables, views and macros that SQL can ask; with the name of one, its columns.

        Raises UsageError, with the nearest name, if there is nothing of that name.
        """
        with reading(self.path, timeout=self.timeout) as connection:
            return schema.describe(connection, name)

    def sql(self, statement: str, *, dialect: str = "duckdb") -> Result:
        """Ask in SQL: one statement that only reads (SELECT, WITH, FROM, VALUES, DESCRIBE, SUMMARIZE, EXPLAIN, SHOW).

        A statement in another `dialect`, such as postgres, spark or bigquery, is put into DuckDB's first.

        Raises UsageError, before anything runs, for a statement that writes, attaches, sets or reads files, and for one
        that is wrong, with the nearest name.
        """
        if not isinstance(statement, str):
            raise UsageError(f"A statement is a text, such as 'FROM circuits', not {type(statement).__name__}.")
        with reading(self.path, timeout=self.timeout) as connection:
            return run_sql(connection, statement, dialect)
