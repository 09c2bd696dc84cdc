"""`circuitdb evals add`, `map` and `remove`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from terminals import Cli


@pytest.fixture
def mine(cli: Cli, shared_store: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line on a database of its own, in an empty folder but for board.csv and that database."""
    shutil.copy(shared_store, "mine.duckdb")
    monkeypatch.setenv("CIRCUITDB", "mine.duckdb")
    Path("board.csv").write_text("model,subtask,acc\nTINY,1+1,0.5\nTINY,nine,0.25\n")
    return cli


def test_evaluations_are_added_mapped_listed_and_removed(mine: Cli) -> None:
    added = mine("evals", "add", "board.csv", "--name", "board", "--json")
    assert (added.code, added.err) == (0, "")
    whole = json.loads(added.out)
    assert [(row["external"], row["internal"]) for row in whole["rows"] if row["external"]] == [
        ("TINY", "tiny"), ("1+1", "addition/1+1"), ("nine", None),
    ]  # fmt: skip
    assert whole["notes"][0].endswith("To say what one stands for: `circuitdb evals map board --subtask 'nine=OURS'`.")
    listed = json.loads(mine("evals", "--subtask", "1+1", "--json").out)
    assert [(row["source"], row["metric"], row["value"]) for row in listed["rows"]] == [
        ("circuitdb", "accuracy", 0.5), ("board", "acc", 0.5),
    ]  # fmt: skip
    assert listed["notes"] == [
        "Some names in board match nothing of this database; `circuitdb evals map NAME` lists them, and takes what "
        "they stand for."
    ]
    mapped = json.loads(mine("evals", "map", "board", "--subtask", "nine=3+3", "--json").out)
    assert ("nine", "addition/3+3", "given") in {(r["external"], r["internal"], r["how"]) for r in mapped["rows"]}
    assert mine("evals", "remove", "board").code == 0
    assert len(json.loads(mine("evals", "--json").out)["rows"]) == 9


def test_the_map_goes_out_as_csv_and_comes_back_edited(mine: Cli) -> None:
    mine("evals", "add", "board.csv", "--name", "board")
    text = mine("evals", "map", "board", "--csv").out
    Path("map.csv").write_text(text.replace("board,subtask,nine,,", "board,subtask,nine,3+3,"))
    assert mine("evals", "map", "board", "--map", "map.csv").code == 0
    again = mine("evals", "add", "board.csv", "--name", "board", "--replace", "--map", "map.csv", "--json")
    assert {row["external"]: row["internal"] for row in json.loads(again.out)["rows"] if row["external"]} == {
        "TINY": "tiny", "1+1": "addition/1+1", "nine": "addition/3+3",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evals", "add", "none.csv", "--name", "a"], "There is no file none.csv."),
        (["evals", "map", "none"],
         "There are no evaluations none; the database has none; `circuitdb evals add` adds some."),
        (["evals", "map", "--model", "a=b"],
         "Which evaluations is it about? Name them: `circuitdb evals map NAME ...`."),
        (["evals", "map", "a", "--model", "b"], "--model 'b' is no pair THEIRS=OURS."),
        (["evals", "map", "a", "--map", "none.csv"], "There is no file none.csv."),
        (["evals", "map", "a", "--map", "board.csv"],
         "board.csv has no column kind; a map has kind, external and internal."),
        (["evals", "--json", "map"], "Options follow the command: `circuitdb evals map ... --json`."),
        (["evals", "add", "board.csv", "--name", "circuitdb"],
         "The name 'circuitdb' is that of our own accuracies; choose one such as leaderboard."),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_wrong_is_told_in_a_sentence(mine: Cli, arguments: list[str], message: str) -> None:
    done = mine(*arguments)
    assert (done.code, done.out, done.err) == (2, "", f"Error: {message}\n")


def test_attached_files_are_read_where_they_lie(mine: Cli) -> None:
    added = mine("evals", "add", "board.csv", "--name", "board", "--attach", "--json")
    assert (added.code, added.err) == (0, "")
    assert json.loads(added.out)["title"].startswith(
        "board: 2 values from 1 file (csv, attached); 1 of 1 model matched"
    )
    Path("board.csv").write_text("model,subtask,acc\nTINY,1+1,0.75\n")
    board = Path("board.csv").absolute()
    changed = mine("sql", "SELECT acc FROM evals.board", "--csv")
    assert (changed.code, changed.out.split()) == (0, ["acc", "0.75"])
    assert changed.err.startswith(f"Note: {board} has changed since it was attached as board on ")
    Path("board.csv").rename("elsewhere.csv")
    for command in (
        ["evals"],
        ["sql", "FROM evals.board"],
        ["correlate", "--with", "board.acc"],
        ["evals", "map", "board"],
    ):
        gone = mine(*command)
        assert (gone.code, gone.out) == (1, "")
        assert gone.err == (
            f"Error: The evaluations board are attached from {board}, which is not there any more; put it back, "
            "attach it from where it is now (`circuitdb evals add FILE --name board --attach --replace`), or take them "
            "away (`circuitdb evals remove board`).\n"
        )
    assert mine("evals", "add", "elsewhere.csv", "--name", "board", "--attach", "--replace").code == 0
    assert mine("evals", "remove", "board").code == 0
