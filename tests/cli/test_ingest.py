"""`circuitdb ingest` on a tiny real model: what it prints, stores and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import terminals
import tiny_models
from circuitdb.connection import reading


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Llama that reads sums."""
    return tiny_models.llama_folder(tmp_path_factory.mktemp("model") / "tiny", tiny_models.digit_tokenizer())


def small(folder: Path, *more: str) -> list[str]:
    """An ingest of one or two subtasks that takes a second."""
    return ["ingest", "--model", str(folder), "--examples", "10", "--shots", "1", "--steps", "2", *more]


def test_stores_then_keeps(folder: Path, tmp_path: Path) -> None:
    command = small(folder, "--digits", "1,2", "--model-name", "mine", "--db", "c.duckdb")
    first = terminals.run(command, tmp_path)
    assert first.returncode == 0
    assert "addition circuits of mine in c.duckdb" in first.stdout
    (table,) = terminals.tables(first.stdout)
    assert [(row["subtask"], row["status"], row["circuit_id"], row["n_examples"]) for row in table] == [
        ("1+1", "stored", "1", "10"),
        ("1+2", "stored", "2", "10"),
        ("2+1", "stored", "3", "10"),
        ("2+2", "stored", "4", "10"),
    ]
    assert first.stderr.splitlines()[:2] == [f"loading {folder}", "4 circuits to score."]
    again = terminals.run([*command, "--json"], tmp_path)
    assert again.stderr.splitlines()[-1] == "Nothing to score: 4 circuits stored already."
    answer = json.loads(again.stdout)
    assert [row["status"] for row in answer["rows"]] == ["kept"] * 4
    with reading(tmp_path / "c.duckdb") as connection:
        assert connection.execute("SELECT count(*), count(DISTINCT model) FROM circuits").fetchall() == [(4, 1)]


def test_a_failed_subtask_is_named_and_the_exit_code_is_1(folder: Path, tmp_path: Path) -> None:
    run = terminals.run(
        ["ingest", "--model", str(folder), "--digits", "1,3", "--shots", "9", "--examples", "8", "--steps", "2"],
        tmp_path,
    )
    assert run.returncode == 1
    (table,) = terminals.tables(run.stdout)
    assert [row["status"] for row in table] == ["stored", "failed", "failed", "failed"]
    assert "use fewer shots" in run.stdout


REFUSED = [
    (["--method", "magic"], 2, "There is no method 'magic'; choose one of eap-ig, eap, clean-corrupted"),
    (["--method", "eap"], 2, "zero by construction, so eap would score every edge 0; use --method eap-ig"),
    (["--metric", "loss"], 2, "There is no metric 'loss'"),
    (["--grid", "up"], 2, "There is no grid 'up'"),
    (["--task", "sums"], 2, "There is no task 'sums'; choose one of addition."),
    (["--digits", "3-1"], 2, "is no list of digit counts; write 1-3 or 1,2,4."),
    (["--examples", "1"], 2, "The number of examples must be at least 2, not 1."),
    (["--folds", "9"], 2, "10 examples can't be split into 9 folds"),
    (["--dtype", "int8"], 2, "'int8' is no type to compute in"),
    (["--steps", "2147483648"], 2, "from one to 10,000, not 2147483648"),
    (["--seed", "99999999999999999999"], 2, "The seed must be a 64-bit whole number"),
    (["--revision", "main"], 2, "A revision is a version on the hub"),
    (["--device", "abacus"], 1, "'abacus' is no device that torch can use here"),
    (["--db", "no/c.duckdb"], 1, "does not exist; make it, or name another file with --db."),
    (["--model", "missing.gguf"], 1, "There is no file missing.gguf; give the path of a .gguf file."),
]


@pytest.mark.parametrize(("options", "code", "message"), REFUSED, ids=[" ".join(case[0]) for case in REFUSED])
def test_refusals_are_one_sentence(
    folder: Path, tmp_path: Path, cli: terminals.Cli, options: list[str], code: int, message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    run = cli(*small(folder, "--digits", "1", *options))
    assert run.code == code
    assert message in " ".join(run.err.split())
    assert "Traceback" not in run.err
    assert run.out == ""
