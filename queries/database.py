"""The questions, as methods: each opens the file, asks, closes it, and computes with the file free for a writer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack, cast

import duckdb
import pyarrow as pa

from circuitdb.connection import reading
from circuitdb.errors import UsageError
from circuitdb.evals import writer
from circuitdb.evals.columns import Columns
from circuitdb.evals.files import read as read_evaluations
from circuitdb.evals.writer import Mapping
from circuitdb.graph import GraphShape
from circuitdb.queries import (
    arguments,
    containment,
    correlation,
    evaluations,
    families,
    inclusion,
    matrix,
    metrics,
    named,
    order,
    reliability,
    schema,
    similarity,
    stability,
)
from circuitdb.queries.columns import texts
from circuitdb.queries.containment import Containment
from circuitdb.queries.correlation import Correlation
from circuitdb.queries.cuts import Cut, hard
from circuitdb.queries.matrix import ScoreMatrix
from circuitdb.queries.models import model_names
from circuitdb.queries.order import Order
from circuitdb.queries.result import Result, count, enumeration
from circuitdb.queries.selection import Where, select, wanted
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


class Database:
    """A circuit database, open for questions.

    Every question about circuits takes the filters `model`, `task`, `subtask`, `method`, `metric` (a name or several),
    `shots`, `seed`, `examples` (drawn for a circuit, scored or skipped) and `circuits` (a number or several); without
    them it is about all circuits. Questions about scores take `on="signed"` (the paper's definition, the default) or
    `on="magnitude"` (absolute values). Different models of one name are shown as
    name@revision or name@1a2b3c4d (the digest of the weights), with a note.

    Each method raises UsageError for a name that the database does not have, MissingDatabase, SchemaMismatch or
    LockedDatabase where the file can't be read. An empty database gives empty answers.
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 10.0) -> None:
        """See `circuitdb.open`."""
        self.path = os.fspath(path)
        self.timeout = arguments.patience(timeout)
        with reading(self.path, timeout=self.timeout):
            pass

    def __repr__(self) -> str:
        return f"Database({self.path!r})"

    def circuits(self, **where: Unpack[Where]) -> Result:
        """The circuits with their provenance, one row each, sorted by model, task, method and subtask.

        `accuracy` is the model's share of right answers (0..1) on the circuit's questions, `wall_time_s` in seconds.
        """
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, where)
            table = _with_models(connection, named.run(connection, "circuits", circuits=chosen.ids))
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

    def containment(
        self,
        top: int | None = None,
        *,
        share: float | None = None,
        threshold: float | None = None,
        greedy: int | None = None,
        signed: bool = False,
        prune: bool = False,
        **where: Unpack[Where],
    ) -> Containment:
        """How much of one hard circuit is in another, for ordered pairs, beside what chance would share.

        A circuit is cut to its `top` strongest edges (200 if no cut is named), to a `share` of the graph's edges, to
        those of a strength of `threshold` or more, or to `greedy` edges grown from the logits. Strength is the absolute
        score, or with `signed` the score itself; `prune` keeps only edges on a path from input to logits. See `Cut`.

        `share_of_a` is the share of a's edges that are in b, `mutual` the lesser of that and b's in a, `jaccard` the
        shared of all edges in either, all 0..1; `expected_...` are their means for random circuits of the same sizes,
        and `p_value` is how often these share as many edges or more (hypergeometric). `.wide()` has the shares as a
        matrix.

        Raises UsageError if the circuits are of different graph shapes, or for two cuts at once.
        """
        cut = Cut.of(top=top, share=share, threshold=threshold, greedy=greedy, signed=signed, prune=prune)
        scores, shape = self._graph_scores(where)
        return containment.containment(scores, cut, shape)

    def containment_order(
        self,
        tolerance: float = 0.0,
        *,
        top: int | None = None,
        share: float | None = None,
        threshold: float | None = None,
        greedy: int | None = None,
        signed: bool = False,
        prune: bool = False,
        **where: Unpack[Where],
    ) -> Order:
        """Which hard circuit is a sub-circuit of which: the covers of the containment order (Hasse diagram).

        A circuit is in another if all but a `tolerance` of its edges are; circuits that lie in each other count as one.
        The cut is that of `containment`.
        """
        cut = Cut.of(top=top, share=share, threshold=threshold, greedy=greedy, signed=signed, prune=prune)
        scores, shape = self._graph_scores(where)
        return order.order(containment.containment(scores, cut, shape), tolerance)

    def inclusion(
        self, cuts: Sequence[Cut] = (Cut.of(),), *, consensus: float = 0.8, least: float = 0.0, **where: Unpack[Where]
    ) -> Result:
        """How many of the hard circuits an edge is in, one row an edge that is in any, the most frequent first.

        Every circuit cut in every way of `cuts` counts. `inclusion` is the share of them (0..1), of which rows under
        `least` are left out; `kind` is core (in all), consensus (in at least a share of `consensus`) or some, and
        `only_in` names the circuit of an edge that no other has. The title counts them, beside what chance would give
        for circuits of the same sizes.
        """
        scores, shape = self._graph_scores(where)
        return inclusion.inclusion(scores, cuts, shape, consensus=consensus, least=least)

    def hard_circuit(
        self,
        circuit: int,
        top: int | None = None,
        *,
        share: float | None = None,
        threshold: float | None = None,
        greedy: int | None = None,
        signed: bool = False,
        prune: bool = False,
    ) -> Result:
        """The edges of one hard circuit in edge order: edge, source, target, score, edge_id; cut: see `containment`."""
        cut = Cut.of(top=top, share=share, threshold=threshold, greedy=greedy, signed=signed, prune=prune)
        circuit = arguments.whole("circuit", circuit)
        scores, shape = self._graph_scores({"circuits": circuit})
        if not scores.circuit_ids:
            raise UsageError(f"There is no circuit {circuit}; the database holds none yet.")
        found = hard(scores.scores, cut, shape)
        return containment.edges(scores, found, cut, shape)

    def correlate(
        self,
        with_: str = "circuitdb.accuracy",
        *,
        over: str = "subtasks",
        filter: str | None = None,  # noqa: A002
        on: str = "signed",
        **where: Unpack[Where],
    ) -> Correlation:
        """The rank correlation of stability with a metric, SOURCE.METRIC: our own, or one of added evaluations.

        Over `subtasks`, one row a group (a model, a task and one way of scoring), its points are the circuits: the mean
        similarity to those of other subtasks against the metric. Over `models`, one row a task, its points are the
        groups: their stability against the metric on the whole task, or its mean over their subtasks. `low` and `high`
        bound rho with 95% (Bonett and Wright), `p_value` is by permutation; circuits without a value are left out, and
        named in the notes. `filter` says which reading of the answers, where there are several.

        Raises UsageError for a metric that the database does not have, or where several values leave a choice.
        """
        if over not in ("subtasks", "models"):
            raise UsageError(f"over={over!r} is neither 'subtasks' nor 'models'.")
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, where)
            parts = [
                (group, part, matrix.read(connection, part, folds=True)) for group, part in chosen.groups().items()
            ]
            values = metrics.read(connection, with_, chosen.ids, filter)
        found = [(group, part, similarity.similarity(scores.seen(on))) for group, part, scores in parts]
        make = correlation.of_subtasks if over == "subtasks" else correlation.of_models
        return correlation.correlation(make(found, values), over=over, metric=with_, on=on, notes=chosen.notes)

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

    def evaluations(self, **where: Unpack[Where]) -> Result:
        """How well the models do on the subtasks: our own accuracies (0..1) and imported results, one row each.

        Filters choose circuits, as everywhere, and these the evaluations of their models and subtasks; without filters
        all are given, also of subtasks that have no circuit.
        """
        asked = wanted(where)
        everything = not asked
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, cast("Where", asked))
            table = named.run(connection, "evaluations", circuits=chosen.ids, everything=everything)
            table = _with_models(connection, table)
            unmatched = named.run(connection, "evaluation_map", source=None).to_pylist()
        lost = sorted({row["source"] for row in unmatched if row["internal"] is None})
        notes = chosen.notes if chosen.members else ()
        if lost:
            told = f"Some names in {enumeration(lost)} match nothing of this database"
            notes = (*notes, f"{told}; `circuitdb evals map NAME` lists them, and takes what they stand for.")
        return Result(table, count(len(table), "evaluation"), notes)

    def evaluation_map(self, name: str | None = None) -> Result:
        """What the names in added evaluations are taken for, one row a name, and what of ours they have nothing of.

        `internal` is NULL for a name that matches nothing, `external` for a model or subtask of the database that no
        row is of; `reason` says why. `how` is given (by the user), same, or alike (but for case and spaces, or for what
        is before the last slash of a model's name).

        Raises UsageError for evaluations that the database does not have.
        """
        with reading(self.path, timeout=self.timeout) as connection:
            return evaluations.mapping(connection, name)

    def add_evaluations(
        self,
        files: Sequence[str | os.PathLike[str]],
        name: str,
        *,
        mapping: Sequence[Mapping] = (),
        columns: Columns | None = None,
        table: str | None = None,
        replace: bool = False,
    ) -> Result:
        """Copy evaluations from files into the database, and report what of both sides was matched: `evaluation_map`.

        Files are CSV, JSON, Parquet, Arrow, DuckDB or SQLite (of several tables there `table`), results and samples of
        lm-evaluation-harness, logs of inspect_ai. `columns` says which columns hold the names, or what holds for all
        rows; `mapping` what a name stands for. Group rows of lm-eval are kept apart from their members, N/A and NaN
        become NULL. Where all files are tables, `evals.NAME` has them as they are.

        Raises UsageError for a file that can't be read, that contradicts itself, or for a name that is taken.
        """
        paths = [Path(file) for file in files]
        imported = read_evaluations(paths, columns or Columns(), table)
        writer.add(self.path, name, imported, paths, mapping=mapping, replace=replace, timeout=self.timeout)
        found = self.evaluation_map(name)
        title = f"{name}: {count(len(imported.rows), 'value')} from {count(len(paths), 'file')} ({imported.format})"
        return Result(found.table, f"{title}; {found.title}", (*imported.notes, *found.notes))

    def map_evaluations(self, name: str, mapping: Sequence[Mapping]) -> Result:
        """Say what names in added evaluations stand for, and see the map: `evaluation_map`. Raises UsageError."""
        writer.map_names(self.path, name, mapping, timeout=self.timeout)
        return self.evaluation_map(name)

    def remove_evaluations(self, name: str) -> None:
        """Take added evaluations away, with their map. Raises UsageError where there are none of that name."""
        writer.remove(self.path, name, timeout=self.timeout)

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

    def _graph_scores(self, where: Where) -> tuple[ScoreMatrix, GraphShape]:
        """Signed scores without folds, and the shape of their graph."""
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, where).compared()
            scores = matrix.read(connection, chosen)
        return scores, chosen.members[0].shape if chosen.members else GraphShape(1, 1)

    def _scores(self, where: Where, on: str, *, folds: bool) -> ScoreMatrix:
        with reading(self.path, timeout=self.timeout) as connection:
            scores = matrix.read(connection, select(connection, where).compared(), folds=folds)
        return scores.seen(on)


def _with_models(connection: duckdb.DuckDBPyConnection, table: pa.Table) -> pa.Table:
    """The table with its models named so that no two look alike, and without their ids."""
    names = model_names(connection)
    keys, given = table["model_id"].to_pylist(), table["model"].to_pylist()
    shown = texts(name if key is None else names[key].shown for key, name in zip(keys, given, strict=True))
    return table.set_column(table.column_names.index("model"), "model", shown).drop_columns(["model_id"])
