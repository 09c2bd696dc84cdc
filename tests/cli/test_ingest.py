"""`circuitdb ingest` on a tiny real model: what it prints, stores and refuses."""

from __future__ import annotations

import json
import re
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
    steps = [] if "eap" in more or "exact" in more else ["--steps", "2"]
    return ["ingest", "--model", str(folder), "--examples", "10", "--shots", "1", *steps, *more]


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
    (["--task", "sums"], 2, "There is no task 'sums'; choose one of addition, arithmetic, boolean,"),
    (["--digits", "3-1"], 2, "is no list of digit counts; write 1-3 or 1,2,4."),
    (["--partition", "digit=2"], 2, "The partition of addition has no 'digit'; did you mean digits?"),
    (["--partition", "digits"], 2, "--partition digits is no NAME=VALUE; `circuitdb tasks addition` lists the names."),
    (["--task", "boolean"], 2, "The partition of boolean has no 'digits'; it has operators, length,"),
    (["--task", "arithmetic", "--partition", "operators=plus"], 2, "there is no 'plus'; write one or more of +,-,*,/."),
    (["--examples", "1"], 2, "The number of examples must be at least 2, not 1."),
    (["--folds", "9"], 2, "10 examples can't be split into 9 folds"),
    (["--dtype", "int8"], 2, "'int8' is no type to compute in"),
    (["--ablation", "zero"], 2, "eap-ig follows a path to the corrupted run, so its ablation is patching, not zero"),
    (["--ablation", "noise"], 2, "There is no ablation 'noise'; choose one of patching, zero, mean"),
    (["--positions", "first"], 2, "There are no positions 'first'; choose one of last, answer, all."),
    (["--align", "right"], 2, "There is no alignment 'right'; choose one of equal, left-pad."),
    (["--align", "left-pad", "--method", "exact", "--ablation", "mean-positional"], 2, "use --ablation mean, or"),
    (["--against", "9"], 2, "The metric kl compares the answer with nothing; leave --against out."),
    (["--metric", "nll", "--against", "9"], 2, "The metric nll compares the answer with nothing"),
    (["--metric", "logit-difference", "--against", " "], 2, "must be a list of texts, none of them empty."),
    (["--grid", "gauss-legendre", "--steps", "101"], 2, "gauss-legendre takes at most 100 steps, not 101."),
    (["--batch-size", "0"], 2, "at least one pair, not 0."),
    (["--dtype", "tf32", "--device", "cpu"], 2, "tf32 is a way in which CUDA multiplies; on cpu use float32."),
    (["--dry-run", "--folds", "9"], 2, "10 examples can't be split into 9 folds"),
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


def test_new_options_are_stored_with_the_circuit(folder: Path, tmp_path: Path, cli: terminals.Cli) -> None:
    run = cli(*small(
        folder, "--digits", "2", "--db", "c.duckdb", "--method", "eap", "--metric", "logit-difference", "--ablation",
        "mean", "--positions", "answer", "--against", "9", "--against", "41", "--folds", "1", "--by-example", "--json",
    ))  # fmt: skip
    assert (run.code, json.loads(run.out)["rows"][0]["status"]) == (0, "stored")
    with reading(tmp_path / "c.duckdb") as connection:
        assert connection.execute(
            "SELECT method, metric, ablation, positions, contrast, steps, grid, n_folds FROM circuits"
        ).fetchall() == [("eap", "logit-difference", "mean", "answer", '["9","41"]', None, None, 1)]
        assert connection.execute(
            "SELECT count(*), count(DISTINCT position) FROM example_score"
        ).fetchall() == [(10 * 110, 10)]  # fmt: skip


def test_exact_says_how_long_it_will_take_before_it_starts(folder: Path, cli: terminals.Cli) -> None:
    run = cli(*small(folder, "--digits", "1", "--db", "c.duckdb", "--method", "exact"))
    said = run.err.splitlines()
    assert said[:2] == [f"loading {folder}", "1 circuit to score."]
    assert re.fullmatch(r"Exact patching of them will take about \d+ s\.", said[2])
    assert said[3].startswith("1 of 1: 1+1, ")


def test_a_dry_run_tells_what_would_be_done_and_does_nothing(folder: Path, tmp_path: Path, cli: terminals.Cli) -> None:
    command = small(folder, "--digits", "1,2", "--db", "c.duckdb", "--model-name", "mine")
    run = cli(*command, "--dry-run", "--json")
    assert run.code == 0
    assert list(tmp_path.iterdir()) == []
    answer = json.loads(run.out)
    assert answer["title"] == "4 of 4 addition circuits of mine to score into c.duckdb"
    assert answer["columns"] == [
        "subtask", "status", "n_pairs", "n_skipped", "n_tokens", "n_shared", "batch_size", "memory_mb", "disk_mb",
        "time_s", "reason",
    ]  # fmt: skip
    assert [(row["subtask"], row["status"], row["n_pairs"]) for row in answer["rows"]] == [
        ("1+1", "missing", 10), ("1+2", "missing", 10), ("2+1", "missing", 10), ("2+2", "missing", 10),
    ]  # fmt: skip
    # `1 + 1 = 2` and a line break, then `1 + 2 = `
    assert answer["rows"][0]["n_tokens"] - len("1 + 2 = ") in (len("1 + 1 = 2\n"), len("9 + 9 = 18\n"))
    assert [row["disk_mb"] for row in answer["rows"]] == [int(4.3 * 3 * 110) / 1e6] * 4
    assert all(row["time_s"] > 0 and row["memory_mb"] > 0 for row in answer["rows"])
    assert re.fullmatch(r"Scoring will take about \d+ s and 0 MB of disk; nothing was written\.", answer["notes"][0])

    cli(*small(folder, "--digits", "1", "--db", "c.duckdb", "--model-name", "mine"))
    after = cli(*command, "--dry-run")
    assert [row["status"] for row in after.table] == ["stored", "missing", "missing", "missing"]
    assert "3 of 4 addition circuits of mine to score" in after.out
    whole = cli(*small(folder, "--digits", "1", "--db", "c.duckdb", "--model-name", "mine", "--dry-run"))
    assert "0 of 1 addition circuits of mine to score" in whole.out
    assert "nothing was written" not in whole.err


def test_a_dry_run_names_what_can_not_be_scored(folder: Path, tmp_path: Path, cli: terminals.Cli) -> None:
    run = cli("ingest", "--model", str(folder), "--digits", "1,3", "--shots", "9", "--examples", "8", "--dry-run",
              "--json")  # fmt: skip
    rows = json.loads(run.out)["rows"]
    assert (run.code, [row["status"] for row in rows]) == (1, ["missing", "failed", "failed", "failed"])
    assert "use fewer shots" in rows[1]["reason"]
    assert rows[1]["time_s"] is None


def test_a_boolean_task_by_its_own_partition(tmp_path: Path, cli: terminals.Cli) -> None:
    words = tiny_models.spaced_tokenizer("True", "False", "not", "and", "or", "is", "(", ")")
    folder = tiny_models.llama_folder(tmp_path / "tiny", words)
    partition = ["operators=not", "operators=not,and", "length=6", "parentheses=yes"]
    run = cli(
        "ingest", "--model", str(folder), "--db", "c.duckdb", "--task", "boolean", "--shots", "2", "--steps", "2",
        "--examples", "8", *(word for each in partition for word in ("--partition", each)), "--json",
    )  # fmt: skip
    rows = json.loads(run.out)["rows"]
    assert [(row["subtask"], row["status"]) for row in rows] == [
        ("not parentheses", "stored"),
        ("not,and 6 parentheses", "stored"),
    ]
    assert rows[1]["n_examples"] == 8
    with reading(tmp_path / "c.duckdb") as connection:
        assert connection.execute(
            "SELECT parameter, value FROM subtask_parameters WHERE subtask = 'not,and 6 parentheses' ORDER BY ALL"
        ).fetchall() == [("length", "6"), ("operators", "not,and"), ("parentheses", "true")]
        assert connection.execute(
            "SELECT DISTINCT answer, corrupted_answer FROM example WHERE circuit_id = 2 ORDER BY ALL"
        ).fetchall() == [("False", "True"), ("True", "False")]
