"""Added evaluations in the database: names matched on both sides, mapped by hand, and never stale."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from circuitdb.connection import reading
from circuitdb.errors import UsageError
from circuitdb.evals.writer import Mapping
from circuitdb.queries import Database
from circuitdb.store import Store
from stores import SHAPE, addition_store, circuit, model


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Four circuits of the model tiny, 1+1 to 2+2."""
    return addition_store(tmp_path / "circuits.duckdb", digits=2)


def board(folder: Path, *lines: str) -> Path:
    """A CSV of model, subtask, acc."""
    file = folder / "board.csv"
    file.write_text("\n".join(["model,subtask,acc", *lines]) + "\n")
    return file


def matches(db: Database, name: str = "board") -> dict[object, tuple[object, object]]:
    """(internal, how) of each name of the files."""
    return {
        row["external"]: (row["internal"], row["how"])
        for row in db.evaluation_map(name).rows()
        if row["external"] is not None
    }


def test_the_report_has_both_sides(path: Path, tmp_path: Path) -> None:
    db = Database(path)
    found = db.add_evaluations([board(tmp_path, "tiny,1+1,0.5", "tiny,9+9,0.25", "huge,1+2,1")], "board")
    keys = ("kind", "external", "internal", "how", "n_rows")
    assert [tuple(row[key] for key in keys) for row in found.rows()] == [
        ("model", "tiny", "tiny", "same", 2),
        ("model", "huge", None, None, 1),
        ("subtask", "1+1", "addition/1+1", "same", 1),
        ("subtask", "1+2", "addition/1+2", "same", 1),
        ("subtask", None, "addition/2+1", None, 0),
        ("subtask", None, "addition/2+2", None, 0),
        ("subtask", "9+9", None, None, 1),
    ]
    assert {row["reason"] for row in found.rows() if row["external"] in ("huge", "9+9")} == {
        "the database has no such name"
    }
    assert found.title == (
        "board: 3 values from 1 file (csv); 1 of 2 models matched, 2 of 3 subtasks matched; 2 names of the database "
        "without a row"
    )
    assert [note.split(". ")[0] for note in found.notes] == [
        "1 model of board matched nothing: huge", "1 subtask of board matched nothing: 9+9",
    ]  # fmt: skip
    rows = {(row["model"], row["subtask"]): row for row in db.evaluations().rows() if row["source"] == "board"}
    assert {key: (row["task"], row["value"]) for key, row in rows.items()} == {
        ("tiny", "1+1"): ("addition", 0.5), ("tiny", "9+9"): (None, 0.25), ("huge", "1+2"): ("addition", 1.0),
    }  # fmt: skip
    assert [row["value"] for row in db.evaluations(circuits=1).rows()] == [0.5, 0.5]
    assert db.sql("SELECT acc FROM evals.board JOIN circuits USING (subtask) ORDER BY subtask").rows() == [
        {"acc": 0.5}, {"acc": 1.0},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(["TINY,1 + 1,1"], {"TINY": ("tiny", "alike"), "1 + 1": ("addition/1+1", "alike")}, id="case"),
        pytest.param(["org/Tiny,addition/1+1,1"],
                     {"org/Tiny": ("tiny", "alike"), "addition/1+1": ("addition/1+1", "same")}, id="longer-names"),
        pytest.param(["tiny,addition:1+1,1", "tiny,addition_1+2,1"],
                     {"addition:1+1": ("addition/1+1", "same"), "addition_1+2": ("addition/1+2", "same")}, id="marks"),
        pytest.param(["tiny,1+1,1", "tiny,1 +1,2"], {"1+1": ("addition/1+1", "same"), "1 +1": (None, None)},
                     id="the-same-goes-before-the-alike"),
        pytest.param(["tiny,1+ 1,1", "tiny,1 +1,2"], {"1+ 1": (None, None), "1 +1": (None, None)}, id="two-alike"),
        pytest.param(["tiny,addition,1"], {"addition": ("addition", "same")}, id="whole-task"),
    ],
)  # fmt: skip
def test_names_match(path: Path, tmp_path: Path, lines: list[str], expected: dict[str, tuple[str, str]]) -> None:
    db = Database(path)
    db.add_evaluations([board(tmp_path, *lines)], "board")
    assert matches(db).items() >= expected.items()


def test_a_name_of_several_is_taken_for_none(path: Path, tmp_path: Path) -> None:
    store, scores = Store(path), np.zeros(SHAPE.n_edges)
    store.write(circuit("1+1", {"digits_a": 1}, task="subtraction"), scores)
    store.write(circuit("x", of=replace(model(), weights_digest="other")), scores)
    db = Database(path)
    db.add_evaluations([board(tmp_path, "tiny,1+1,1", "tiny@digest o,subtraction/1+1,1")], "board")
    reasons = {row["external"]: row["reason"] for row in db.evaluation_map("board").rows()}
    assert reasons["1+1"] == "may be any of addition/1+1, subtraction/1+1"
    assert reasons["tiny"] == "may be any of tiny@digest o, tiny@other"
    assert matches(db)["subtraction/1+1"] == ("subtraction/1+1", "same")
    assert matches(db)["tiny@digest o"] == ("tiny@digest o", "same")


@pytest.mark.parametrize(
    ("revisions", "digests"),
    [(("a", "b"), ("0", "1")), (("a", "a"), ("0", "1")), ((None, "b"), ("0", "1")), (("a", None), ("0", None))],
)
def test_a_model_goes_by_the_name_of_every_other_answer(
    tmp_path: Path, revisions: tuple[str | None, ...], digests: tuple[str | None, ...]
) -> None:
    """By revision where each has one of its own, else by digest, else by number."""
    path = tmp_path / "circuits.duckdb"
    for revision, digest in zip(revisions, digests, strict=True):
        of = replace(model(), revision=revision, weights_digest=digest)
        Store(path).write(circuit(of=of, salt=str(of)), np.zeros(SHAPE.n_edges))
    db = Database(path)
    shown = [str(row["model"]) for row in db.circuits().rows()]
    with reading(path) as connection:
        names = connection.execute("SELECT DISTINCT shown FROM known_names WHERE kind = 'model'").fetchall()
    assert len(set(shown)) == 2
    assert sorted(name for (name,) in names) == sorted(shown)
    db.add_evaluations([board(tmp_path, f"{shown[1]},1+1,1")], "board")
    assert matches(db)[shown[1]] == (shown[1], "same")


def test_a_name_counts_as_soon_as_the_database_has_it(path: Path, tmp_path: Path) -> None:
    db = Database(path)
    db.add_evaluations([board(tmp_path, "huge,1+1,1")], "board")
    assert matches(db)["huge"] == (None, None)
    Store(path).write(circuit("1+1", of=model("huge"), salt="huge"), np.zeros(SHAPE.n_edges))
    assert matches(db)["huge"] == ("huge", "same")


def test_the_map_is_the_users_to_edit(path: Path, tmp_path: Path) -> None:
    db = Database(path)
    file = board(tmp_path, "wee,one,0.5", "tiny,1+1,1")
    db.add_evaluations([file], "board", mapping=[Mapping("model", "wee", "tiny")])
    assert matches(db)["wee"] == ("tiny", "given")
    found = db.map_evaluations("board", [Mapping("subtask", "one", "1+2"), Mapping("subtask", "1+1", None)])
    assert {row["external"]: row["reason"] for row in found.rows()}["1+1"] == "mapped to nothing"
    assert matches(db)["one"] == ("addition/1+2", "given")
    db.add_evaluations([file], "board", replace=True)
    assert matches(db)["one"] == ("addition/1+2", "given")  # the map stays
    for mapping, message in (
        (Mapping("subtask", "two", "1+1"), "board have no subtask 'two'"),
        (Mapping("subtask", "one", "7+7"), "The database has no subtask '7\\+7'"),
        (Mapping("task", "one", "1+1"), "of kind model or subtask, not 'task'"),
    ):
        with pytest.raises(UsageError, match=message):
            db.map_evaluations("board", [mapping])
    assert matches(db)["one"] == ("addition/1+2", "given")


def test_names_are_taken_once_and_free_after_removal(path: Path, tmp_path: Path) -> None:
    db = Database(path)
    file = board(tmp_path, "tiny,1+1,0.5")
    before = db.evaluations().rows()
    db.add_evaluations([file], "board")
    with pytest.raises(UsageError, match="There are evaluations board already"):
        db.add_evaluations([file], "board")
    for name in ("circuitdb", "a b", "1a", ""):
        with pytest.raises(UsageError, match="choose one such as leaderboard"):
            db.add_evaluations([file], name)
    db.remove_evaluations("board")
    assert db.evaluations().rows() == before
    with pytest.raises(UsageError, match="board does not exist"):
        db.sql("FROM evals.board")
    for ask in (db.remove_evaluations, db.evaluation_map, lambda name: db.map_evaluations(name, [])):
        with pytest.raises(UsageError, match="There are no evaluations board; the database has none"):
            ask("board")


def test_a_refused_file_leaves_the_database_as_it_was(path: Path, tmp_path: Path) -> None:
    db = Database(path)
    with pytest.raises(UsageError, match="have no model 'x'"):
        db.add_evaluations([board(tmp_path, "tiny,1+1,0.5")], "board", mapping=[Mapping("model", "x", "tiny")])
    with reading(path) as connection:
        cursor = connection.cursor()
        tables = ("evaluation_source", "imported_evaluation", "evaluation_name")
        assert [cursor.execute(f"SELECT count(*) FROM {table}").fetchone() for table in tables] == [(0,)] * 3
        cursor.close()


@pytest.mark.parametrize("attach", [False, True])
def test_a_name_that_is_another_but_for_case_is_refused(path: Path, tmp_path: Path, attach: bool) -> None:
    """To SQL evals.board and evals.BOARD are one table."""
    db = Database(path)
    file = board(tmp_path, "tiny,1+1,0.5")
    results = tmp_path / "results.json"
    results.write_text('{"model_name": "tiny", "results": {"1+2": {"acc,none": 0.25}}}')
    db.add_evaluations([file], "board", attach=attach)
    for files in ([file], [results]):
        for again in (False, True):
            with pytest.raises(UsageError, match=r"The name 'BOARD' is board but for case.*choose another"):
                db.add_evaluations(files, "BOARD", attach=attach, replace=again)
    for ask in (db.remove_evaluations, lambda name: db.map_evaluations(name, [Mapping("model", "tiny", "tiny")])):
        with pytest.raises(UsageError, match="There are no evaluations BOARD; the database has board"):
            ask("BOARD")
    assert db.sql("SELECT acc FROM evals.board").rows() == [{"acc": 0.5}]


def test_of_names_that_an_older_version_took_one_keeps_its_table(path: Path, tmp_path: Path) -> None:
    db = Database(path)
    db.add_evaluations([board(tmp_path, "tiny,1+1,0.5")], "board")
    with duckdb.connect(str(path)) as shell:  # those of a harness have no table, so that both names could be added
        shell.execute(
            "INSERT INTO evaluation_source (source, format, files, n_rows) VALUES ('BOARD', 'lm-eval', [], 0)"
        )
    db.remove_evaluations("BOARD")
    assert db.sql("SELECT acc FROM evals.board").rows() == [{"acc": 0.5}]
    db.remove_evaluations("board")
    with pytest.raises(UsageError, match="board does not exist"):
        db.sql("FROM evals.board")


def test_the_time_to_match_names_does_not_grow_with_theirs_times_ours(path: Path) -> None:
    """A join by anything but equality compares each name with each: of 300,000 names it took half a minute."""
    with duckdb.connect(str(path)) as shell:
        for view in ("evaluation_names", "evaluations"):
            plan = shell.execute(f"EXPLAIN (FORMAT json) SELECT * FROM {view}").fetchall()[0][1]
            conditions = set(_conditions(json.loads(plan)))
            assert any("folded = folded" in condition for condition in conditions)
            # There are two kinds: a join by these alone is one of each name with each.
            assert not {condition for condition in conditions if condition in ("", "kind = kind")}
            assert not any("CASE" in condition or " OR " in condition for condition in conditions)


def _conditions(plan: list[dict[str, Any]]) -> Iterator[str]:
    """The conditions of each join of a plan, as one text."""
    for node in plan:
        if "JOIN" in node["name"] or "PRODUCT" in node["name"]:
            given = node["extra_info"].get("Conditions", "")
            yield given if isinstance(given, str) else " AND ".join(sorted(given))
        yield from _conditions(node["children"])


def test_numbers_of_questions_beyond_31_bits_are_kept(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "board.csv"
    file.write_text("model,subtask,acc,n\ntiny,1+1,0.5,99999999999\n")
    db = Database(path)
    db.add_evaluations([file], "board")
    db.add_evaluations([file], "there", attach=True)
    found = {row["source"]: row["n"] for row in db.evaluations(subtask="1+1").rows()}
    assert (found["board"], found["there"]) == (99_999_999_999, 99_999_999_999)
    name = Mapping("model", "ti\udcffny", "tiny")
    with pytest.raises(UsageError, match=r"The name .* is not in UTF-8"):
        db.map_evaluations("board", [name])
