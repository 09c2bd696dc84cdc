"""Writes circuits into the database file: one circuit is one short transaction, then a checkpoint.

Killed at any moment, the file holds every finished circuit and none by half; `finished` tells the next run where to
go on.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb import batches, sqlfiles
from circuitdb.batches import ExampleBatch, ScoreBatch
from circuitdb.connection import append, file_name, reading, registered, transaction, writing
from circuitdb.errors import ScoreError
from circuitdb.graph import GraphShape
from circuitdb.records import (
    Accuracy,
    Circuit,
    Example,
    Faithfulness,
    HardCircuit,
    ImportedFile,
    ImportedModel,
    Model,
    Subtask,
    canonical_json,
)

_FAITHFULNESS = pa.schema(
    {
        "circuit_id": pa.int32(), "data_circuit_id": pa.int32(), "share": pa.float64(), "n_edges": pa.int32(),
        "n_tied": pa.int32(), "selection": pa.string(), "ablation": pa.string(), "metric": pa.string(),
        "value": pa.float64(), "clean": pa.float64(), "corrupted": pa.float64(), "faithfulness": pa.float64(),
        "reason": pa.string(), "n_examples": pa.int32(), "accuracy": pa.float64(),
    }
)  # fmt: skip


class Store:
    """The write side of a database file. The file is open only while a method runs."""

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 60.0) -> None:
        """`timeout`: seconds to wait for another process to let go of the file. Raises UsageError for no path."""
        self.path = file_name(path)
        self.timeout = timeout

    def create(self) -> None:
        """Make the file, or bring it to this version's schema. Raises StoreError before any work is lost."""
        with writing(self.path, timeout=self.timeout):
            pass

    def finished(self, *, by_example: bool = False) -> dict[str, int]:
        """Spec digest to circuit id of every stored circuit; of those with scores of single examples, if asked."""
        with writing(self.path, timeout=self.timeout) as connection:
            return _finished(connection, by_example=by_example)

    def write(
        self,
        circuit: Circuit,
        scores: npt.ArrayLike,
        folds: npt.ArrayLike | None = None,
        *,
        examples: Sequence[Example] = (),
        by_example: npt.ArrayLike | None = None,
        accuracy: Accuracy | Sequence[Accuracy] | None = None,
        source: ImportedFile | None = None,
        members: HardCircuit | None = None,
        replace: bool = False,
    ) -> int:
        """Store one circuit and return its id.

        Args:
            circuit: its provenance.
            scores: [n_edges] in edge order; non-finite ones are stored as NULL and counted.
            folds: [n_folds, n_edges], the scores of each fold of the examples alone.
            examples: its questions, scored and skipped.
            by_example: [n_used, n_edges], the scores of each scored example alone, in the order of `examples`.
            accuracy: the model's share of right answers on them, judged in one way or in several.
            source: the file that an imported circuit came from.
            members: the hard circuit that the same file has beside the scores.
            replace: put it in the place of a stored circuit of the same spec; otherwise that one is kept, given the
                scores of single examples if it has none, and its id returned.

        Raises:
            ScoreError: scores of the wrong shape or type.
            LockedDatabase: another process held the file for too long.
        """
        shape = circuit.model.shape
        batch = ScoreBatch.check(shape, scores, folds)
        used = [position for position, example in enumerate(examples) if example.used]
        single = ExampleBatch.check(shape, by_example, used)
        if circuit.n_examples is not None and circuit.n_examples < 1:
            raise ScoreError(f"The circuit of {circuit.subtask.name} has no scored example; nothing is stored.")
        with writing(self.path, timeout=self.timeout) as connection:
            with transaction(connection):
                old = _one(connection, "SELECT circuit_id FROM circuit WHERE spec_digest = ?", [circuit.spec_digest])
                if old is not None and not replace:
                    _add_examples(connection, old, single)
                    return old
                graph_id = _graph(connection, shape)
                model_id = _model(connection, circuit.model, graph_id)
                subtask_id = _subtask(connection, circuit.subtask)
                circuit_id = _next(connection, "circuit")
                if old is not None:
                    _delete(connection, old, successor=circuit_id)
                _insert_circuit(connection, circuit, batch, (circuit_id, model_id, subtask_id, graph_id))
                append(connection, "edge_score", batch.score_table(circuit_id))
                append(connection, "fold_score", batch.fold_table(circuit_id))
                append(connection, "example", _example_table(circuit_id, examples))
                for rows in single.tables(circuit_id):
                    append(connection, "example_score", rows)
                for share in () if accuracy is None else [accuracy] if isinstance(accuracy, Accuracy) else accuracy:
                    evaluation: dict[str, object] = {
                        "model_id": model_id, "subtask_id": subtask_id, "circuit_id": circuit_id,
                        "metric": share.metric, "filter": share.filter, "value": share.value,
                        "stderr": share.stderr, "n": share.n, "source": "circuitdb",
                    }  # fmt: skip
                    _insert(connection, "evaluation", evaluation)
                if circuit.chat_template is not None:
                    _add_template(connection, circuit.chat_template)
                if source is not None:
                    _insert_source(connection, source, circuit_id=circuit_id)
                    if members is not None:
                        _insert_hard(connection, members, source, circuit_id=circuit_id)
            # Closing the file does it too, but here a failure, such as a full disk, is raised.
            connection.execute("CHECKPOINT")
        return circuit_id

    def write_hard(self, circuit: HardCircuit, source: ImportedFile) -> int:
        """Store an imported hard circuit of no stored soft one and return its id; one of the same spec is kept.

        Raises LockedDatabase if another process held the file for too long.
        """
        with writing(self.path, timeout=self.timeout) as connection:
            with transaction(connection):
                sql = "SELECT hard_id FROM imported_hard_circuit WHERE spec_digest = ?"
                old = _one(connection, sql, [circuit.spec_digest])
                if old is not None:
                    return old
                hard_id = _insert_hard(connection, circuit, source, circuit_id=None)
            connection.execute("CHECKPOINT")
        return hard_id

    def finished_hard(self) -> dict[str, int]:
        """Spec digest to id of every imported hard circuit."""
        with writing(self.path, timeout=self.timeout) as connection:
            return dict(connection.execute(sqlfiles.load("circuitdb.sql", "finished_hard")).fetchall())

    def faithful(self, selection: str, *, answered: bool = False) -> set[tuple[int, int, float]]:
        """(circuit, data circuit, share) of every stored cut; of those whose answers were counted too, if asked."""
        with reading(self.path, timeout=self.timeout) as connection:
            rows = connection.execute(sqlfiles.load("circuitdb.sql", "stored_faithfulness")).fetchall()
        return {(c, d, share) for c, d, how, share, has in rows if how == selection and (has or not answered)}

    def write_faithfulness(self, rows: Sequence[Faithfulness]) -> None:
        """Store what became of circuits that were run, in the place of earlier runs of the same cut on the same data.

        Raises LockedDatabase if another process held the file for too long, ScoreError if a circuit is gone by now.
        """
        columns = [f.name for f in fields(Faithfulness)]
        table = pa.table({name: [getattr(row, name) for row in rows] for name in columns}, _FAITHFULNESS)
        with writing(self.path, timeout=self.timeout) as connection:
            with transaction(connection):
                for circuit_id in sorted({i for row in rows for i in (row.circuit_id, row.data_circuit_id)}):
                    if _one(connection, "SELECT 1 FROM circuit WHERE circuit_id = ?", [circuit_id]) is None:
                        raise ScoreError(f"Circuit {circuit_id} was replaced while it was being run; run it again.")
                with registered(connection, {"arriving": table}):
                    connection.execute(sqlfiles.load("circuitdb.sql", "forget_faithfulness"))
                append(connection, "faithfulness", table)
            connection.execute("CHECKPOINT")


def read_finished(store: Store, *, by_example: bool = False) -> dict[str, int]:
    """The same as `Store.finished`, of a file that is there and is not to be touched.

    Raises SchemaMismatch if it is of another version, LockedDatabase if another process holds it for too long.
    """
    with reading(store.path, timeout=store.timeout) as connection:
        return _finished(connection, by_example=by_example)


def _finished(connection: duckdb.DuckDBPyConnection, *, by_example: bool) -> dict[str, int]:
    sql = sqlfiles.load("circuitdb.sql", "finished")
    return dict(connection.execute(sql, {"by_example": by_example}).fetchall())


def _one(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object]) -> int | None:
    # All rows are fetched: with any left the connection could do nothing else.
    rows = connection.execute(sql, list(parameters)).fetchall()
    return int(rows[0][0]) if rows else None


def _next(connection: duckdb.DuckDBPyConnection, table: str, key: str | None = None) -> int:
    found = _one(connection, f"SELECT coalesce(max({key or f'{table}_id'}), 0) + 1 FROM {table}", [])
    return 1 if found is None else found


def _insert(connection: duckdb.DuckDBPyConnection, table: str, row: Mapping[str, object]) -> None:
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))


def _graph(connection: duckdb.DuckDBPyConnection, shape: GraphShape) -> int:
    key = [shape.n_layers, shape.n_heads, shape.parallel]
    found = _one(connection, "SELECT graph_id FROM graph WHERE n_layers = ? AND n_heads = ? AND parallel = ?", key)
    if found is not None:
        return found
    graph_id = _next(connection, "graph")
    nodes, edges = batches.graph_tables(shape, graph_id)
    row: dict[str, object] = {
        "graph_id": graph_id, "n_layers": shape.n_layers, "n_heads": shape.n_heads, "parallel": shape.parallel,
        "n_nodes": nodes.num_rows, "n_edges": edges.num_rows,
    }  # fmt: skip
    _insert(connection, "graph", row)
    append(connection, "node", nodes)
    append(connection, "edge", edges)
    return graph_id


def _model(connection: duckdb.DuckDBPyConnection, model: Model | ImportedModel, graph_id: int) -> int:
    known: dict[str, object] = {
        "graph_id": graph_id, "name": model.name, "revision": model.revision, "weights_digest": model.weights_digest,
        "n_kv_heads": model.n_kv_heads, "d_model": model.d_model,
    }  # fmt: skip
    rows = connection.execute(sqlfiles.load("circuitdb.sql", "same_model"), known).fetchall()
    if rows:
        sizes = {"model_id": rows[0][0], "n_kv_heads": model.n_kv_heads, "d_model": model.d_model}
        connection.execute(sqlfiles.load("circuitdb.sql", "complete_model"), sizes)
        return int(rows[0][0])
    model_id = _next(connection, "model")
    row: dict[str, object] = {
        "model_id": model_id, "graph_id": graph_id, "name": model.name, "revision": model.revision,
        "architecture": model.architecture, "n_layers": model.shape.n_layers, "n_heads": model.shape.n_heads,
        "n_kv_heads": model.n_kv_heads, "d_model": model.d_model, "parallel": model.shape.parallel,
        "n_parameters": model.n_parameters, "weights_digest": model.weights_digest,
    }  # fmt: skip
    _insert(connection, "model", row)
    return model_id


def _subtask(connection: duckdb.DuckDBPyConnection, subtask: Subtask) -> int:
    task_id = _one(connection, "SELECT task_id FROM task WHERE name = ?", [subtask.task])
    if task_id is None:
        task_id = _next(connection, "task")
        task: dict[str, object] = {
            "task_id": task_id, "name": subtask.task, "description": subtask.task_description,
        }  # fmt: skip
        _insert(connection, "task", task)
    parameters = canonical_json(dict(subtask.parameters))
    found = _one(
        connection,
        "SELECT subtask_id FROM subtask WHERE task_id = ? AND name = ? AND parameters::VARCHAR = ?",
        [task_id, subtask.name, parameters],
    )
    if found is not None:
        return found
    subtask_id = _next(connection, "subtask")
    row: dict[str, object] = {
        "subtask_id": subtask_id, "task_id": task_id, "name": subtask.name, "parameters": parameters,
    }  # fmt: skip
    _insert(connection, "subtask", row)
    return subtask_id


def _add_template(connection: duckdb.DuckDBPyConnection, template: str) -> None:
    key = hashlib.sha256(template.encode()).hexdigest()
    if _one(connection, "SELECT count(*) FROM chat_template WHERE digest = ?", [key]) == 0:
        _insert(connection, "chat_template", {"digest": key, "template": template})


def _insert_circuit(
    connection: duckdb.DuckDBPyConnection, circuit: Circuit, batch: ScoreBatch, ids: tuple[int, int, int, int]
) -> None:
    circuit_id, model_id, subtask_id, graph_id = ids
    started_at = circuit.started_at or (datetime.now(UTC) if circuit.origin == "ingest" else None)
    row: dict[str, object] = {
        "circuit_id": circuit_id, "model_id": model_id, "subtask_id": subtask_id, "graph_id": graph_id,
        "origin": circuit.origin, "method": circuit.method, "steps": circuit.steps, "grid": circuit.grid,
        "metric": circuit.metric, "positions": circuit.positions, "contrast": circuit.contrast,
        "ablation": circuit.ablation,
        "sign_convention": circuit.sign_convention, "prompt_style": circuit.prompt_style, "shots": circuit.shots,
        "shots_drawn": circuit.shots_drawn, "reasoning_tokens": circuit.reasoning_tokens, "chat": circuit.chat,
        "seed": circuit.seed, "n_examples": circuit.n_examples, "n_skipped": circuit.n_skipped,
        "n_folds": len(batch.folds), "metric_clean": circuit.metric_clean,
        "metric_corrupted": circuit.metric_corrupted, "bos": circuit.bos, "padding": circuit.padding,
        "n_padded": circuit.n_padded,
        "dtype": circuit.dtype, "device": circuit.device, "batch_size": circuit.batch_size,
        "software": None if circuit.software is None else canonical_json(circuit.software),
        "started_at": started_at, "wall_time_s": circuit.wall_time_s,
        "n_edges": batch.scores.size, "n_nonfinite": batch.n_nonfinite, "score_digest": batch.digest,
        "spec_digest": circuit.spec_digest, "spec": canonical_json(circuit.spec),
    }  # fmt: skip
    _insert(connection, "circuit", row)


def _insert_source(
    connection: duckdb.DuckDBPyConnection, source: ImportedFile, *, circuit_id: int | None = None,
    hard_id: int | None = None,
) -> None:  # fmt: skip
    row: dict[str, object] = {
        "circuit_id": circuit_id, "hard_id": hard_id, "tool": source.tool, "dialect": source.dialect,
        "file": source.file, "digest": source.digest, "part": source.part, "n_missing": source.n_missing,
    }  # fmt: skip
    _insert(connection, "imported_file", row)


def _insert_hard(
    connection: duckdb.DuckDBPyConnection, circuit: HardCircuit, source: ImportedFile, *, circuit_id: int | None
) -> int:
    graph_id = _graph(connection, circuit.model.shape)
    hard_id = _next(connection, "imported_hard_circuit", "hard_id")
    row: dict[str, object] = {
        "hard_id": hard_id, "circuit_id": circuit_id, "model_id": _model(connection, circuit.model, graph_id),
        "subtask_id": _subtask(connection, circuit.subtask), "graph_id": graph_id, "origin": circuit.origin,
        "method": circuit.method, "share": circuit.share, "n_edges": len(circuit.edges),
        "member_digest": circuit.member_digest, "spec_digest": circuit.spec_digest,
        "spec": canonical_json(circuit.spec),
    }  # fmt: skip
    _insert(connection, "imported_hard_circuit", row)
    ids = pa.array(np.full(len(circuit.edges), hard_id, np.int32))
    append(connection, "hard_circuit_edge", pa.table({"hard_id": ids, "edge_id": pa.array(circuit.edges)}))
    _insert_source(connection, source, hard_id=hard_id)
    return hard_id


def _example_table(circuit_id: int, examples: Sequence[Example]) -> pa.Table:
    return pa.table(
        {
            "circuit_id": pa.array([circuit_id] * len(examples), pa.int32()),
            "position": pa.array(range(len(examples)), pa.int32()),
            "fold": pa.array([e.fold for e in examples], pa.int32()),
            "clean": pa.array([e.clean for e in examples], pa.string()),
            "corrupted": pa.array([e.corrupted for e in examples], pa.string()),
            "answer": pa.array([e.answer for e in examples], pa.string()),
            "corrupted_answer": pa.array([e.corrupted_answer for e in examples], pa.string()),
            "n_tokens": pa.array([e.n_tokens for e in examples], pa.int32()),
            "used": pa.array([e.used for e in examples], pa.bool_()),
            "reason": pa.array([e.reason for e in examples], pa.string()),
            "prediction": pa.array([e.prediction for e in examples], pa.string()),
            "correct": pa.array([e.correct for e in examples], pa.bool_()),
            "clean_ids": pa.array([e.clean_ids for e in examples], pa.list_(pa.int32())),
            "corrupted_ids": pa.array([e.corrupted_ids for e in examples], pa.list_(pa.int32())),
            "labels": pa.array([e.labels for e in examples], pa.list_(pa.list_(pa.int32()))),
            "reasoning": pa.array([e.reasoning for e in examples], pa.string()),
        }
    )


def _add_examples(connection: duckdb.DuckDBPyConnection, circuit_id: int, single: ExampleBatch) -> None:
    """Give a stored circuit the scores of its single examples, if it has none yet."""
    if _one(connection, "SELECT count(*) FROM example_score WHERE circuit_id = ?", [circuit_id]) == 0:
        for rows in single.tables(circuit_id):
            append(connection, "example_score", rows)


def _delete(connection: duckdb.DuckDBPyConnection, circuit_id: int, *, successor: int) -> None:
    """Remove a circuit and all that hangs on it; notes are the user's own words, and pass to its successor."""
    connection.execute("UPDATE note SET circuit_id = ? WHERE circuit_id = ?", [successor, circuit_id])
    for table in ("edge_score", "fold_score", "example", "example_score", "evaluation", "circuit"):
        connection.execute(f"DELETE FROM {table} WHERE circuit_id = ?", [circuit_id])
    connection.execute("DELETE FROM faithfulness WHERE ? IN (circuit_id, data_circuit_id)", [circuit_id])
