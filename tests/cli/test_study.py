"""`circuitdb study` from the command to the report, on tiny real models: run again, stopped, killed, incomplete."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import hub
import tiny_models
from circuitdb.connection import reading
from circuitdb.ingest.forms import LEAD
from circuitdb.ingest.studies import registry
from terminals import MAIN, Cli, environment, run, run_in_terminal, tables

GRID = [f"{a}+{b}" for a in (1, 2, 3) for b in (1, 2, 3)]
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two models that read sums, one that reads the other studies, one whose weights are not to be read."""
    parent = tmp_path_factory.mktemp("models")
    found = {
        name: tiny_models.llama_folder(parent / name, tiny_models.digit_tokenizer(), seed=seed)
        for seed, name in enumerate(("early", "late", "broken"))
    }
    (found["broken"] / "model.safetensors").write_bytes(b"no weights")
    texts = [text for study in ("boolean", "sports") for text in texts_of(study)]
    found["reader"] = tiny_models.llama_folder(parent / "reader", tiny_models.trained_tokenizer(texts), n_context=512)
    return found


def texts_of(study: str) -> list[str]:
    """The questions of a study, solved."""
    return [
        f"{question.prompt} {question.reasoning} {LEAD} {question.answer}.\n"
        for condition in registry.find(study).conditions("tiny")
        for subtask in condition.task.subtasks()
        for question in condition.task.questions(subtask, 200, 0)
    ]


@pytest.fixture(scope="module")
def scored(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the arithmetic study of the early model was run to its end."""
    folder = tmp_path_factory.mktemp("scored")
    done = run(arithmetic(folders["early"]), folder)
    assert done.returncode == 0, done.stderr
    return folder


def arithmetic(*models: Path, more: tuple[str, ...] = ()) -> list[str]:
    """The study of additions, with so few examples that a circuit takes a tenth of a second."""
    named = [word for model in models for word in ("--model", str(model))]
    return ["study", "arithmetic", *named, "--examples", "8", "--db", "c.duckdb", *more]


def stored(path: Path) -> list[tuple[object, ...]]:
    """Subtask and digest of each circuit in a database."""
    with reading(path) as connection:
        return connection.execute("SELECT subtask, score_digest FROM circuits ORDER BY ALL").fetchall()


def test_arithmetic_from_the_command_to_the_report(scored: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch,
                                                   folders: dict[str, Path]) -> None:  # fmt: skip
    assert [subtask for subtask, _ in stored(scored / "c.duckdb")] == GRID
    page = (scored / "report/arithmetic/index.html").read_text()
    text = (scored / "report/arithmetic/report.md").read_text()
    for question in ("How often is the model right?", "Which digit counts go together?"):
        assert question in page
        assert question in text
    monkeypatch.chdir(scored)
    again = cli(*arithmetic(folders["early"], more=("--json",)))
    assert again.code == 0
    assert again.err.splitlines() == [f"loading {folders['early']}", "early: nothing to score, 9 stored already."]
    answer = json.loads(again.out)
    assert [
        {key: row[key] for key in ("model", "condition", "n_circuits", "n_scored", "n_kept", "n_failed")}
        for row in answer["conditions"]["rows"]
    ] == [{"model": "early", "condition": "few-shot", "n_circuits": 9, "n_scored": 0, "n_kept": 9, "n_failed": 0}]
    with reading(scored / "c.duckdb") as connection:
        ((mean,),) = connection.execute("SELECT avg(accuracy) FROM circuits").fetchall()
    assert answer["conditions"]["rows"][0]["accuracy"] == pytest.approx(mean)
    assert answer["missing"]["rows"] == []
    assert answer["report"]["rows"] == [{"page": "report/arithmetic/index.html"}]
    assert "How often is the model right?" in [row["question"] for row in answer["findings"]["rows"]]
    assert (scored / "report/arithmetic/index.html").read_text() == page
    assert len(stored(scored / "c.duckdb")) == 9


def test_the_report_alone_is_the_same_without_a_model(scored: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(scored)
    done = cli("report", "arithmetic", "--db", "c.duckdb", "--report", "alone")
    assert (done.code, done.err) == (0, "")
    assert "The report is alone/index.html" in done.out
    for name in ("index.html", "report.md"):
        assert (scored / "alone" / name).read_text() == (scored / "report/arithmetic" / name).read_text()


def test_several_models_stand_in_the_order_given(folders: dict[str, Path], cli: Cli, tmp_path: Path) -> None:
    done = cli(*arithmetic(folders["late"], folders["early"], more=("--json", "--report", "out")))
    answer = json.loads(done.out)
    assert (done.code, [row["model"] for row in answer["conditions"]["rows"]]) == (0, ["late", "early"])
    (curve,) = [
        row["answer"] for row in answer["findings"]["rows"] if row["question"].startswith("Is the circuit as stable")
    ]
    assert 0 <= curve.index("late: stability") < curve.index("early: stability")
    assert "late" in (tmp_path / "out/index.html").read_text()


def test_boolean_and_sports_run_to_their_report(folders: dict[str, Path], cli: Cli, tmp_path: Path) -> None:
    reader = ["--model", str(folders["reader"]), "--db", "c.duckdb", "--json"]
    done = cli("study", "boolean", *reader, "--examples", "12")
    rows = json.loads(done.out)["conditions"]["rows"]
    assert (done.code, [(row["condition"], row["n_circuits"]) for row in rows]) == (0, [("few-shot", 10)])
    done = cli("study", "sports", *reader, "--examples", "8")
    rows = json.loads(done.out)["conditions"]["rows"]
    assert json.loads(done.out)["missing"]["rows"] == []
    assert (done.code, [(row["condition"], row["n_circuits"]) for row in rows]) == (
        0, [("few-shot, random parts", 4), ("chain of thought, random parts", 4)],
    )  # fmt: skip
    with reading(tmp_path / "c.duckdb") as connection:
        styles = connection.execute(
            "SELECT task, prompt_style, count(*), count(DISTINCT score_digest) FROM circuits GROUP BY ALL ORDER BY ALL"
        ).fetchall()
    assert styles == [
        ("boolean", "few-shot", 10, 10),
        ("sports", "chain-of-thought", 4, 4),
        ("sports", "few-shot", 4, 4),
    ]
    for study in ("boolean", "sports"):
        assert (tmp_path / "report" / study / "index.html").is_file()


def test_killed_in_the_middle_it_goes_on_to_the_same_scores(
    folders: dict[str, Path], scored: Path, cli: Cli, tmp_path: Path
) -> None:
    process = _until(arithmetic(folders["early"]), tmp_path, "4 of 9")
    process.kill()
    process.communicate(timeout=60)
    n_before = len(stored(tmp_path / "c.duckdb"))
    assert 4 <= n_before < 9
    assert not (tmp_path / "report/arithmetic/index.html").exists()
    done = cli(*arithmetic(folders["early"], more=("--json",)))
    (row,) = json.loads(done.out)["conditions"]["rows"]
    assert (done.code, row["n_kept"], row["n_scored"]) == (0, n_before, 9 - n_before)
    assert stored(tmp_path / "c.duckdb") == stored(scored / "c.duckdb")
    assert (tmp_path / "report/arithmetic/index.html").is_file()


def test_an_interrupt_says_that_nothing_is_lost(folders: dict[str, Path], tmp_path: Path) -> None:
    process = _until(arithmetic(folders["early"]), tmp_path, "2 of 9")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == (
        "Warning: Stopped. What is scored is stored in c.duckdb; the same command goes on from there."
    )
    assert 2 <= len(stored(tmp_path / "c.duckdb")) < 9


def _until(arguments: list[str], folder: Path, line: str) -> subprocess.Popen[str]:
    """The command, running, once it has said a line that begins so."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *arguments],
        cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    for said in process.stderr:
        if said.startswith(line):
            return process
    raise AssertionError(f"It ended before it said {line}.")


def test_a_broken_model_is_told_and_the_others_go_on(folders: dict[str, Path], cli: Cli, tmp_path: Path) -> None:
    done = cli(*arithmetic(folders["broken"], folders["early"], Path("none.gguf")))
    assert done.code == 1
    conditions, missing = tables(done.out)
    assert [(row["model"], row["n_circuits"]) for row in conditions] == [
        (str(folders["broken"]), "0"), ("early", "9"), ("none.gguf", "0"),
    ]  # fmt: skip
    assert [(row["model"], row["condition"]) for row in missing] == [(str(folders["broken"]), "-"), ("none.gguf", "-")]
    assert "There is no file none.gguf; give the path of a .gguf file." in done.out
    page = (tmp_path / "report/arithmetic/index.html").read_text()
    assert "2 parts of this study could not be scored" in page
    assert "There is no file none.gguf" in page


def test_without_any_circuit_there_is_no_report(folders: dict[str, Path], cli: Cli, tmp_path: Path) -> None:
    done = cli(*arithmetic(folders["broken"]))
    assert (done.code, done.err.splitlines()[-1]) == (1, "Error: No circuit could be scored, so there is no report.")
    assert not (tmp_path / "report/arithmetic/index.html").exists()


def test_two_versions_on_the_hub_are_two_models(folders: dict[str, Path], tmp_path: Path) -> None:
    hub.store_versions(tmp_path / "cache", "lab/tiny", {"step1": folders["early"], "step2": folders["late"]})
    done = run(
        ["study", "arithmetic", "--model", "lab/tiny", "--revision", "step2,step1", "--examples", "8", "--json"],
        tmp_path, settings={"HF_HUB_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [row["model"] for row in answer["conditions"]["rows"]] == ["lab/tiny@step2", "lab/tiny@step1"]
    with reading(tmp_path / "circuits.duckdb") as connection:
        rows = connection.execute("SELECT name, revision FROM model ORDER BY model_id").fetchall()
    assert rows == [("lab/tiny", "step2"), ("lab/tiny", "step1")]
    (curve,) = [
        row["answer"] for row in answer["findings"]["rows"] if row["question"].startswith("Is the circuit as stable")
    ]
    assert 0 <= curve.index("lab/tiny@step2: ") < curve.index("lab/tiny@step1: ")


def test_a_dry_run_tells_what_would_be_done_and_does_nothing(folders: dict[str, Path], cli: Cli,
                                                             tmp_path: Path) -> None:  # fmt: skip
    done = cli(*arithmetic(folders["early"], folders["broken"], more=("--dry-run", "--json")))
    assert (done.code, list(tmp_path.iterdir())) == (1, [])
    answer = json.loads(done.out)
    assert answer["title"] == "9 of 9 circuits of the study arithmetic (tiny) to score into c.duckdb"
    plan, broken = answer["plan"]["rows"]
    assert (plan["n_missing"], plan["n_stored"], plan["n_failed"], plan["n_pairs"]) == (9, 0, 0, 72)
    assert plan["disk_mb"] == pytest.approx(9 * int(4.3 * 3 * 110) / 1e6)
    assert plan["time_s"] > 0
    assert broken["n_missing"] == 0
    assert [row["model"] for row in answer["missing"]["rows"]] == [str(folders["broken"])]


REFUSED: list[tuple[list[str], str]] = [
    (["study", "sport", "--model", "a"], "There is no study 'sport'; choose one of arithmetic, boolean, sports."),
    (["study", "sports", "--model", "a", "--size", "big"], "There is no size 'big'; choose one of tiny, paper."),
    (["study", "sports"], "Missing option '--model'; see `circuitdb study --help`."),
    (["study", "sports", "--model", "a", "--model", "a"], "a is given twice; a study asks each model once."),
    (["study", "sports", "--model", "a", "--revision", "x,x"], "a@x is given twice; a study asks each model once."),
    (["study", "sports", "--model", "a", "--revision", "x,,y"], "is no list of versions; write step1000,step8000."),
    (["study", "sports", "--model", ".", "--revision", "x"], "A revision is a version on the hub; . is local and has"),
    (["study", "sports", "--model", "a", "--model-name", "b", "--model-name", "c"],
     "There are 1 models and 2 names; give --model-name once for each."),
    (["study", "sports", "--model", "a", "--examples", "3"], "3 examples can't be split into 2 folds"),
    (["study", "sports", "--model", "a", "--method", "magic"], "There is no method 'magic'; choose one of eap-ig,"),
    (["study", "sports", "--model", "a", "--method", "eap"], "so eap would score every edge 0"),
    (["study", "sports", "--model", "a", "--report", "file"], "file is a file; name a folder for the report with"),
    (["study", "sports", "--model", "a", "--report", "file/in"], "file is a file; name a folder for the report with"),
    (["study", "sports", "--model", "a", "--report", "/proc/report"],
     "The report can't be written to /proc/report (No such file or directory); name another folder with --report."),
    (["report", "sport"], "There is no study 'sport'; did you mean sports?"),
    (["report", "boolean"], "but these circuits are of addition"),
    (["report", "arithmetic", "--report", "file"], "file is a file; name a folder for the report with --report."),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=[" ".join(case[0]) for case in REFUSED])
def test_refusals_are_one_sentence_before_any_work(cli: Cli, tmp_path: Path, arguments: list[str],
                                                   message: str) -> None:  # fmt: skip
    (tmp_path / "file").write_text("")
    done = cli(*arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert message in done.err
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_model_without_a_chat_template_is_told(folders: dict[str, Path], cli: Cli) -> None:
    done = cli(*arithmetic(folders["early"], more=("--chat",)))
    assert done.code in (1, 2)
    assert "chat template" in done.err + done.out
    assert "Traceback" not in done.err


def test_eighty_columns_are_enough_on_a_terminal(folders: dict[str, Path], tmp_path: Path) -> None:
    code, said = run_in_terminal(arithmetic(folders["early"], folders["late"]), tmp_path, settings={"NO_COLOR": "1"})
    assert code == 0
    lines = [line for text in said.splitlines() for line in _ESCAPES.sub("", text).split("\r")]
    assert max(map(len, lines)) <= 80
    assert any(re.search(r"scoring 2\+1.* \d+/18 circuits \d", line) for line in lines)
    assert "early: 9 circuits to score." in lines
