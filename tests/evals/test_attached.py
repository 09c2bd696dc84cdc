"""Evaluations that stay in their files: the same answers as from copies, what changes is told, what is gone is said."""

from __future__ import annotations

import json
import os
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest

from circuitdb.connection import reading
from circuitdb.errors import StoreError, UsageError
from circuitdb.evals.columns import Columns
from circuitdb.evals.writer import Mapping
from circuitdb.queries import Database
from stores import addition_store

LINES = ("model,subtask,acc", "TINY,1+1,0.5", "tiny,1+2,0.25", "tiny,2+1,0.75", "tiny,2+2,1", "huge,9+9,0")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Four circuits of the model tiny, 1+1 to 2+2."""
    return addition_store(tmp_path / "circuits.duckdb", digits=2)


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """A CSV of five values, two names of which the database does not have."""
    return write(tmp_path / "board.csv", *LINES)


def write(file: Path, *lines: str) -> Path:
    file.write_text("\n".join(lines) + "\n")
    return file


def values(db: Database, name: str = "board") -> dict[object, object]:
    return {row["subtask"]: row["value"] for row in db.evaluations().rows() if row["source"] == name}


def of_kind(folder: Path, kind: str) -> tuple[Path, str | None]:
    """The same table in a file of another kind, and the name of the table in it."""
    table = pa.table({"model": ["tiny"] * 2, "subtask": ["1+1", "1+2"], "acc": [0.5, 0.25]})
    file = folder / f"board.{kind}"
    if kind == "parquet":
        pyarrow.parquet.write_table(table, file)
    elif kind == "duckdb":
        with duckdb.connect(str(file)) as connection:
            connection.register("arriving", table)
            connection.execute("CREATE TABLE results AS FROM arriving; CREATE TABLE other (i INTEGER)")
        return file, "results"
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return file, None


def test_attached_files_answer_as_copied_ones(path: Path, board: Path) -> None:
    db = Database(path)
    copied = db.add_evaluations([board], "copied")
    found = db.add_evaluations([board], "board", attach=True)
    assert found.title == copied.title.replace("copied:", "board:").replace("(csv)", "(csv, attached)")
    # By hand: tiny is the same name, so that TINY, which is only like it, is not guessed; huge and 9+9 are not ours.
    keys = ("external", "internal", "how", "n_rows", "reason")
    assert [tuple(row[key] for key in keys) for row in found.rows()] == [
        ("tiny", "tiny", "same", 3, None),
        ("TINY", None, None, 1, "so is another name of the file like tiny"),
        ("huge", None, None, 1, "the database has no such name"),
        ("1+1", "addition/1+1", "same", 1, None),
        ("1+2", "addition/1+2", "same", 1, None),
        ("2+1", "addition/2+1", "same", 1, None),
        ("2+2", "addition/2+2", "same", 1, None),
        ("9+9", None, None, 1, "the database has no such name"),
    ]
    assert [tuple(row[key] for key in keys) for row in copied.rows()] == [
        tuple(row[key] for key in keys) for row in found.rows()
    ]
    assert values(db) == values(db, "copied") == {"1+1": 0.5, "1+2": 0.25, "2+1": 0.75, "2+2": 1.0, "9+9": 0.0}
    asked = "SELECT * EXCLUDE (file) FROM evals."
    assert db.sql(f"{asked}board ORDER BY subtask").rows() == db.sql(f"{asked}copied ORDER BY subtask").rows()
    assert db.correlate("board.acc").rows() == db.correlate("copied.acc").rows()
    assert db.evaluations(subtask="1+2").rows()[-1]["value"] == 0.25
    (row,) = db.sql(
        "SELECT sum(\"value\") AS n FROM evaluations WHERE source = 'board' AND subtask_id IS NOT NULL"
    ).rows()
    assert row == {"n": 2.5}


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "duckdb"])
def test_every_kind_of_file_can_be_attached(path: Path, tmp_path: Path, kind: str) -> None:
    db = Database(path)
    file, table = of_kind(tmp_path, kind)
    db.add_evaluations([file], "board", attach=True, table=table, columns=Columns(subtask_column="subtask"))
    assert values(db) == {"1+1": 0.5, "1+2": 0.25}
    assert db.sql("SELECT acc FROM evals.BOARD ORDER BY acc").rows() == [{"acc": 0.25}, {"acc": 0.5}]


def test_results_of_a_harness_can_be_attached(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "results_1.json"
    results = {"results": {"addition": {"alias": "addition", "acc,none": 0.375}}, "model_name": "tiny", "configs": {}}
    file.write_text(json.dumps(results))
    db = Database(path)
    assert "(lm-eval, attached)" in db.add_evaluations([file], "harness", attach=True).title
    (row,) = (row for row in db.evaluations(task="addition").rows() if row["source"] == "harness")
    assert (row["model"], row["task"], row["subtask"], row["value"]) == ("tiny", "addition", None, 0.375)


def test_nothing_is_copied(path: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "board.csv", "model,subtask,acc,remark", "tiny,1+1,0.5,a-word-to-look-for")
    Database(path).add_evaluations([file], "board", attach=True)
    assert b"a-word-to-look-for" not in path.read_bytes()
    with duckdb.connect(str(path), read_only=True) as shell:  # a client that is not ours
        assert shell.execute("SELECT count(*) FROM imported_evaluation").fetchone() == (0,)
        assert shell.execute("SELECT count(*) FROM evaluations WHERE source = 'board'").fetchone() == (0,)
        with pytest.raises(duckdb.CatalogException, match="attached_board does not exist"):
            shell.execute("FROM evals.board")


def test_a_changed_file_counts_as_it_is_and_is_told(path: Path, board: Path) -> None:
    db = Database(path)
    assert not any("has changed" in note for note in db.add_evaluations([board], "board", attach=True).notes)
    os.utime(board, ns=(1, 1))  # another time, the same bytes
    assert not any("has changed" in note for note in db.evaluations().notes)
    write(board, "subtask,model,acc,f1", "1+1,tiny,0.125,0.5")
    note = "counts as it is now; `circuitdb evals map board` shows what its names match."
    for found in (
        db.evaluations(), db.evaluation_map(), db.evaluation_map("board"), db.correlate("board.f1"),
        db.sql("FROM evals.board"), db.sql("FROM evaluations"),
    ):  # fmt: skip
        (told,) = (text for text in found.notes if "has changed" in text)
        assert told.startswith(f"{board} has changed since it was attached as board on 20")
        assert told.endswith(note)
    assert db.sql("FROM evals.board").rows() == [
        {"subtask": "1+1", "model": "tiny", "acc": 0.125, "f1": 0.5, "file": str(board)}
    ]
    assert {row["metric"]: row["value"] for row in db.evaluations().rows() if row["source"] == "board"} == {
        "acc": 0.125, "f1": 0.5,
    }  # fmt: skip
    for found in (db.circuits(), db.correlate(), db.sql("SELECT 'evals.board' AS board_ FROM circuits")):
        assert not any("has changed" in text for text in found.notes)
    db.add_evaluations([board], "board", attach=True, replace=True)
    assert not any("has changed" in text for text in db.evaluations().notes)


def test_a_file_that_is_gone_is_a_sentence_where_it_is_needed(path: Path, board: Path, tmp_path: Path) -> None:
    db = Database(path)
    db.add_evaluations([board], "board", attach=True, mapping=[Mapping("subtask", "9+9", "1+2")])
    db.add_evaluations([write(tmp_path / "b.csv", "model,subtask,f1", "tiny,1+1,0.5")], "other", attach=True)
    elsewhere = board.rename(tmp_path / "moved.csv")
    for ask in (
        lambda: db.evaluations(), lambda: db.evaluation_map(), lambda: db.evaluation_map("board"),
        lambda: db.correlate("board.acc"), lambda: db.sql("FROM evals.board"), lambda: db.sql("FROM evaluations"),
        lambda: db.map_evaluations("board", [Mapping("subtask", "9+9", None)]),
    ):  # fmt: skip
        with pytest.raises(
            StoreError, match=r"evaluations board are attached from .*board\.csv, which is not there any"
        ):
            ask()
    assert len(db.sql("FROM circuits")) == len(db.circuits()) == 4
    assert db.sql("SELECT f1 FROM evals.other").rows() == [{"f1": 0.5}]
    assert db.correlate("circuitdb.accuracy").rows()[0]["n"] == 4
    assert db.evaluation_map("other").rows()[0]["external"] == "tiny"
    db.add_evaluations([elsewhere], "board", attach=True, replace=True)
    assert ("9+9", "addition/1+2", "given") in {  # the map stays
        (row["external"], row["internal"], row["how"]) for row in db.evaluation_map("board").rows()
    }
    elsewhere.unlink()
    db.remove_evaluations("board")
    assert values(db) == {}
    assert values(db, "other") == {"1+1": 0.5}
    with pytest.raises(UsageError, match="board does not exist"):
        db.sql("FROM evals.board")


def test_a_file_that_can_not_be_read_any_more_says_why(path: Path, board: Path) -> None:
    db = Database(path)
    db.add_evaluations([board], "board", attach=True)
    write(board, "model,subtask,acc", "tiny,1+1,0.5,7")
    with pytest.raises(StoreError, match=r"The evaluations board can't be read .* row 2 has 4 cells, the header 3\."):
        db.evaluations()


def test_the_users_word_on_names_holds_for_attached_ones(path: Path, board: Path) -> None:
    db = Database(path)
    db.add_evaluations([board], "board", attach=True, mapping=[Mapping("model", "huge", "tiny")])
    db.map_evaluations("board", [Mapping("subtask", "9+9", "addition"), Mapping("subtask", "1+2", None)])
    names = {row["external"]: (row["internal"], row["how"]) for row in db.evaluation_map("board").rows()}
    assert (names["huge"], names["9+9"], names["1+2"]) == (("tiny", "given"), ("addition", "given"), (None, None))
    with pytest.raises(UsageError, match="The evaluations board have no subtask '7\\+7'"):
        db.map_evaluations("board", [Mapping("subtask", "7+7", "1+1")])
    with pytest.raises(UsageError, match=r"no metric board\.akk; did you mean board\.acc\?"):
        db.correlate("board.akk")
    with pytest.raises(UsageError, match=r"no metric bord\.acc; did you mean board\.acc\?"):
        db.correlate("bord.acc")


def test_copies_and_attached_ones_replace_each_other(path: Path, board: Path) -> None:
    db = Database(path)
    for attach in (False, True, True, False):
        db.add_evaluations([board], "board", attach=attach, replace=True)
        assert len(values(db)) == len(db.sql("FROM evals.board")) == 5
        assert len(db.sql("FROM attached_file")) == attach
    with pytest.raises(UsageError, match="There are evaluations board already"):
        db.add_evaluations([board], "board", attach=True)


def test_the_guard_is_as_it_was(path: Path, board: Path) -> None:
    """An attached file is open to questions by its name alone."""
    db = Database(path)
    db.add_evaluations([board], "board", attach=True)
    for statement in (
        f"FROM evals.board JOIN read_csv('{board}') AS b USING (subtask)", f"FROM evals.board, '{board}'",
        "INSERT INTO evals.board VALUES (1)", "DROP VIEW evals.board", f"COPY evals.board TO '{board}'",
    ):  # fmt: skip
        with pytest.raises(UsageError, match="refused"):
            db.sql(statement)
    with reading(path) as connection:
        for statement in (f"FROM read_csv('{board}')", "SET enable_external_access = true"):
            with pytest.raises(duckdb.Error, match=r"disabled|locked|Cannot change"):
                connection.execute(statement)


def test_mistakes_in_a_statement_are_pointed_at(path: Path, board: Path) -> None:
    db = Database(path)
    db.add_evaluations([board], "board", attach=True)
    with pytest.raises(UsageError, match=r'(?s)"akk" not found.*LINE 1: SELECT akk FROM evals.board'):
        db.sql("SELECT akk FROM evals.board")


def test_the_users_own_views_have_attached_rows_too(path: Path, board: Path) -> None:
    db = Database(path)
    db.add_evaluations([board], "board", attach=True)
    with duckdb.connect(str(path)) as shell:
        shell.execute("CREATE VIEW theirs AS SELECT * FROM evaluations WHERE source <> 'circuitdb'")
        shell.execute("CREATE VIEW names_of_theirs AS SELECT DISTINCT model FROM theirs")
        shell.execute('CREATE MACRO best(least) AS TABLE SELECT subtask FROM theirs WHERE "value" >= least')
    assert db.sql("SELECT count(*) AS n FROM theirs").rows() == [{"n": 5}]
    assert len(db.sql("FROM names_of_theirs")) == 3
    assert db.sql("FROM best(1)").rows() == [{"subtask": "2+2"}]
    board.unlink()
    with pytest.raises(StoreError, match="not there any more"):
        db.sql("FROM names_of_theirs")
    assert db.sql("SELECT subtask AS board FROM circuits LIMIT 1").rows() == [{"board": "1+1"}]
