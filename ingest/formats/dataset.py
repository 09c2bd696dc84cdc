"""circuitdb's own Parquet: a folder of the tables of the file, those of circuits parted by model and task.

    circuitdb.json                                   what the folder is
    graph.parquet, model.parquet, task.parquet ...   tables that circuits share, whole rows
    edge_score/model=gpt2/task=ioi/part.parquet      rows of the circuits of one model and task, circuit by circuit

Every column of every table is there, under its own name, so nothing of a circuit is lost; ids are those of the file
that was exported, and are only good within the folder.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from circuitdb import __version__, sqlfiles
from circuitdb.connection import reading
from circuitdb.evals.tables import quoted
from circuitdb.migrations import latest

MANIFEST, FORMAT, VERSION = "circuitdb.json", "circuitdb-parquet", 1
# Tables that are not of a circuit; what the file keeps for its own use is left out.
SHARED = ("graph", "node", "edge", "model", "task", "subtask")
EVALUATIONS = ("evaluation_source", "imported_evaluation", "evaluation_name")
HARD = ("imported_hard_circuit", "hard_circuit_edge")
FILES = "imported_file"
TEMPLATES = "chat_template"
EVALS = "evals"


@dataclass(frozen=True)
class Written:
    """What an export wrote: rows of each table, and what had to stay behind."""

    rows: dict[str, int]
    n_bytes: int
    notes: tuple[str, ...]


def is_dataset(path: Path) -> bool:
    """Whether a folder is such an export."""
    return (path / MANIFEST).is_file()


def write(path: str, folder: Path, circuit_ids: list[int], *, timeout: float = 10.0) -> Written:
    """Write circuits of a database file into a new folder, with all that hangs on them.

    Imported hard circuits come along where their model and task are those of a chosen circuit, evaluations of others
    whole. Raises MissingDatabase, SchemaMismatch or LockedDatabase.
    """
    folder.mkdir(parents=True)
    rows: dict[str, int] = {}
    with reading(path, timeout=timeout) as connection:
        chosen = _table(connection, "dataset_circuits", circuits=circuit_ids)
        hard = _table(connection, "dataset_hard_circuits", circuits=circuit_ids)
        attached = connection.execute("SELECT count(DISTINCT source) FROM attached_file").fetchall()[0][0]
        for name in (*SHARED, TEMPLATES):
            rows[name] = _whole(connection, name, folder)
        for name in EVALUATIONS:
            where = "" if name == "evaluation_name" else " WHERE source NOT IN (SELECT source FROM attached_file)"
            rows[name] = _whole(connection, name, folder, where)
        for (name,) in connection.execute(sqlfiles.load("circuitdb.sql", "evaluation_tables")).fetchall():
            (folder / EVALS).mkdir(exist_ok=True)
            rows[f"{EVALS}.{name}"] = _whole(connection, name, folder, schema=EVALS)
        tables = [row[0] for row in connection.execute(sqlfiles.load("circuitdb.sql", "circuit_tables")).fetchall()]
        for name in tables:
            rows[name] = _parted(connection, name, "circuit_id", chosen, folder)
        for name in HARD:
            rows[name] = _parted(connection, name, "hard_id", hard, folder)
        rows[FILES] += _parted(connection, FILES, "hard_id", hard, folder, file="hard")
        rows["note"] += _whole(connection, "note", folder, " WHERE circuit_id IS NULL")
    manifest = {
        "format": FORMAT, "version": VERSION, "circuitdb": __version__, "schema": latest(), "rows": rows,
    }  # fmt: skip
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    notes = []
    if attached:
        notes.append(
            f"{attached} evaluations are attached, not copied, so they stay behind; add them without --attach."
        )
    return Written(rows, sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()), tuple(notes))


def folder_of(root: Path, table: str, model: str, task: str) -> Path:
    """Where the rows of a model and task are; names are quoted as in addresses of the web, as Hive and DuckDB do."""
    return root / table / f"model={quote(model, safe='')}" / f"task={quote(task, safe='')}"


def _table(connection: duckdb.DuckDBPyConnection, query: str, **parameters: object) -> list[tuple[int, str, str]]:
    found = connection.execute(sqlfiles.load("circuitdb.sql", query), parameters).fetchall()
    return [(int(key), str(model), str(task)) for key, model, task in found]


def _whole(
    connection: duckdb.DuckDBPyConnection, name: str, folder: Path, where: str = "", *, schema: str = "main"
) -> int:
    rows = connection.sql(f"SELECT * FROM {schema}.{quoted(name)}{where} ORDER BY rowid").to_arrow_table()
    pq.write_table(rows, folder / ("" if schema == "main" else schema) / f"{name}.parquet", compression="zstd")
    return int(rows.num_rows)


def _parted(
    connection: duckdb.DuckDBPyConnection, name: str, key: str, chosen: list[tuple[int, str, str]], folder: Path,
    *, file: str = "part",
) -> int:  # fmt: skip
    """The rows of a table, a file for each model and task, a row group or more for each circuit."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number, model, task in chosen:
        groups.setdefault((model, task), []).append(number)
    n_rows = 0
    for (model, task), numbers in groups.items():
        target = folder_of(folder, name, model, task)
        writer = None
        try:
            for number in numbers:
                sql = f"SELECT * FROM {name} WHERE {key} = $number ORDER BY rowid"
                rows: pa.Table = connection.sql(sql, params={"number": number}).to_arrow_table()
                n_rows += rows.num_rows
                if writer is None and rows.num_rows:
                    target.mkdir(parents=True, exist_ok=True)
                    writer = pq.ParquetWriter(target / f"{file}.parquet", rows.schema, compression="zstd")
                if writer is not None and rows.num_rows:
                    writer.write_table(rows)
        finally:
            if writer is not None:
                writer.close()
    return n_rows
