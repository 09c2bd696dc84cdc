"""The questions, as methods: each opens the file, asks, closes it, and computes with the file free for a writer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa

from circuitdb.connection import reading
from circuitdb.errors import UsageError
from circuitdb.queries import arguments, faithfulness, matrix, named, reliability, schema
from circuitdb.queries.asking import the_circuit, with_models
from circuitdb.queries.evaluations import Evaluations
from circuitdb.queries.faithfulness import Faithfulness
from circuitdb.queries.filters import Where
from circuitdb.queries.groupings import Groupings
from circuitdb.queries.hardcircuits import HardCircuits
from circuitdb.queries.inspection import Inspection
from circuitdb.queries.notes import Notes
from circuitdb.queries.result import Result, count
from circuitdb.queries.selection import select
from circuitdb.queries.statement import run as run_sql
from circuitdb.records import SELECTIONS

if TYPE_CHECKING:
    from circuitdb.queries.studies.findings import Findings


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


class Database(Groupings, Inspection, HardCircuits, Evaluations, Notes):
    """A circuit database, open for questions.

    Every question about circuits takes the filters `model`, `task`, `subtask`, `origin`, `method`, `grid`, `metric`,
    `positions`, `contrast`, `ablation`, `prompt_style`, `shots_drawn`, `chat` (yes or no), `dtype` (a name or several),
    `steps`, `shots`, `reasoning_tokens`, `seed`, `examples` (drawn for a circuit, scored or skipped) and `circuits` (a
    number or several); without them it is about all circuits. Questions about scores take `on="signed"` (the paper's
    definition, the default) or `on="magnitude"` (absolute values), those that compare circuits the coefficient (`kind`,
    `top`) and the edges that it is over (`level`, `layers`, `source`, `target`, `qkv`, `shared`, `nonzero`; see
    `Comparison`), those about hard circuits the cut (`top`, `share`, `threshold` or `greedy`; `signed`, `prune`; see
    `Cut`). Different models of one name are shown as name@revision or name@1a2b3c4d (the digest of the weights), with a
    note.

    Each method raises UsageError for a name that the database does not have, MissingDatabase, SchemaMismatch or
    LockedDatabase where the file can't be read. An empty database gives empty answers.

    The examples are of four circuits of a toy model, 1+1, 1+2, 2+1 and 2+2, each of eight edges, and of evaluations in
    board.json, which were added as `board`; `db` is circuitdb.open("circuits.duckdb").
    """

    def circuits(self, **where: Unpack[Where]) -> Result:
        """The circuits with their provenance, one row each, sorted by model, task, method and subtask.

        `accuracy` is the model's share of right answers (0..1) on the circuit's questions, `wall_time_s` in seconds.

        >>> for row in db.circuits().rows():
        ...     print(row["circuit_id"], row["subtask"], row["method"], row["accuracy"])
        1 1+1 eap-ig 0.9
        2 1+2 eap-ig 0.6
        3 2+1 eap-ig 0.5
        4 2+2 eap-ig 0.8
        """
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, where)
            table = with_models(connection, named.run(connection, "circuits", circuits=chosen.ids))
        return Result(table, count(len(table), "circuit"), chosen.notes)

    def faithfulness(self, *, selection: str | None = None, **where: Unpack[Where]) -> Faithfulness:
        """How much of the model the circuits do, cut at several sizes and run with every other edge ablated.

        `faithfulness` is 1 where the cut circuit has the whole model's metric, 0 where it has that of no edge at all;
        it may lie outside. `selection` is `top-absolute` or `top-signed`; without it all runs are given. The result has
        one row a run, of circuits on their own examples and, where that was run, on those of others; `.wide()` has one
        row a curve with its CPR and CMD, `.across(share)` the matrix. `ingest.run_faithfulness` makes the runs.

        >>> db.faithfulness().notes  # none of them was run yet
        ('Not run yet: 4 of 4 circuits; `circuitdb faithfulness --load MODEL` does it.',)
        """
        if selection is not None and selection not in SELECTIONS:
            raise UsageError(f"There is no selection {selection!r}; choose one of {', '.join(SELECTIONS)}.")
        ways = None if selection is None else [selection]
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, where)
            table = named.run(connection, "faithfulness", circuits=chosen.ids, selections=ways)
        return faithfulness.faithfulness(chosen, table, selection)

    def top_edges(self, circuit: int, n: int = 20) -> Result:
        """The `n` edges of a circuit with the largest absolute scores, ties by edge id.

        A positive score says that ablating the edge raises the metric (nats for kl).

        >>> db.top_edges(1, 3)
        Strongest 3 edges of circuit 1 (1+1)
        place  edge             source  target    score  edge_id
            1  input->a0.h0<q>  input   a0.h0<q>      8        0
            2  input->a0.h0<k>  input   a0.h0<k>      7        1
            3  input->a0.h0<v>  input   a0.h0<v>      6        2
        """
        circuit, n = arguments.whole("circuit", circuit), arguments.amount("edge", n)
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = the_circuit(connection, circuit)
            table = named.run(connection, "top_edges", circuit=circuit, n=n)
        return Result(table, f"Strongest {count(len(table), 'edge')} of circuit {circuit} ({', '.join(chosen.labels)})")

    def node_scores(self, circuit: int) -> Result:
        """The score of every node of a circuit, layer by layer: the sum over its outgoing edges, NULL if none has one.

        A positive score says that ablating the node's edges raises the metric (nats for kl).

        >>> db.node_scores(1)
        Scores of 3 nodes of circuit 1 (1+1)
        node   kind   layer  head  score
        input  input   NULL  NULL     25
        a0.h0  head       0     0     -5
        m0     mlp        0  NULL     -4
        """
        circuit = arguments.whole("circuit", circuit)
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = the_circuit(connection, circuit)
            table = named.run(connection, "node_scores", circuit=circuit)
        return Result(table, f"Scores of {count(len(table), 'node')} of circuit {circuit} ({', '.join(chosen.labels)})")

    def show(self, circuit: int, *, edges: int = 10) -> Shown:
        """Everything about one circuit: provenance, reliability, its strongest `edges`, the questions left out.

        >>> shown = db.show(1, edges=2)
        >>> shown.edges
        Strongest 2 edges of circuit 1 (1+1)
        place  edge             source  target    score  edge_id
            1  input->a0.h0<q>  input   a0.h0<q>      8        0
            2  input->a0.h0<k>  input   a0.h0<k>      7        1
        >>> shown.skipped.title
        'No question was left out'
        """
        circuit = arguments.whole("circuit", circuit)
        strongest = self.top_edges(circuit, edges)
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = the_circuit(connection, circuit)
            scores = matrix.read(connection, chosen, folds=True)
            provenance = named.run(connection, "provenance", circuit=circuit)
            skipped = named.run(connection, "skipped", circuit=circuit)
        sides = [
            reliability.reliability([(chosen, reliability.reliabilities(scores.seen(on)))], on=on)
            for on in matrix.SIDES
        ]
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

    def study(self, name: str, *, on: str = "signed", **where: Unpack[Where]) -> Findings:
        """What the circuits of a task say of its models: questions, answers in sentences, tables and figures.

        `name` is arithmetic, boolean, sports or training; the circuits are those that the filters leave and that are
        of the study's task. `report.write` makes a page of the findings.

        Raises UsageError for a study that there is not, and where circuits are there, but none of the study's task.

        >>> found = db.study("arithmetic")
        >>> found.findings[0].question
        'How often is the model right?'
        >>> found.findings[0].answer.partition(",")[0]
        'The model is right on 70% of the questions'
        """
        from circuitdb.queries.studies import registry  # studies ask a database, so they import this module

        return registry.study(self, name, on=on, **where)

    def schema(self, name: str | None = None) -> Result:
        """Tables, views and macros that SQL can ask; with the name of one, its columns.

        Raises UsageError, with the nearest name, if there is nothing of that name.

        >>> db.schema("top_edges")
        Columns of top_edges
        column   type
        place    BIGINT
        edge     VARCHAR
        score    FLOAT
        edge_id  INTEGER
        >>> db.schema().rows()[0]["name"]
        'attached_file'
        """
        with reading(self.path, timeout=self.timeout) as connection:
            return schema.describe(connection, name)

    def vocabulary(self) -> Result:
        """What a statement may be made of: tables, views, macros, columns, DuckDB's functions and keywords.

        `relation` is the table or view whose column it is, `parameters` are those of a macro.

        >>> [row["word"] for row in db.vocabulary().rows() if row["relation"] == "fold_score"]
        ['circuit_id', 'edge_id', 'fold', 'score']
        """
        with reading(self.path, timeout=self.timeout) as connection:
            table = schema.vocabulary(connection)
        return Result(table, count(len(table), "word"))

    def sql(self, statement: str, *, dialect: str = "duckdb") -> Result:
        """Ask in SQL: one statement that only reads (SELECT, WITH, FROM, VALUES, DESCRIBE, SUMMARIZE, EXPLAIN, SHOW).

        A statement in another `dialect`, such as postgres, spark or bigquery, is put into DuckDB's first.

        Raises UsageError, before anything runs, for a statement that writes, attaches, sets or reads files, and for one
        that is wrong, with the nearest name.

        >>> db.sql("SELECT subtask, accuracy FROM circuits WHERE accuracy > 0.7 ORDER BY accuracy")
        2 rows
        subtask  accuracy
        2+2           0.8
        1+1           0.9
        >>> db.sql("DROP TABLE circuit")
        Traceback (most recent call last):
            ...
        circuitdb.errors.UsageError: DROP is refused: one statement that only reads is taken here...
        """
        if not isinstance(statement, str):
            raise UsageError(f"A statement is a text, such as 'FROM circuits', not {type(statement).__name__}.")
        with reading(self.path, timeout=self.timeout) as connection:
            return run_sql(connection, statement, dialect)
