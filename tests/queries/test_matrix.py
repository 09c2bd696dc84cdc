from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

from circuitdb.connection import reading
from circuitdb.errors import UsageError
from circuitdb.queries import matrix
from circuitdb.queries.filters import Where
from circuitdb.queries.matrix import ScoreMatrix
from circuitdb.queries.selection import select
from circuitdb.store import Store
from matrices import score_matrix
from stores import SHAPE, addition_scores, addition_store, circuit

CELLS = list(addition_scores().values())


def read(path: Path, where: Where | None = None, *, folds: bool = True) -> ScoreMatrix:
    with reading(path) as connection:
        return matrix.read(connection, select(connection, where or {}), folds=folds)


def test_rows_are_the_circuits_scores(path: Path) -> None:
    found = read(path)
    assert found.circuit_ids == (1, 2, 3, 4, 5, 6, 7, 8, 9)
    assert found.labels[:4] == ("1+1", "1+2", "1+3", "2+1")
    assert found.n_examples == (8,) * 9
    np.testing.assert_array_equal(found.scores, [scores for scores, _ in CELLS])
    assert found.folds is not None
    np.testing.assert_array_equal(found.folds, [folds for _, folds in CELLS])


def test_a_selection_is_read_in_its_order(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    for a in (3, 1, 2):  # ids 1, 2, 3
        store.write(circuit(f"{a}+1", {"a": a}), np.full(SHAPE.n_edges, a), np.full((a, SHAPE.n_edges), -a))
    found = read(tmp_path / "c.duckdb")
    assert found.circuit_ids == (2, 3, 1)
    assert found.scores[:, 0].tolist() == [1, 2, 3]
    assert found.folds is not None
    assert [part.shape for part in found.folds] == [(1, SHAPE.n_edges), (2, SHAPE.n_edges), (3, SHAPE.n_edges)]
    assert [part[-1, -1] for part in found.folds] == [-1, -2, -3]
    assert read(tmp_path / "c.duckdb", {"circuits": [1, 2]}).scores[:, 5].tolist() == [1, 3]


def test_rows_may_come_in_any_order(tmp_path: Path, path: Path) -> None:
    shuffled = addition_store(tmp_path / "c.duckdb")
    with duckdb.connect(str(shuffled)) as connection:
        for table in ("edge_score", "fold_score"):
            connection.execute(f"CREATE TABLE mixed AS SELECT * FROM {table} ORDER BY hash(edge_id, score)")
            connection.execute(f"DELETE FROM {table}")
            connection.execute(f"INSERT INTO {table} SELECT * FROM mixed")
            connection.execute("DROP TABLE mixed")
    found, expected = read(shuffled), read(path)
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert found.folds is not None
    np.testing.assert_array_equal(found.folds, expected.folds)


def test_blocks_of_circuits_make_one_matrix(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "_ROWS_AT_ONCE", 2 * SHAPE.n_edges)
    np.testing.assert_array_equal(
        read(path, {"circuits": [1, 2, 4, 5, 9]}).scores, [CELLS[i][0] for i in (0, 1, 3, 4, 8)]
    )


def test_null_scores_are_nan(tmp_path: Path) -> None:
    scores = np.arange(SHAPE.n_edges, dtype=np.float32)
    scores[[0, 7]] = np.nan, np.inf
    folds = np.stack([scores, -scores])
    Store(tmp_path / "c.duckdb").write(circuit(), scores, folds)
    found = read(tmp_path / "c.duckdb")
    assert np.flatnonzero(np.isnan(found.scores[0])).tolist() == [0, 7]
    assert found.folds is not None
    assert np.argwhere(np.isnan(found.folds[0])).tolist() == [[0, 0], [0, 7], [1, 0], [1, 7]]
    assert found.scores[0, 8] == 8


def test_folds_are_read_on_request_only(path: Path) -> None:
    assert read(path, folds=False).folds is None


def test_magnitudes_have_no_sign() -> None:
    signed = score_matrix([[-2, 1]], [[[-3, 3], [0, -1]]])
    seen = signed.seen("magnitude")
    assert seen.scores.tolist() == [[2, 1]]
    assert seen.folds is not None
    assert seen.folds[0].tolist() == [[3, 3], [0, 1]]
    assert seen.seen("magnitude") is seen
    assert signed.seen("signed") is signed


@pytest.mark.parametrize(("start", "asked", "message"), [("signed", "abs", "neither"), ("magnitude", "signed", "gone")])
def test_other_sides_are_refused(start: str, asked: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        score_matrix([[1, 2]]).seen(start).seen(asked)
