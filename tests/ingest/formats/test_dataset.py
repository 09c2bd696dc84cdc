"""circuitdb's own Parquet: a database written out and read back is the same, table by table."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import circuitdb
import tool_files
from circuitdb.ingest.formats import dataset
from circuitdb.ingest.formats.importing import Told, import_files
from circuitdb.records import Accuracy, Example, Faithfulness
from circuitdb.store import Store
from stores import SHAPE, circuit, model

TEMPLATES = ("{{ a }}", "{{ ü }}", "{{ a }}")
TABLES_OF_ITS_OWN = {"cache", "schema_version"}


def contents(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, in order."""
    with duckdb.connect(str(path), read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        tables = connection.execute("SELECT schema_name, table_name FROM duckdb_tables() ORDER BY ALL").fetchall()
        return {
            f"{schema}.{name}": connection.execute(f'SELECT * FROM {schema}."{name}" ORDER BY rowid').fetchall()
            for schema, name in tables
            if name not in TABLES_OF_ITS_OWN
        }


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with something in every table: two models of one name, names that a file system minds, odd scores."""
    folder = tmp_path_factory.mktemp("everything")
    path = folder / "source.duckdb"
    store, rng = Store(path), np.random.default_rng(0)
    models = [model("org/model: 1"), replace(model("org/model: 1"), weights_digest="another"), model("tiny")]
    for i, owner in enumerate(models):
        for subtask in ("1+1", "1+2"):
            scores = rng.standard_normal(SHAPE.n_edges).astype(np.float32)
            scores[: i + 1] = [np.nan, 1e-45, -0.0][: i + 1]
            record = replace(
                circuit(subtask, {"digits_a": 1, "größe": 2}, of=owner, task="a/b=c & ü", salt=str(i)),
                started_at=datetime(2026, 1, 2, 3, 4, 5, 678901, UTC), software={"torch": "2.13.0"}, bos=True,
                metric_clean=0.1, metric_corrupted=1e-45, seed=2**40, contrast="corrupted", padding="left", n_padded=3,
                dtype="float32", device="cpu", batch_size=4, shots_drawn="per-example", reasoning_tokens=64,
                chat=True, chat_template=TEMPLATES[i],
            )  # fmt: skip
            record = replace(record, spec=record.spec | {"chat_template": sha256(TEMPLATES[i].encode()).hexdigest()})
            examples = [
                Example("1+1=", "1+2=", "2", "3", n_tokens=4, fold=0, prediction="2", correct=True, clean_ids=[1, 2],
                        corrupted_ids=[1, 3], labels=[[5, -1], [6]], reasoning="One more is two."),
                Example("9+1=\n", answer="10", reason="no corrupted prompt"),
            ]  # fmt: skip
            folds = rng.standard_normal((2, SHAPE.n_edges)).astype(np.float32)
            store.write(
                record, scores, folds, examples=examples, by_example=scores[None], accuracy=Accuracy(0.75, 0.125, 8)
            )
    runs = [
        Faithfulness(c, d, 0.1, 5, 0, "top-absolute", "patching", "kl", 0.5, 0.0, 1.0, 0.5, None, 8)
        for c, d in ((1, 1), (1, 2), (3, 3))
    ]
    store.write_faithfulness(runs)
    config = {"n_layers": SHAPE.n_layers, "n_heads": SHAPE.n_heads, "parallel_attn_mlp": False, "d_model": 12}
    edges = {name: {"score": float(i), "in_graph": i < 4} for i, name in enumerate(tool_files.edge_names(config))}
    tool_files.eap_ig_json(folder / "a.json", config, edges)
    tool_files.eap_ig_json(folder / "b.json", config, {name: {"in_graph": e["in_graph"]} for name, e in edges.items()})
    import_files(store, [folder / "a.json", folder / "b.json"], Told(model="tiny", task="ioi"))
    (folder / "board.csv").write_text("model,subtask,score\ntiny,1+1,0.5\nother,1+2,0.25\n")
    db = circuitdb.open(path)
    db.add_evaluations([str(folder / "board.csv")], "board")
    from circuitdb.evals.writer import Mapping

    db.map_evaluations("board", [Mapping("model", "other", "org/model: 1@another")])
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO note (circuit_id, node, text) VALUES (2, NULL, 'mine'), (NULL, 'm0', 'of all')")
    return path


def test_the_example_has_something_in_every_table(everything: Path) -> None:
    empty = {name for name, rows in contents(everything).items() if not rows}
    assert empty == {"main.attached_file"}
    with duckdb.connect(str(everything), read_only=True) as connection:
        for table in ("circuit", "example"):
            columns = connection.execute(f"SELECT * FROM {table}").description or ()
            for name in (column[0] for column in columns):
                found = connection.execute(f"SELECT count({name}) FROM {table}").fetchall()
                assert found != [(0,)], f"{table}.{name} has no value, so nothing shows that it comes back"


def test_a_whole_database_comes_back_the_same(everything: Path, tmp_path: Path) -> None:
    ids = circuitdb.open(everything).circuits().arrow()["circuit_id"].to_pylist()
    written = dataset.write(str(everything), tmp_path / "out", ids)
    back = Store(tmp_path / "back.duckdb")
    found = import_files(back, [tmp_path / "out"])
    assert {outcome.status for outcome in found} == {"stored"}
    wanted, read = contents(everything), contents(Path(back.path))
    # The new ids follow the order of the folder: by model and task. Here they are put back to compare row by row.
    assert {name: len(rows) for name, rows in read.items()} == {name: len(rows) for name, rows in wanted.items()}
    assert sum(len(rows) for name, rows in wanted.items() if name.startswith("main.")) == sum(
        n for name, n in written.rows.items() if not name.startswith("evals.")
    )
    for table in ("edge_score", "fold_score", "example_score", "example", "evaluation", "faithfulness", "note",
                  "imported_file", "circuit", "imported_hard_circuit", "hard_circuit_edge",
                  "chat_template"):  # fmt: skip
        assert by_digest(Path(back.path), table) == by_digest(everything, table), table
    for name in ("evals.board", "main.evaluation_source", "main.imported_evaluation", "main.evaluation_name"):
        assert read[name] == wanted[name], name


IDS = {"circuit_id": "circuit", "data_circuit_id": "circuit", "hard_id": "imported_hard_circuit", "model_id": "model",
       "subtask_id": "subtask", "graph_id": "graph"}  # fmt: skip
KEYS = {
    "circuit": "SELECT circuit_id, spec_digest FROM circuit",
    "imported_hard_circuit": "SELECT hard_id, spec_digest FROM imported_hard_circuit",
    "model": "SELECT model_id, "
    "(name, revision, architecture, n_kv_heads, d_model, n_parameters, weights_digest)::VARCHAR FROM model",
    "subtask": "SELECT subtask_id, (t.name, t.description, s.name, parameters)::VARCHAR "
    "FROM subtask AS s JOIN task AS t USING (task_id)",
    "graph": "SELECT graph_id, (n_layers, n_heads, parallel, n_nodes, n_edges)::VARCHAR FROM graph",
}  # fmt: skip


def by_digest(path: Path, table: str) -> list[tuple[Any, ...]]:
    """The rows of a table with each id replaced by what it stands for, and floats by their bits, sorted."""
    with duckdb.connect(str(path), read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        meaning = {name: dict(connection.execute(sql).fetchall()) for name, sql in KEYS.items()}
        relation = connection.execute(f"SELECT * FROM {table}")
        names = [column[0] for column in relation.description or ()]
        rows = relation.fetchall()
    found = [
        tuple(
            meaning[IDS[name]][value] if name in IDS and value is not None
            else np.float64(value).tobytes() if isinstance(value, float)
            else str(value)
            for name, value in zip(names, row, strict=True)
        )
        for row in rows
    ]  # fmt: skip
    return sorted(found, key=repr)


def test_reading_back_again_keeps_everything(everything: Path, tmp_path: Path) -> None:
    dataset.write(str(everything), tmp_path / "out", list(range(1, 8)))
    back = Store(tmp_path / "back.duckdb")
    import_files(back, [tmp_path / "out"])
    before = contents(Path(back.path))
    assert {outcome.status for outcome in import_files(back, [tmp_path / "out"])} == {"kept"}
    assert contents(Path(back.path)) == before


def test_into_a_database_that_has_others(everything: Path, tmp_path: Path) -> None:
    """Ids are made anew, models, tasks and graphs that are there are used."""
    back = Store(tmp_path / "back.duckdb")
    back.write(
        circuit("1+1", {"digits_a": 1, "größe": 2}, of=model("tiny"), task="a/b=c & ü", salt="own"),
        np.ones(SHAPE.n_edges),
    )
    dataset.write(str(everything), tmp_path / "out", [5])
    (outcome,) = (o for o in import_files(back, [tmp_path / "out"]) if o.kind == "circuit")
    assert (outcome.status, outcome.number, outcome.model) == ("stored", 2, "tiny")
    with duckdb.connect(back.path, read_only=True) as connection:
        for table, n in (("model", 1), ("task", 1), ("subtask", 1), ("graph", 1), ("edge", SHAPE.n_edges)):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchall() == [(n,)], table


def test_a_part_is_exported_with_what_hangs_on_it_alone(everything: Path, tmp_path: Path) -> None:
    written = dataset.write(str(everything), tmp_path / "out", [1])
    assert written.rows["circuit"] == 1
    assert written.rows["edge_score"] == SHAPE.n_edges
    assert written.rows["imported_hard_circuit"] == 0
    assert written.rows["faithfulness"] == 2
    assert written.rows["chat_template"] == 2
    back = Store(tmp_path / "back.duckdb")
    import_files(back, [tmp_path / "out"])
    # The run on the examples of circuit 2, which stayed behind, can't be told.
    with duckdb.connect(back.path, read_only=True) as connection:
        assert connection.execute("SELECT circuit_id, data_circuit_id FROM faithfulness").fetchall() == [(1, 1)]
        assert connection.execute("SELECT template FROM chat_template").fetchall() == [(TEMPLATES[0],)]


def test_the_folder_is_a_table_to_duckdb_and_pyarrow(everything: Path, tmp_path: Path) -> None:
    import pyarrow.dataset as ds

    dataset.write(str(everything), tmp_path / "out", list(range(1, 8)))
    sql = f"SELECT model, task, count(*) FROM read_parquet('{tmp_path}/out/edge_score/**/*.parquet', hive_partitioning=true) GROUP BY ALL ORDER BY ALL"  # noqa: E501
    wanted = [
        ("org/model: 1", "a/b=c & ü", 4 * SHAPE.n_edges), ("tiny", "a/b=c & ü", 2 * SHAPE.n_edges),
        ("tiny", "ioi", SHAPE.n_edges),
    ]  # fmt: skip
    with duckdb.connect() as connection:
        assert connection.execute(sql).fetchall() == wanted
    table = ds.dataset(tmp_path / "out" / "edge_score", partitioning="hive").to_table()
    assert sorted(set(table["model"].to_pylist())) == ["org/model: 1", "tiny"]
    assert table.num_rows == 7 * SHAPE.n_edges
