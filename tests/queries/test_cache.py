from __future__ import annotations

import ast
import os
import stat
import subprocess
import sys
import threading
import time
from importlib.resources import files
from pathlib import Path

import duckdb
import numpy as np
import pytest

from circuitdb import cache
from circuitdb.connection import reading
from circuitdb.queries import Database, matrix, measures
from circuitdb.queries.comparison import EVERY_EDGE, Comparison
from circuitdb.queries.matrix import ScoreMatrix
from circuitdb.queries.measures import Measures
from circuitdb.queries.selection import select
from circuitdb.store import Store
from stores import SHAPE, addition_store, circuit

RNG = np.random.default_rng(0)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small database that is worth keeping answers of."""
    monkeypatch.setattr(measures, "_WORTH", 1)
    return addition_store(tmp_path / "c.duckdb")


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was computed, and not found."""
    seen: list[str] = []
    real = measures.measured

    def watched(
        scores: ScoreMatrix, how: Comparison = EVERY_EDGE, *, pairs: bool = True, deleted: bool = False
    ) -> Measures:
        seen.append("computed")
        return real(scores, how, pairs=pairs, deleted=deleted)

    monkeypatch.setattr(measures, "measured", watched)
    return seen


def kept(path: Path) -> int:
    with reading(path) as connection:
        row = connection.execute("SELECT count(*) FROM cache").fetchone()
    assert row is not None
    return int(row[0])


def test_the_second_answer_is_found_and_the_same(path: Path, computed: list[str]) -> None:
    db = Database(path)
    first, second = db.similarity(), db.similarity()
    assert len(computed) == 1
    assert kept(path) == 1
    np.testing.assert_array_equal(second.matrix, first.matrix)
    np.testing.assert_array_equal(second.corrected, first.corrected)
    np.testing.assert_array_equal(second.n_edges, first.n_edges)
    assert (second.title, second.notes, second.reasons) == (first.title, first.notes, first.reasons)
    db.families(0.5)  # of the same numbers
    assert len(computed) == 1


def test_every_argument_is_another_answer(path: Path, computed: list[str]) -> None:
    db = Database(path)
    asked: list[dict[str, object]] = [
        {}, {"kind": "pearson"}, {"on": "magnitude"}, {"level": "node"}, {"shared": True}, {"nonzero": True},
        {"layers": (0, 0)}, {"source": "head"}, {"target": "mlp"}, {"qkv": "q"}, {"kind": "overlap", "top": 5},
        {"kind": "overlap", "top": 6}, {"circuits": [1, 2]}, {"intervals": True},
    ]  # fmt: skip
    for one in asked:
        db.similarity(**one)  # type: ignore[arg-type]
    db.reliability()
    assert len(computed) == kept(path) == len(asked) + 1
    for one in asked:
        db.similarity(**one)  # type: ignore[arg-type]
    db.reliability()
    assert len(computed) == len(asked) + 1


def test_it_is_never_stale(path: Path, computed: list[str]) -> None:
    db = Database(path)
    db.similarity()
    scores = RNG.standard_normal(SHAPE.n_edges).astype(np.float32)
    # The same spec anew: one circuit in the place of another, with the same label.
    one = circuit("1+1", {"digits_a": 1, "digits_b": 1})
    Store(path).write(one, scores, [scores, -scores], replace=True)
    fresh = db.similarity()
    assert len(computed) == 2
    np.testing.assert_array_equal(fresh.matrix, Database(path, cache=False).similarity().matrix)


def test_other_code_is_another_answer(path: Path, computed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    db = Database(path)
    db.similarity()
    monkeypatch.setattr(measures, "_code", lambda: "changed")
    db.similarity()
    assert len(computed) == 2


def test_the_key_knows_the_source_of_every_module_that_computes() -> None:
    """All that these import of the project is among them, but for what only checks, names or words things."""
    wordings = {"arguments", "columns", "errors", "named", "records", "resampling", "result", "selection"}
    known = {(package, Path(name).stem) for package, names in measures._SOURCES.items() for name in names}
    for package, names in measures._SOURCES.items():
        for name in names:
            tree = ast.parse((files(package) / name).read_text()) if name.endswith(".py") else ast.Module([], [])
            for node in tree.body:
                if isinstance(node, ast.ImportFrom) and str(node.module).startswith("circuitdb"):
                    home, _, module = str(node.module).rpartition(".")
                    whole = node.module in measures._SOURCES
                    used = {(node.module, alias.name) for alias in node.names} if whole else {(home, module)}
                    assert {one for one in used if one[1] not in wordings} <= known, name
    assert len(measures._code()) == 64


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut short"])
def test_a_damaged_answer_is_computed_anew(path: Path, computed: list[str], content: bytes) -> None:
    db = Database(path)
    expected = db.similarity().matrix
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE cache SET content = ?", [content])
    np.testing.assert_array_equal(db.similarity().matrix, expected)
    assert len(computed) == 2
    np.testing.assert_array_equal(db.similarity().matrix, expected)
    assert len(computed) == 2


def test_arrays_survive(path: Path) -> None:
    with reading(path) as connection:
        found = measures.measured(matrix.read(connection, select(connection, {}), folds=True), deleted=True)
    back = measures.unpacked(measures.packed(found))
    assert back is not None
    assert back.deleted is not None
    assert found.deleted is not None
    np.testing.assert_array_equal(back.values, found.values)
    np.testing.assert_array_equal(back.deleted.n_folds, found.deleted.n_folds)


def test_a_file_that_is_not_to_be_written_answers_without(path: Path, computed: list[str]) -> None:
    before = path.read_bytes()
    path.chmod(stat.S_IRUSR)
    try:
        db = Database(path)
        expected = db.similarity().matrix
        np.testing.assert_array_equal(db.similarity().matrix, expected)
    finally:
        path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    assert path.read_bytes() == before or os.geteuid() == 0  # root may write anything
    assert computed


def test_a_user_may_forbid_it(path: Path, computed: list[str]) -> None:
    before = path.read_bytes()
    db = Database(path, cache=False)
    db.similarity()
    db.similarity()
    assert len(computed) == 2
    assert path.read_bytes() == before


def test_a_file_in_use_is_left_alone_at_once(path: Path) -> None:
    with reading(path):  # somebody of this process reads
        start = time.monotonic()
        assert not cache.keep(str(path), "key", b"content")
        assert time.monotonic() - start < 1
    assert kept(path) == 0
    assert cache.keep(str(path), "key", b"content")
    assert kept(path) == 1


def test_another_process_that_reads_is_not_disturbed(path: Path, computed: list[str]) -> None:
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1], read_only=True); print('open', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "open\n"
        db = Database(path)
        first, second = db.similarity(), db.similarity()
        reader.communicate("done\n")
    np.testing.assert_array_equal(first.matrix, second.matrix)
    assert len(computed) == 2
    assert kept(path) == 0
    db.similarity()
    assert kept(path) == 1


def test_no_file_is_made_where_there_is_none(tmp_path: Path) -> None:
    assert not cache.keep(str(tmp_path / "none.duckdb"), "key", b"content")
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_make_room_and_the_largest_are_not_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MOST", 2)
    for key in ("a", "b", "c", "c"):
        assert cache.keep(str(path), key, key.encode())
    with reading(path) as connection:
        assert cache.find(connection, "a") is None
        assert cache.find(connection, "b") == b"b"
        assert cache.find(connection, "c") == b"c"
    monkeypatch.setattr(cache, "_LARGEST", 3)
    assert not cache.keep(str(path), "d", b"long")


def test_many_may_ask_at_once(path: Path) -> None:
    expected = Database(path, cache=False).similarity().matrix
    found: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: found.append(Database(path).similarity().matrix)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 8
    for one in found:
        np.testing.assert_array_equal(one, expected)


def test_little_work_is_not_kept(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "c.duckdb")
    before = path.read_bytes()
    Database(path).similarity()
    assert path.read_bytes() == before
