"""`circuitdb ingest --plan` and `--work`, and `circuitdb merge`, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tiny_models
from circuitdb.connection import reading

if TYPE_CHECKING:
    import terminals


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Llama that reads sums."""
    return tiny_models.llama_folder(tmp_path_factory.mktemp("model") / "tiny", tiny_models.digit_tokenizer())


@pytest.fixture
def listed(folder: Path, cli: terminals.Cli) -> str:
    """A work list of four circuits, in the folder where the command line runs."""
    run = cli("ingest", "--model", str(folder), "--digits", "1,2", "--examples", "8", "--shots", "1", "--steps", "2",
              "--db", "c.duckdb", "--plan", "plan.json", "--json")  # fmt: skip
    answer = json.loads(run.out)
    assert run.code == 0
    assert answer["title"] == "4 of 4 addition circuits of tiny listed in plan.json"
    assert [(row["subtask"], row["status"]) for row in answer["rows"]] == [
        ("1+1", "listed"), ("1+2", "listed"), ("2+1", "listed"), ("2+2", "listed"),
    ]  # fmt: skip
    return "plan.json"


def test_listed_scored_and_merged(listed: str, folder: Path, tmp_path: Path, cli: terminals.Cli) -> None:
    assert [path.name for path in tmp_path.iterdir()] == [listed]
    run = cli("ingest", "--work", listed, "--shard", "2/2", "--out", "two")
    assert run.code == 0
    assert "addition circuits of tiny in two, shard 2/2" in run.out
    assert [(row["subtask"], row["status"], row["circuit_id"]) for row in run.table] == [
        ("1+2", "stored", "-"), ("2+2", "stored", "-"),
    ]  # fmt: skip
    (first, *_) = (tmp_path / "two").glob("*.parquet")
    whole = first.read_bytes()
    first.write_bytes(whole[:-100])
    half = cli("merge", "two", "--db", "c.duckdb")
    assert half.code == 1
    assert "Circuits merged into c.duckdb: 1 stored, 0 kept, 1 refused" in half.out
    assert "is cut short, damaged or no Parquet file; score its circuit again." in " ".join(half.out.split())
    first.write_bytes(whole)
    assert cli("ingest", "--work", listed, "--shard", "1/2", "--out", "one").code == 0
    done = json.loads(cli("merge", "one", "two", "--db", "c.duckdb", "--json").out)
    assert done["title"] == "Circuits merged into c.duckdb: 3 stored, 1 kept, 0 refused"
    with reading(tmp_path / "c.duckdb") as connection:
        assert connection.execute("SELECT count(*), count(DISTINCT subtask) FROM circuits").fetchall() == [(4, 4)]
    again = cli("ingest", "--model", str(folder), "--digits", "1,2", "--examples", "8", "--shots", "1", "--steps", "2",
                "--db", "c.duckdb", "--plan", "next.json")  # fmt: skip
    assert "0 of 4 addition circuits of tiny listed in next.json" in again.out


REFUSED = [
    (["--work", "plan.json"], "Where are the circuits to be put? Name a folder with --out."),
    (["--work", "plan.json", "--out", "s", "--steps", "3"],
     "The work list says how circuits are scored; leave --steps out."),
    (["--work", "plan.json", "--out", "s", "--shard", "3/2"], "--shard 3/2 is no shard; the second of four is 2/4."),
    (["--work", "none.json", "--out", "s"], "There is no work list none.json; make one with"),
    (["--out", "s"], "--out is for a worker; name its work list with --work."),
    (["--model", "gpt2", "--shard", "1/2"], "--shard is for a worker; name its work list with --work."),
    ([], "Which model? Name it with --model: a hub name, a local folder or a .gguf file."),
]  # fmt: skip


@pytest.mark.parametrize(("options", "told"), REFUSED, ids=[" ".join(case[0]) or "none" for case in REFUSED])
def test_refusals_are_one_sentence(options: list[str], told: str, cli: terminals.Cli, tmp_path: Path) -> None:
    run = cli("ingest", *options)
    assert (run.code, run.out) == (2, "")
    assert told in " ".join(run.err.split())
    assert list(tmp_path.iterdir()) == []


def test_other_weights_have_exit_code_1(listed: str, tmp_path: Path, cli: terminals.Cli) -> None:
    other = tiny_models.llama_folder(tmp_path / "other", tiny_models.digit_tokenizer(), seed=1)
    run = cli("ingest", "--work", listed, "--out", "s", "--model", str(other))
    assert (run.code, run.out) == (1, "")
    assert "has other weights than the work list was made with" in run.err
    assert not (tmp_path / "s").exists()


def test_nothing_to_merge(cli: terminals.Cli, tmp_path: Path) -> None:
    run = cli("merge", "none", "--db", "c.duckdb")
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith("Error: There is no none; name what `circuitdb ingest --work ... --out` wrote.")
    assert list(tmp_path.iterdir()) == []
