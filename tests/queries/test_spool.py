"""Long answers on disk: the same rows as at once, stopped at any time, cut off in the open, saved as `sql -o` does."""

from __future__ import annotations

import contextlib
import tempfile
import threading
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest

from circuitdb.cli.main import main
from circuitdb.errors import UsageError
from circuitdb.queries import Database, export, spool
from circuitdb.stopping import Stop

ODD = (
    "SELECT i AS n, CASE WHEN i % 3 = 0 THEN NULL ELSE i / 8 END AS x, 'a,\"' || chr(10) || i AS t, [i, NULL] AS l,"
    " {{'a': i}} AS s, DATE '2026-01-02' + i::INTEGER AS d, i::HUGEINT AS h, INTERVAL 1 MONTH AS v, '101'::BIT AS b,"
    " CASE WHEN i = 7 THEN 'inf'::DOUBLE ELSE 1 END AS f, '00000000-0000-0000-0000-000000000001'::UUID AS u"
    " FROM range({n}) AS r(i)"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where answers are kept: nothing may be left there."""
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(kept))
    return kept


@pytest.mark.parametrize("n", [0, 1, 9_999, 10_000, 25_001])
def test_the_rows_are_those_of_sql(db: Database, path: Path, folder: Path, n: int) -> None:
    statement = ODD.format(n=n)
    found, at_once = spool.spool(path, statement), db.sql(statement).table
    assert (found.n_rows, found.schema.names) == (n, at_once.column_names)
    assert found.rows(0, n + 5).equals(at_once)
    for offset, limit in ((0, 3), (9_998, 4), (n - 1, 10), (19_999, 3_000)):
        if offset >= 0:
            assert found.rows(offset, limit).equals(at_once.slice(offset, limit))
    assert list(folder.iterdir()) == []
    found.close()


def test_it_tells_how_far_it_is_and_gives_columns_names_of_their_own(path: Path) -> None:
    told: list[int] = []
    found = spool.spool(path, "SELECT i AS a, i AS a FROM range(30000) AS r(i)", told=told.append)
    assert told[-1] == 30_000
    assert told == sorted(told)
    assert len(told) > 2
    assert found.schema.names == ["a", "a_1"]
    assert found.notes == ("Several columns are called a; all but the first are numbered.",)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DROP TABLE circuit", "DROP is refused"),
        ("SELECT * FROM circuitz", 'Did you mean "circuit"'),
        ("SELECT CASE WHEN i = 900000 THEN 'x' ELSE '1' END::INTEGER FROM range(1000000) AS r(i)", "Could not convert"),
        ("SELECT * FROM 'x.csv'", "names a file"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_left(path: Path, folder: Path, statement: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        spool.spool(path, statement)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT sum(a.i * b.i) FROM range(10000000) AS a(i), range(10000000) AS b(i)",
        "SELECT a.i FROM range(10000000) AS a(i), range(10000000) AS b(i)",
    ],
    ids=["before the first row", "between rows"],
)
def test_it_is_stopped(path: Path, folder: Path, statement: str) -> None:
    stop, raised = Stop(), []

    def ask() -> None:
        with stop.heeded():
            try:
                spool.spool(path, statement)
            except BaseException as error:
                raised.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.5)
    began = time.monotonic()
    while thread.is_alive() and time.monotonic() - began < 20:
        stop.now()
        time.sleep(0.1)
    assert not thread.is_alive()
    assert isinstance(raised[0], duckdb.InterruptException)
    assert list(folder.iterdir()) == []


def test_past_the_limit_the_rest_is_left_out_and_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "MOST_BYTES", 1 << 20)
    found = spool.spool(path, "SELECT i FROM range(1000000000) AS r(i)")
    assert 100_000 <= found.n_rows < 200_000  # a MB of 8 bytes each
    assert found.notes[0].startswith(f"These are the first {found.n_rows:,} rows, as many as 1 MB hold")
    assert found.rows(found.n_rows - 1, 9)["i"].to_pylist() == [found.n_rows - 1]


@pytest.mark.parametrize("form", export.FORMS)
@pytest.mark.parametrize("n", [0, 20_500])
def test_saved_as_the_command_does(path: Path, tmp_path: Path, form: str, n: int) -> None:
    statement = ODD.format(n=n)
    ours, theirs = tmp_path / f"ours{form}", tmp_path / f"theirs{form}"
    notes = export.save(spool.spool(path, statement), ours)
    assert main(["sql", statement, "-o", str(theirs), "--db", str(path)]) == 0
    if form == ".parquet":
        assert pa.parquet.read_table(ours).equals(pa.parquet.read_table(theirs))
        assert notes == ("Parquet has no such type as that of v; written as text.",)
    else:
        assert ours.read_bytes() == theirs.read_bytes()
        assert notes == (("Infinite numbers and NaN are given as NULL here; there are 1 of them.",) if n else ())
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_file_that_is_there_is_not_touched(path: Path, tmp_path: Path) -> None:
    found = spool.spool(path, "SELECT 1 AS a")
    (tmp_path / "a.csv").write_text("mine")
    for name, said in (("a.csv", "exists already"), ("a.txt", "ends in none of"), ("none/a.csv", "does not exist")):
        with pytest.raises(UsageError, match=said):
            export.save(found, tmp_path / name)
    assert (tmp_path / "a.csv").read_text() == "mine"


def test_the_file_is_free_while_it_is_looked_at(path: Path) -> None:
    found = spool.spool(path, "FROM edge_score")
    with contextlib.closing(duckdb.connect(str(path))) as writer:  # refused while anybody reads
        assert writer.execute("SELECT count(*) FROM edge_score").fetchone() == (found.n_rows,)
