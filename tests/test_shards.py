"""Circuits in files of their own, and what becomes of them in a merge."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from circuitdb import shards
from circuitdb.connection import reading
from circuitdb.doctor import examine
from circuitdb.errors import ScoreError, UsageError
from circuitdb.merging import Merged, merge
from circuitdb.records import Accuracy, Circuit, Example
from circuitdb.shards import ShardFolder
from circuitdb.store import Store
from stores import SHAPE, addition_store, circuit

RNG = np.random.default_rng(2)
SCORES = RNG.standard_normal((7, SHAPE.n_edges)).astype(np.float32)
SCORES[0, [3, 4, 5]] = np.nan, np.inf, -0.0
EXAMPLES = [
    Example("1+2=", "1+3=", "3", "4", n_tokens=4, fold=0, prediction="3", correct=True, clean_ids=(1, 2, 3),
            corrupted_ids=(1, 2, 4), labels=((5, 6), (7, -1)), reasoning="Two more.\u00fc"),
    Example("9\u00e9+\U0001f600", answer="10", reason="no partner"),
    Example("5+5=", "5+6=", "10", fold=1, clean_ids=[9]),
]  # fmt: skip
ACCURACY = Accuracy(1 / 3, 0.1, 3)


def record(salt: str = "", subtask: str = "1+1") -> Circuit:
    """A circuit with values that JSON could spoil."""
    return replace(
        circuit(subtask, {"digits_a": 1}, salt=salt, n_examples=2),
        n_skipped=1, metric_clean=0.1 + 0.2, metric_corrupted=1e-45, software={"torch": "2.13.0"}, bos=False,
        started_at=datetime(2026, 1, 2, 3, 4, 5, 678901, UTC), seed=2**62, wall_time_s=1 / 3,
        contrast="corrupted", padding="left", n_padded=1, dtype="float32", device="cpu", batch_size=4,
        shots_drawn="per-example", reasoning_tokens=64, chat=True, chat_template="{{ \u00fc }}",
    )  # fmt: skip


def fill(sink: Store | ShardFolder, circuits: list[Circuit]) -> None:
    """Write circuits as an ingest does."""
    for i, one in enumerate(circuits):
        sink.write(
            one, SCORES[i], SCORES[i + 1 : i + 3], examples=EXAMPLES, by_example=SCORES[i + 3 : i + 5],
            accuracy=[ACCURACY, Accuracy(0.5, None, 3, metric="choice")],
        )  # fmt: skip


def rows(path: str | Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table but the time a migration was applied."""
    with reading(path) as connection:
        names = [str(row[0]) for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        names.remove("schema_version")
        return {name: connection.execute(f"SELECT * FROM {name} ORDER BY ALL").fetchall() for name in names}


def statuses(done: list[Merged]) -> list[tuple[str | None, str]]:
    """Subtask and status of each, by subtask."""
    return sorted(((one.subtask, one.status) for one in done), key=str)


def merged(store: Store, *paths: Path) -> list[Merged]:
    """All that a merge yields."""
    return list(merge(store, paths))


def test_a_merge_gives_the_rows_of_writing_to_the_database(tmp_path: Path) -> None:
    plain, folder, store = (
        Store(tmp_path / "plain.duckdb"), ShardFolder(tmp_path / "shard"), Store(tmp_path / "merged.duckdb"),
    )  # fmt: skip
    circuits = sorted((record(str(i), f"1+{i}") for i in range(3)), key=lambda one: one.spec_digest)
    folder.create()
    fill(plain, circuits)
    fill(folder, circuits)
    assert statuses(merged(store, folder.path)) == [("1+0", "stored"), ("1+1", "stored"), ("1+2", "stored")]
    found, wanted = rows(store.path), rows(plain.path)
    assert found == wanted  # to the bit: a float32 is compared as the double it is exactly
    with reading(plain.path) as connection:
        for table in ("circuit", "example", "chat_template"):
            for name in (column[0] for column in connection.execute(f"SELECT * FROM {table}").description or ()):
                counted = connection.execute(f"SELECT count({name}) FROM {table}").fetchall()
                assert counted != [(0,)], f"{table}.{name} has no value, so nothing shows that a shard has it"
    assert (len(found["edge_score"]), len(found["fold_score"])) == (3 * SHAPE.n_edges, 6 * SHAPE.n_edges)
    assert (len(found["example_score"]), len(found["evaluation"])) == (6 * SHAPE.n_edges, 6)
    assert examine(store.path, every=True).healthy


def test_scores_come_back_to_the_bit(tmp_path: Path) -> None:
    folder = ShardFolder(tmp_path / "shard")
    folder.create()
    fill(folder, [record()])
    assert folder.finished() == folder.finished(by_example=True) == {record().spec_digest: None}
    (file,) = folder.path.iterdir()
    assert file.name == f"{record().spec_digest}.parquet"
    found = shards.read(file)
    assert found.circuit == record()
    assert found.scores.tobytes() == SCORES[0].tobytes()
    assert found.folds.tobytes() == SCORES[1:3].tobytes()
    assert found.by_example is not None
    assert found.by_example.tobytes() == SCORES[3:5].tobytes()
    assert [example.clean for example in found.examples] == [example.clean for example in EXAMPLES]
    assert found.accuracy == (ACCURACY, Accuracy(0.5, None, 3, metric="choice"))
    # Read without a line of ours.
    table = pq.read_table(file)
    assert table.column_names == ["score", "fold_0", "fold_1", "example_0", "example_1"]
    assert table["fold_1"].to_numpy().tobytes() == SCORES[2].tobytes()


def test_a_merge_can_be_repeated_and_goes_on(tmp_path: Path) -> None:
    folder, store = ShardFolder(tmp_path / "shard"), Store(tmp_path / "merged.duckdb")
    folder.create()
    fill(folder, [record("a"), record("b")])
    next(merge(store, [folder.path]))  # and no further
    before = rows(store.path)
    assert len(before["circuit"]) == 1
    assert sorted(one.status for one in merged(store, folder.path)) == ["kept", "stored"]
    whole = rows(store.path)
    assert [one.status for one in merged(store, folder.path, *sorted(folder.path.iterdir()))] == ["kept"] * 4
    assert rows(store.path) == whole


def test_other_scores_of_the_same_spec_are_told_and_not_taken(tmp_path: Path) -> None:
    folder, store = ShardFolder(tmp_path / "shard"), Store(tmp_path / "merged.duckdb")
    folder.create()
    folder.write(record(), SCORES[1])
    store.write(record(), SCORES[2])
    before = rows(store.path)
    (done,) = merged(store, folder.path)
    assert (done.status, done.circuit_id) == ("kept", 1)
    assert done.reason == "Its scores differ from the stored ones, which are kept."
    assert rows(store.path) == before


def test_scores_of_single_examples_are_added_to_a_stored_circuit(tmp_path: Path) -> None:
    folder, store = ShardFolder(tmp_path / "shard"), Store(tmp_path / "merged.duckdb")
    folder.create()
    store.write(record(), SCORES[0], SCORES[1:3], examples=EXAMPLES)
    fill(folder, [record()])
    (done,) = merged(store, folder.path)
    assert (done.status, done.circuit_id, done.reason) == ("kept", 1, None)
    assert len(rows(store.path)["example_score"]) == 2 * SHAPE.n_edges
    assert store.finished(by_example=True) == {record().spec_digest: 1}


def spoil(file: Path, how: str) -> None:
    """Damage a file of a circuit."""
    content = file.read_bytes()
    if how == "cut short":
        file.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "text":
        file.write_text("no Parquet")
    elif how == "flipped":
        flipped = bytearray(content)
        flipped[100] ^= 1
        file.write_bytes(flipped)
    else:
        table = pq.read_table(file)
        said = json.loads(table.schema.metadata[b"circuitdb"])
        if how == "other score":
            column = table["score"].to_numpy().copy()
            column[9] += 1
            table = table.set_column(0, "score", pa.array(column)).replace_schema_metadata(table.schema.metadata)
        elif how == "a row less":
            table = table.slice(1)
        elif how == "other method":
            said["content"]["circuit"]["method"] = "eap"
        elif how == "other answer":
            said["content"]["examples"][0]["answer"] = "4"
        elif how == "newer":
            said["version"] = 2
        elif how == "new field":
            said["content"]["circuit"]["colour"] = "red"
            said["digest"] = shards._digest(said["content"], table)
        elif how == "no metadata":
            said = None
        pq.write_table(table.replace_schema_metadata(said and {b"circuitdb": json.dumps(said).encode()}), file)


SPOILT = [
    ("cut short", "is cut short, damaged or no Parquet file; score its circuit again."),
    ("empty", "is cut short, damaged or no Parquet file"),
    ("text", "is cut short, damaged or no Parquet file"),
    ("flipped", "damaged"),
    ("other score", "is damaged: its content has not the digest it was written with; score it again."),
    ("a row less", "has not the digest it was written with"),
    ("other method", "has not the digest it was written with"),
    ("other answer", "has not the digest it was written with"),
    ("newer", "was written by another version of circuitdb (layout 2, not 1)."),
    ("new field", "was written by another version of circuitdb: "),
    ("no metadata", "is a Parquet file, but no circuit that `circuitdb ingest --work` wrote."),
]


@pytest.mark.parametrize(("how", "told"), SPOILT, ids=[case[0] for case in SPOILT])
def test_a_spoilt_file_is_refused_and_the_others_go_in(how: str, told: str, tmp_path: Path) -> None:
    folder, store = ShardFolder(tmp_path / "shard"), Store(tmp_path / "merged.duckdb")
    folder.create()
    fill(folder, [record("a", "1+1"), record("b", "2+2"), record("c", "3+3")])
    file = folder.path / f"{record('b', '2+2').spec_digest}.parquet"
    spoil(file, how)
    done = merged(store, folder.path)
    assert statuses(done) == [("1+1", "stored"), ("3+3", "stored"), (None, "refused")]
    (refused,) = [one for one in done if one.status == "refused"]
    assert refused.reason is not None
    assert refused.reason.startswith(str(file))
    assert told in refused.reason
    assert "\n" not in refused.reason
    assert examine(store.path, every=True).healthy
    # The worker that is run again does not take it for finished, and puts a whole one in its place.
    again = ShardFolder(folder.path)
    again.create()
    assert set(again.finished()) == {record("a", "1+1").spec_digest, record("c", "3+3").spec_digest}
    again.write(record("b", "2+2"), SCORES[1], SCORES[2:4], examples=EXAMPLES, by_example=SCORES[4:6])
    assert statuses(merged(store, folder.path)) == [("1+1", "kept"), ("2+2", "stored"), ("3+3", "kept")]


def test_a_circuit_that_a_shard_lacks_is_told(tmp_path: Path) -> None:
    folder, store = ShardFolder(tmp_path / "shard"), Store(tmp_path / "merged.duckdb")
    folder.create()
    circuits = [record("a", "1+1"), record("b", "2+2")]
    folder.promise((2, 4), "abc", {one.spec_digest: one.subtask.name for one in circuits})
    assert statuses(merged(store, folder.path)) == [("1+1", "refused"), ("2+2", "refused")]
    folder.write(circuits[0], SCORES[1])
    done = merged(store, folder.path)
    assert statuses(done) == [("1+1", "stored"), ("2+2", "refused")]
    assert done[-1].reason == "It is not scored yet: run shard 2/4 again."
    (manifest,) = folder.path.glob("shard-*.json")
    manifest.write_text("{")
    assert [one.status for one in merged(store, folder.path)] == ["kept", "refused"]


def test_names_of_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "merged.duckdb")
    (tmp_path / "empty").mkdir()
    for name, told in (("none", "There is no "), ("empty", "has no circuits; name what `circuitdb ingest --work")):
        with pytest.raises(UsageError, match=told):
            merged(store, tmp_path / name)
    assert not Path(store.path).exists()
    with pytest.raises(ScoreError, match="There is no file"):
        shards.read(tmp_path / "none")


def test_folders_that_can_not_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is a file; circuits without a database go to a folder"):
        ShardFolder(tmp_path / "file").create()
    with pytest.raises(UsageError, match="does not exist; make it, or name another with --out"):
        ShardFolder(tmp_path / "no" / "folder").create()


def test_what_a_killed_worker_left_is_removed_and_that_of_others_stays(tmp_path: Path) -> None:
    folder = ShardFolder(tmp_path / "shard")
    folder.create()
    mine, elsewhere = (folder.path / f".abc.{host}.{2**22 + 1}.tmp" for host in (socket.gethostname(), "elsewhere"))
    running = folder.path / f".abc.{socket.gethostname()}.{os.getpid()}.tmp"
    for path in (mine, elsewhere, running):
        path.touch()
    folder.create()
    assert set(folder.path.iterdir()) == {elsewhere, running}
    fill(folder, [record()])
    assert [one.status for one in merged(Store(tmp_path / "c.duckdb"), folder.path)] == ["stored"]


def test_wrong_shapes_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    folder = ShardFolder(tmp_path / "shard")
    folder.create()
    with pytest.raises(ScoreError, match="Scores have shape"):
        folder.write(record(), SCORES[0][:-1])
    with pytest.raises(ScoreError, match="Fold scores have shape"):
        folder.write(record(), SCORES[0], SCORES[:2, :-1])
    with pytest.raises(ScoreError, match="Example scores have shape"):
        folder.write(record(), SCORES[0], examples=EXAMPLES, by_example=SCORES[:3])
    assert list(folder.path.iterdir()) == []


def test_a_merge_into_a_database_that_has_others(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "circuits.duckdb", digits=1)
    folder = ShardFolder(tmp_path / "shard")
    folder.create()
    fill(folder, [record("a")])
    assert [(one.status, one.circuit_id) for one in merged(Store(path), folder.path)] == [("stored", 2)]
    found = rows(path)
    assert [len(found[name]) for name in ("circuit", "model", "graph", "task")] == [2, 1, 1, 1]
