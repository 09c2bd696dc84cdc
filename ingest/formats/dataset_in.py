"""Reads an exported folder back: each circuit in a transaction of its own, none twice, every id made anew.

Columns are taken as they are, so what a later schema adds to a table comes along without a word here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from circuitdb import sqlfiles
from circuitdb.batches import ScoreBatch, graph_tables
from circuitdb.connection import append, registered, transaction, writing
from circuitdb.errors import ScoreError
from circuitdb.evals.tables import quoted
from circuitdb.graph import GraphShape
from circuitdb.ingest.formats import dataset
from circuitdb.ingest.formats.found import checked_shape
from circuitdb.migrations import latest
from circuitdb.store import Store

Row = dict[str, Any]
_FAULTS = (pa.ArrowException, OSError, KeyError, TypeError, ValueError, duckdb.ConversionException,
           duckdb.ConstraintException, duckdb.BinderException)  # fmt: skip


@dataclass(frozen=True)
class Arrived:
    """What became of one circuit of a folder; `kind` is circuit or hard circuit, `number` its id here."""

    kind: str
    status: str
    number: int
    model: str
    task: str
    subtask: str
    n_edges: int
    n_null: int | None
    reason: str | None = None


class Folder:
    """An export, checked as far as can be without reading its scores."""

    def __init__(self, root: Path) -> None:
        """Raises ScoreError for a folder that is damaged, or by a newer circuitdb."""
        self.root = root
        try:
            manifest = json.loads((root / dataset.MANIFEST).read_text(encoding="utf-8"))
            kind, version, schema = manifest["format"], manifest["version"], manifest["schema"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ScoreError(f"{root / dataset.MANIFEST} is damaged; export the folder again.") from error
        if kind != dataset.FORMAT:
            raise ScoreError(f"{root} is no export of circuitdb: its {dataset.MANIFEST} says {str(kind)[:40]!r}.")
        if version != dataset.VERSION or not isinstance(schema, int) or schema > latest():
            raise ScoreError(f"{root} was written by a newer circuitdb; upgrade this one to read it.")
        self.n_bytes = sum(file.stat().st_size for file in root.rglob("*.parquet"))
        self.tables = {name: self.read(root / f"{name}.parquet") for name in ("graph", "model", "task", "subtask")}
        self.rows = {name: _by_id(table.to_pylist(), f"{name}_id", root) for name, table in self.tables.items()}

    def read(self, file: Path, **filters: object) -> pa.Table:
        """The rows of a file, of which some columns have these values. Raises ScoreError for a damaged one."""
        chosen = [(name, "==", value) for name, value in filters.items()] or None
        try:
            return pq.read_table(file, filters=chosen, partitioning=None, use_threads=False)
        except _FAULTS as error:
            raise ScoreError(f"{file} is damaged or not there; export the folder again.") from error

    def files(self, table: str) -> list[Path]:
        """The files of a table that is parted."""
        return sorted((self.root / table).rglob("*.parquet"))

    def names(self) -> list[str]:
        """The tables that are parted."""
        return sorted(path.name for path in self.root.iterdir() if path.is_dir())

    def circuits(self) -> Iterator[tuple[Path, Row, pa.Table]]:
        """Each circuit: the folder of its model and task below the table's, its row, and the same as a table."""
        yield from self._each("circuit")

    def hard_circuits(self) -> Iterator[tuple[Path, Row, pa.Table]]:
        """The same of imported hard circuits."""
        yield from self._each("imported_hard_circuit")

    def _each(self, table: str) -> Iterator[tuple[Path, Row, pa.Table]]:
        for file in self.files(table):
            rows = self.read(file)
            for i, row in enumerate(rows.to_pylist()):
                yield file.relative_to(self.root / table), row, rows.slice(i, 1)

    def shape(self, row: Row) -> GraphShape:
        """The graph of a circuit."""
        graph = self.rows["graph"][row["graph_id"]]
        return checked_shape(
            graph["n_layers"], graph["n_heads"], graph["parallel"], where=str(self.root), n_bytes=self.n_bytes
        )

    def template(self, row: Row) -> pa.Table:
        """The chat template that a circuit's prompts went through, as a row; none where they went through none."""
        digest = dict(json.loads(row["spec"])).get("chat_template")
        return self.read(self.root / f"{dataset.TEMPLATES}.parquet", digest=str(digest))

    def arrived(self, row: Row, kind: str, status: str, number: int, reason: str | None = None) -> Arrived:
        """What became of a circuit, with its names."""
        subtask = self.rows["subtask"][row["subtask_id"]]
        return Arrived(
            kind, status, number, self.rows["model"][row["model_id"]]["name"],
            self.rows["task"][subtask["task_id"]]["name"], subtask["name"], row["n_edges"], row.get("n_nonfinite"),
            reason,
        )  # fmt: skip


def read(store: Store, root: Path, arrived: list[Arrived]) -> None:
    """Bring all of a folder into the store, and append to `arrived` what became of each circuit.

    Raises ScoreError for a folder that is damaged: what was stored before the damage was met stays, each circuit whole.
    """
    folder = Folder(root)
    try:
        numbers = _read_circuits(store, folder, arrived)
        _read_hard(store, folder, numbers, arrived)
        _read_rest(store, folder, numbers)
    except _FAULTS as error:
        raise ScoreError(f"{root} is damaged or of another layout: {str(error).splitlines()[0][:160]}.") from error


def _read_circuits(store: Store, folder: Folder, arrived: list[Arrived]) -> dict[int, int]:
    """Old circuit id to new one."""
    numbers: dict[int, int] = {}
    own = [name for name in folder.names() if name not in ("circuit", "faithfulness", *dataset.HARD)]
    for place, row, table in folder.circuits():
        old = int(row["circuit_id"])
        rows = {name: folder.read(folder.root / name / place, circuit_id=old) for name in own
                if (folder.root / name / place).is_file()}  # fmt: skip
        _check(row, folder.shape(row), rows.get("edge_score"), folder.root)
        with writing(store.path, timeout=store.timeout) as connection:
            known = _number(connection, "SELECT circuit_id FROM circuit WHERE spec_digest = ?", [row["spec_digest"]])
            if known is None:
                with transaction(connection):
                    known = _insert_circuit(connection, folder, row, table, rows)
                connection.execute("CHECKPOINT")
                arrived.append(folder.arrived(row, "circuit", "stored", known))
            else:
                same = [known, row["score_digest"]]
                alike = _number(connection, "SELECT 1 FROM circuit WHERE circuit_id = ? AND score_digest = ?", same)
                reason = None if alike else "the same run is stored with other scores, which stay"
                arrived.append(folder.arrived(row, "circuit", "kept", known, reason))
        numbers[old] = known
    return numbers


def _insert_circuit(
    connection: duckdb.DuckDBPyConnection, folder: Folder, row: Row, table: pa.Table, rows: dict[str, pa.Table]
) -> int:
    number = _next(connection, "circuit", "circuit_id")
    _add(connection, "add_chat_template", folder.template(row))
    ids = {"circuit_id": number, **_shared(connection, folder, row)}
    _append(connection, "circuit", table, ids)
    for name, part in rows.items():
        _append(connection, name, part, ids)
    return number


def _read_hard(store: Store, folder: Folder, numbers: dict[int, int], arrived: list[Arrived]) -> None:
    for place, row, table in folder.hard_circuits():
        old = int(row["hard_id"])
        edges = folder.root / "hard_circuit_edge" / place
        members = folder.read(edges, hard_id=old) if edges.is_file() else None
        source = folder.root / dataset.FILES / place.parent / "hard.parquet"
        with writing(store.path, timeout=store.timeout) as connection:
            sql = "SELECT hard_id FROM imported_hard_circuit WHERE spec_digest = ?"
            known = _number(connection, sql, [row["spec_digest"]])
            if known is not None:
                arrived.append(folder.arrived(row, "hard circuit", "kept", known))
                continue
            with transaction(connection):
                known = _next(connection, "imported_hard_circuit", "hard_id")
                soft = None if row["circuit_id"] is None else numbers[int(row["circuit_id"])]
                ids = {"hard_id": known, "circuit_id": soft, **_shared(connection, folder, row)}
                _append(connection, "imported_hard_circuit", table, ids)
                if members is not None:
                    _append(connection, "hard_circuit_edge", members, ids)
                _append(connection, dataset.FILES, folder.read(source, hard_id=old), {"hard_id": known})
            arrived.append(folder.arrived(row, "hard circuit", "stored", known))


def _read_rest(store: Store, folder: Folder, numbers: dict[int, int]) -> None:
    """Runs of circuits, which are of two each, notes of none, and evaluations from elsewhere that are not there yet."""
    runs = [folder.read(file) for file in folder.files("faithfulness")]
    runs = [pa.concat_tables(runs)] if runs else []
    with writing(store.path, timeout=store.timeout) as connection, transaction(connection):
        for table in runs:
            # A run on the examples of a circuit that was not exported can't be told any more.
            both = [i for i, d in enumerate(table["data_circuit_id"].to_pylist()) if d in numbers]
            kept = table.take(pa.array(both, pa.int64()))
            for key in ("circuit_id", "data_circuit_id"):
                renewed = pa.array([numbers[i] for i in kept[key].to_pylist()], pa.int32())
                kept = kept.set_column(kept.column_names.index(key), key, renewed)
            _add(connection, "add_faithfulness", kept)
        _add(connection, "add_notes", folder.read(folder.root / "note.parquet"))
        sources = folder.read(folder.root / "evaluation_source.parquet")
        there = {row[0] for row in connection.execute("SELECT lower(source) FROM evaluation_source").fetchall()}
        for source in (name for name in sources["source"].to_pylist() if name.lower() not in there):
            file = folder.root / dataset.EVALS / f"{source}.parquet"
            if file.is_file():
                connection.register("arriving", folder.read(file))
                connection.execute(f"CREATE TABLE evals.{quoted(source)} AS SELECT * FROM arriving")
                connection.unregister("arriving")
        for name in dataset.EVALUATIONS[1:]:
            _add(connection, f"add_{name}", folder.read(folder.root / f"{name}.parquet"))
        _add(connection, "add_evaluation_source", sources)


def _check(row: Row, shape: GraphShape, scores: pa.Table | None, root: Path) -> None:
    """Raise ScoreError unless the scores are whole and those that the circuit was stored with."""
    n = 0 if scores is None else scores.num_rows
    if scores is None or n != shape.n_edges or not np.array_equal(scores["edge_id"].to_numpy(), np.arange(n)):
        raise ScoreError(f"{root} has {n:,} scores of a circuit of {shape.n_edges:,} edges; export it again.")
    values = np.asarray(scores["score"].combine_chunks().fill_null(np.nan).to_numpy(zero_copy_only=False), np.float32)
    if ScoreBatch.check(shape, values).digest != row["score_digest"]:
        raise ScoreError(f"{root} has other scores than those that circuit {row['circuit_id']} was stored with.")


def _shared(connection: duckdb.DuckDBPyConnection, folder: Folder, row: Row) -> dict[str, int | None]:
    """The ids here of a circuit's graph, model and subtask, which are stored if they are not there."""
    shape = folder.shape(row)
    graph = _number(
        connection, "SELECT graph_id FROM graph WHERE n_layers = ? AND n_heads = ? AND parallel = ?",
        [shape.n_layers, shape.n_heads, shape.parallel],
    )  # fmt: skip
    if graph is None:
        graph = _next(connection, "graph", "graph_id")
        _copy(connection, folder, "graph", row["graph_id"], {"graph_id": graph})
        for name, rows in zip(("node", "edge"), graph_tables(shape, graph), strict=True):
            _append(connection, name, rows, {})
    model = folder.rows["model"][row["model_id"]]
    asked = {key: model[key] for key in ("name", "revision", "weights_digest", "n_kv_heads", "d_model")}
    found = connection.execute(sqlfiles.load("circuitdb.sql", "same_model"), {"graph_id": graph, **asked}).fetchall()
    model_id = int(found[0][0]) if found else _next(connection, "model", "model_id")
    if not found:
        _copy(connection, folder, "model", row["model_id"], {"model_id": model_id, "graph_id": graph})
    subtask = folder.rows["subtask"][row["subtask_id"]]
    task = folder.rows["task"][subtask["task_id"]]
    task_id = _number(connection, "SELECT task_id FROM task WHERE name = ?", [task["name"]])
    if task_id is None:
        task_id = _next(connection, "task", "task_id")
        _copy(connection, folder, "task", subtask["task_id"], {"task_id": task_id})
    subtask_id = _number(
        connection, "SELECT subtask_id FROM subtask WHERE task_id = ? AND name = ? AND parameters::VARCHAR = ?",
        [task_id, subtask["name"], subtask["parameters"]],
    )  # fmt: skip
    if subtask_id is None:
        subtask_id = _next(connection, "subtask", "subtask_id")
        _copy(connection, folder, "subtask", row["subtask_id"], {"subtask_id": subtask_id, "task_id": task_id})
    return {"graph_id": graph, "model_id": model_id, "subtask_id": subtask_id}


def _copy(
    connection: duckdb.DuckDBPyConnection, folder: Folder, table: str, old: int, ids: dict[str, int | None]
) -> None:
    """One row of a shared table, under new ids."""
    rows = folder.tables[table]
    place = rows[f"{table}_id"].to_pylist().index(old)
    _append(connection, table, rows.slice(place, 1), ids)


def _append(connection: duckdb.DuckDBPyConnection, table: str, rows: pa.Table, ids: dict[str, int | None]) -> None:
    """Insert rows, their ids replaced by the new ones."""
    for name in set(ids) & set(rows.column_names):
        column = pa.array([ids[name]], pa.int32()).take(pa.array(np.zeros(rows.num_rows, np.int64)))
        rows = rows.set_column(rows.column_names.index(name), name, column)
    append(connection, table, rows)


def _add(connection: duckdb.DuckDBPyConnection, query: str, rows: pa.Table) -> None:
    with registered(connection, {"arriving": rows}):
        connection.execute(sqlfiles.load("circuitdb.sql", query))


def _by_id(rows: list[Row], key: str, root: Path) -> dict[int, Row]:
    if any(key not in row for row in rows):
        raise ScoreError(f"{root} is damaged: a table lacks {key}; export the folder again.")
    return {int(row[key]): row for row in rows}


def _number(connection: duckdb.DuckDBPyConnection, sql: str, parameters: list[object]) -> int | None:
    rows = connection.execute(sql, parameters).fetchall()
    return int(rows[0][0]) if rows else None


def _next(connection: duckdb.DuckDBPyConnection, table: str, key: str) -> int:
    return _number(connection, f"SELECT coalesce(max({key}), 0) + 1 FROM {table}", []) or 1
