"""docs/own-task.md: its example goes from the file to families, and what is wrong with a file is one sentence."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import terminals
import tiny_models
from circuitdb.connection import reading
from circuitdb.ingest import load_model

PAGE = (Path(__file__).parents[2] / "docs" / "own-task.md").read_text(encoding="utf-8")
(FIVE,) = re.findall(r"```csv\n(.*?)```", PAGE, re.DOTALL)
(COMMANDS,) = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
(PYTHON,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Llama that reads ASCII, called gpt2 as in the page."""
    folder = tmp_path_factory.mktemp("model") / "gpt2"
    return tiny_models.llama_folder(folder, tiny_models.character_tokenizer())


def test_the_example_goes_from_five_lines_to_families(folder: Path, tmp_path: Path) -> None:
    """The page's own commands, each in a process of its own."""
    assert len(FIVE.splitlines()) == 5
    (tmp_path / "signs.csv").write_text(FIVE)
    ingested, families = (
        terminals.run([str(folder) if word == "gpt2" else word for word in line.split()[2:]], tmp_path)
        for line in COMMANDS.splitlines()
    )
    assert (ingested.returncode, families.returncode) == (0, 0)
    (table,) = terminals.tables(ingested.stdout)
    assert [(row["subtask"], row["status"], row["n_examples"], row["n_skipped"]) for row in table] == [
        ("plus", "stored", "2", "0"),
        ("minus", "stored", "2", "0"),
    ]
    (table,) = terminals.tables(families.stdout)
    assert {row["subtask"] for row in table} == {"plus", "minus"}
    with reading(tmp_path / "circuits.duckdb") as connection:
        assert connection.execute(
            "SELECT clean, corrupted, answer, corrupted_answer, fold FROM example WHERE circuit_id = 1 ORDER BY clean"
        ).fetchall() == [("2 + 3 = ", "2 + 4 = ", "5", "6", 1), ("5 + 1 = ", "5 + 3 = ", "6", "8", 0)]


def test_the_python_of_the_page_runs(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "signs.csv").write_text(FIVE)
    monkeypatch.setattr("circuitdb.ingest.load_model", lambda _: load_model(folder))
    exec(PYTHON, {})
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["plus", "stored"], ["minus", "stored"],
    ]  # fmt: skip


def tried(cli: terminals.Cli, folder: Path, path: Path, content: bytes, *more: str) -> terminals.Run:
    """An ingest of a file with that content."""
    path.write_bytes(content)
    return cli("ingest", "--model", str(folder), "--task", str(path), "--db", "c.duckdb", "--steps", "2", *more)


BEFORE_THE_MODEL = [
    (FIVE.replace(",answer", ",result", 1), "row 1: there is no column answer;"),
    (FIVE.replace(",6,8,", ",6,,"), "row 3: corrupted_answer is empty."),
    (FIVE.replace(",6,8,", ",6,"), "row 3: it has 4 cells and the header 5;"),
    (FIVE.replace("5,minus", "5,Minus"), "row 5: the subtask 'Minus' is written 'minus' in row 4;"),
    ("\n".join(FIVE.splitlines()[:2]), "row 2: it is the only question;"),
    ("prompt,answer\n2 + 2 =,4\n1 + 3 =,4\n", "row 2: its answer '4' is the answer of every row,"),
]


@pytest.mark.parametrize(("content", "message"), BEFORE_THE_MODEL, ids=[case[1] for case in BEFORE_THE_MODEL])
def test_a_wrong_file_is_told_before_the_model_is_loaded(
    tmp_path: Path, cli: terminals.Cli, content: str, message: str
) -> None:
    run = tried(cli, tmp_path / "no-model", tmp_path / "my.csv", content.encode())
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith(f"Error: my.csv, {message}")
    assert run.err.count("\n") == 1


def test_wrong_encodings(tmp_path: Path, cli: terminals.Cli) -> None:
    for content, message in (
        (FIVE.replace("minus", "mínus").encode("cp1252"), "my.csv, row 4: byte 0xed is no UTF-8, but 'í' in Windows"),
        (FIVE.encode("utf-16"), "my.csv, row 1: the file is in UTF-16"),
    ):  # fmt: skip
        run = tried(cli, tmp_path / "no-model", tmp_path / "my.csv", content)
        assert run.code == 2
        assert run.err.startswith(f"Error: {message}")


def test_a_mark_and_windows_line_ends_are_read_past(folder: Path, tmp_path: Path, cli: terminals.Cli) -> None:
    plain = tried(cli, folder, tmp_path / "my.csv", FIVE.encode(), "--json")
    assert [row["status"] for row in json.loads(plain.out)["rows"]] == ["stored", "stored"]
    windows = b"\xef\xbb\xbf" + FIVE.replace("\n", "\r\n").encode()
    again = tried(cli, folder, tmp_path / "my.csv", windows, "--json")
    assert [row["status"] for row in json.loads(again.out)["rows"]] == ["kept", "kept"]
    renamed = tried(cli, folder, tmp_path / "yours.csv", windows, "--task-name", "my", "--json")
    assert [row["status"] for row in json.loads(renamed.out)["rows"]] == ["kept", "kept"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            FIVE.replace("2 + 3 =", f"2 + {'3' * 9996} ="),
            "my.csv, row 2: my plus has prompts of 10,003 tokens, more than the 128 of gpt2's context: make them "
            "shorter.",
        ),
        (
            FIVE.replace("2 + 4", "2 + 44").replace("5 + 3", "5 + 33"),
            "my plus has pairs to score in 0 of 2 folds: my.csv, row 2: its clean prompt has 8 tokens and its "
            "corrupted one 9; my.csv, row 3: its clean prompt has 8 tokens and its corrupted one 9; use more examples "
            "or fewer folds.",
        ),
        (
            "\n".join(line for line in FIVE.splitlines() if "5 + 1" not in line),
            "my.csv, row 2: my plus has 1 different question; 0 shots and a pair to score need 2: it needs more.",
        ),
    ],
    ids=["10,000 tokens", "unequal lengths", "one row"],
)  # fmt: skip
def test_what_depends_on_the_model_fails_its_subtask_alone(
    folder: Path, tmp_path: Path, cli: terminals.Cli, content: str, reason: str
) -> None:
    run = tried(cli, folder, tmp_path / "my.csv", content.encode(), "--json")
    rows = json.loads(run.out)["rows"]
    assert run.code == 1
    assert [row["status"] for row in rows] == ["failed", "stored"]
    assert rows[0]["reason"] == reason


def test_unequal_lengths_are_paired_where_it_is_asked_for(folder: Path, tmp_path: Path, cli: terminals.Cli) -> None:
    content = FIVE.replace("2 + 4", "2 + 44").replace("5 + 3", "5 + 333").encode()
    note = "Pairs of unequal token length, matched from the end: 2 of plus."
    dry = tried(cli, folder, tmp_path / "my.csv", content, "--align", "left-pad", "--dry-run", "--json")
    assert [row["n_tokens"] for row in json.loads(dry.out)["rows"]] == [10, 8]
    assert note in json.loads(dry.out)["notes"]
    run = tried(cli, folder, tmp_path / "my.csv", content, "--align", "left-pad", "--json")
    assert (run.code, [row["status"] for row in json.loads(run.out)["rows"]]) == (0, ["stored", "stored"])
    assert note in json.loads(run.out)["notes"]
    shown = json.loads(cli("show", "1", "--db", "c.duckdb", "--json").out)["provenance"]["rows"][0]
    assert (shown["padding"], shown["n_padded"]) == ("left", 2)
    shown = json.loads(cli("show", "2", "--db", "c.duckdb", "--json").out)["provenance"]["rows"][0]
    assert (shown["padding"], shown["n_padded"]) == ("none", 0)


def test_shots_of_a_file_are_asked_for(folder: Path, tmp_path: Path, cli: terminals.Cli) -> None:
    rows = "".join(f"{a} + {a} =,{2 * a}\n" for a in range(1, 9))
    content = f"prompt,answer\n{rows}1 + 1 =,2\n".encode()
    run = tried(cli, folder, tmp_path / "sums.csv", content, "--shots", "2", "--json")
    answer = json.loads(run.out)
    assert [(row["subtask"], row["status"], row["n_examples"]) for row in answer["rows"]] == [("sums", "stored", 6)]
    assert "sums.csv: left out, since they repeat a question of their subtask: row 10." in answer["notes"]
    dry = tried(cli, folder, tmp_path / "sums.csv", content, "--dry-run", "--json")
    assert json.loads(dry.out)["rows"][0]["n_pairs"] == 8
    assert "sums.csv: left out, since they repeat a question of their subtask: row 10." in json.loads(dry.out)["notes"]


def test_only_a_file_gets_another_name(folder: Path, cli: terminals.Cli) -> None:
    run = cli("ingest", "--model", str(folder), "--task-name", "mine", "--db", "c.duckdb")
    assert (run.code, run.out) == (2, "")
    assert "--task-name is for a task in a file; others have a name." in run.err
