"""`circuitdb faithfulness`: runs circuits in a tiny real model, and shows what was run."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tiny_models
from circuitdb.cli.main import main
from circuitdb.connection import reading

if TYPE_CHECKING:
    import terminals


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Llama that reads sums."""
    return tiny_models.llama_folder(tmp_path_factory.mktemp("model") / "tiny", tiny_models.digit_tokenizer())


@pytest.fixture(scope="module")
def scored(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of its circuits 1+1, 1+2, 2+1 and 2+2; not to be written to."""
    path = tmp_path_factory.mktemp("scored") / "c.duckdb"
    code = main(
        ["ingest", "--model", str(folder), "--db", str(path), "--digits", "1,2", "--examples", "4", "--shots", "0",
         "--steps", "2", "--folds", "1"]
    )  # fmt: skip
    assert code == 0
    return path


@pytest.fixture
def db(scored: Path, tmp_path: Path) -> str:
    """A copy of it to write to, in the folder that commands run in."""
    (tmp_path / "c.duckdb").write_bytes(scored.read_bytes())
    return "c.duckdb"


def test_runs_shows_and_keeps(cli: terminals.Cli, folder: Path, db: str) -> None:
    command = ["faithfulness", "--db", db, "--load", str(folder), "--circuit", "1", "--circuit", "4"]
    first = cli(*command, "--json")
    assert (first.code, first.err.splitlines()) == (0, [f"loading {folder}", "1 of 2: 1+1", "2 of 2: 2+2"])
    answer = json.loads(first.out)
    assert answer["title"] == "Faithfulness of 2 circuits"
    shares = ["0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1"]
    assert answer["columns"] == ["label", "selection", "cpr", "cmd", *shares]
    with reading(db) as connection:
        stored = connection.execute(
            "SELECT share, faithfulness FROM faithfulness WHERE circuit_id = 4 ORDER BY share"
        ).fetchall()
    row = answer["rows"][1]
    assert (row["label"], row["selection"]) == ("2+2", "top-absolute")
    assert [row[name] for name in shares] == pytest.approx([f for _, f in stored])
    assert row["1"] == pytest.approx(1, abs=1e-5)
    wanted = sum((b - a) * (f + g) / 2 for (a, f), (b, g) in itertools.pairwise(stored))
    assert row["cpr"] == pytest.approx(wanted)
    again = cli(*command, "--json")
    assert again.err.splitlines() == [f"loading {folder}"]
    assert json.loads(again.out) == answer
    assert json.loads(cli("faithfulness", "--db", db, "--circuit", "1", "--circuit", "4", "--json").out) == answer


def test_shares_selection_and_one_row_a_run(cli: terminals.Cli, folder: Path, db: str) -> None:
    run = cli("faithfulness", "--db", db, "--load", str(folder), "--circuit", "2", "--shares", "1,0.25,1",
              "--selection", "top-signed", "--long", "--json")  # fmt: skip
    rows = json.loads(run.out)["rows"]
    assert [(row["label"], row["share"], row["n_edges"], row["selection"]) for row in rows] == [
        ("1+2", 0.25, 27, "top-signed"), ("1+2", 1.0, 110, "top-signed"),
    ]  # fmt: skip
    assert rows[1]["faithfulness"] == pytest.approx(1, abs=1e-5)
    assert rows[1]["accuracy"] is None
    csv = cli("faithfulness", "--db", db, "--circuit", "2", "--long", "--csv").out.splitlines()
    assert csv[0].split(",")[:4] == ["label", "data", "circuit_id", "data_circuit_id"]
    assert len(csv) == 3


def test_the_matrix_across_conditions(cli: terminals.Cli, folder: Path, db: str) -> None:
    run = cli("faithfulness", "--db", db, "--load", str(folder), "--circuit", "1", "--circuit", "2", "--shares", "1",
              "--across", "--at", "1", "--json")  # fmt: skip
    assert run.err.splitlines()[1:] == [
        "1 of 4: 1+1 on 1+1", "2 of 4: 1+2 on 1+1", "3 of 4: 1+1 on 1+2", "4 of 4: 1+2 on 1+2",
    ]  # fmt: skip
    rows = json.loads(run.out)["rows"]
    assert [[row["1+1"], row["1+2"]] for row in rows] == [pytest.approx([1, 1], abs=1e-5)] * 2


def test_answers_are_counted(cli: terminals.Cli, folder: Path, db: str) -> None:
    run = cli("faithfulness", "--db", db, "--load", str(folder), "--circuit", "1", "--shares", "1", "--generate",
              "--long", "--json")  # fmt: skip
    with reading(db) as connection:
        (share,) = connection.execute(
            "SELECT avg(correct::INTEGER) FROM example WHERE used AND circuit_id = 1"
        ).fetchall()
    assert json.loads(run.out)["rows"][0]["accuracy"] == share[0]


def test_a_person_is_told_what_was_not_run(cli: terminals.Cli, folder: Path, db: str) -> None:
    none = cli("faithfulness", "--db", db)
    assert none.code == 0
    assert "Not run yet: 4 of 4 circuits; `circuitdb faithfulness --load MODEL` does it." in none.err
    cli("faithfulness", "--db", db, "--load", str(folder), "--circuit", "1", "--shares", "0.5,1")
    one = cli("faithfulness", "--db", db)
    assert "Not run yet: 3 of 4 circuits" in one.err
    assert "1 of 1 curves lack some of them" in one.err
    (row,) = one.table
    assert row["label"] == "1+1"
    assert float(row["1"]) == pytest.approx(1)


REFUSED = [
    (["--selection", "best", "--load", "TINY"], 2, "There is no selection 'best'; choose one of top-absolute"),
    (["--shares", "0.1"], 2, "say what to run; name the model to run it in with --load."),
    (["--across"], 2, "name the model to run it in with --load."),
    (["--generate"], 2, "name the model to run it in with --load."),
    (["--load", "TINY", "--shares", "x"], 2, "--shares 'x' is no list of shares; write 0.01,0.1,1."),
    (["--load", "TINY", "--shares", "1.5"], 2, "shares of all edges, from 0 to 1, not (1.5,)."),
    (["--load", "TINY", "--batch-size", "0"], 2, "at least one pair, not 0."),
    (["--load", "TINY", "--dtype", "bfloat16"], 2, "were scored in another model, revision or type than"),
    (["--load", "missing.gguf"], 1, "There is no file missing.gguf"),
    (["--at", "0.3"], 2, "No circuit was run yet"),
    (["--circuit", "77"], 2, "There is no circuit 77"),
]


@pytest.mark.parametrize(("options", "code", "message"), REFUSED, ids=[" ".join(case[0]) for case in REFUSED])
def test_refusals_are_one_sentence_and_nothing_is_run(
    cli: terminals.Cli, folder: Path, db: str, options: list[str], code: int, message: str
) -> None:
    run = cli("faithfulness", "--db", db, *(str(folder) if word == "TINY" else word for word in options))
    assert run.code == code
    assert message in " ".join(run.err.split())
    assert "Traceback" not in run.err
    assert run.out == ""
    with reading(db) as connection:
        assert connection.execute("SELECT count(*) FROM faithfulness").fetchall() == [(0,)]
