"""`circuitdb ingest` by chain of thought, through a chat template and with own shots, and the questions about these."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tiny_models
from circuitdb.connection import reading

if TYPE_CHECKING:
    from terminals import Cli


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Llama that reads characters, with a chat template."""
    folder = tmp_path_factory.mktemp("model") / "tiny"
    return tiny_models.llama_folder(folder, tiny_models.chat_tokenizer(), n_context=512)


def small(folder: Path, *more: str) -> list[str]:
    """An ingest of two subtasks that takes a few seconds."""
    return [
        "ingest", "--model", str(folder), "--db", "c.duckdb", "--examples", "8", "--steps", "2", "--positions", "all",
        "--digits", "1,2", "--model-name", "mine", *more,
    ]  # fmt: skip


def test_conditions_are_stored_and_told_apart(folder: Path, tmp_path: Path, cli: Cli) -> None:
    thought = ["--chain-of-thought", "--reasoning-tokens", "6"]
    ways = [
        [], [*thought, "--shots", "3"], ["--chat"], [*thought, "--chat", "--shots", "0"],
        ["--shots", "2", "--shots-drawn", "per-example"],
    ]  # fmt: skip
    for way in ways:
        run = cli(*small(folder, *way, "--json"))
        assert run.code == 0
        assert [row["status"] for row in json.loads(run.out)["rows"]] == ["stored"] * 4
    again = cli(*small(folder, *ways[1], "--json"))
    assert [row["status"] for row in json.loads(again.out)["rows"]] == ["kept"] * 4
    with reading(tmp_path / "c.duckdb") as connection:
        assert connection.execute(
            "SELECT prompt_style, shots, shots_drawn, reasoning_tokens, chat, count(*) FROM circuits GROUP BY ALL "
            "ORDER BY min(circuit_id)"
        ).fetchall() == [
            ("few-shot", 3, "fixed", None, False, 4),
            ("chain-of-thought", 3, "fixed", 6, False, 4),
            ("few-shot", 3, "fixed", None, True, 4),
            ("chain-of-thought", 0, None, 6, True, 4),
            ("few-shot", 2, "per-example", None, False, 4),
        ]
        assert connection.execute(
            "SELECT prompt_style, count(reasoning) > 0 FROM example JOIN circuit USING (circuit_id) "
            "GROUP BY ALL ORDER BY 1"
        ).fetchall() == [("chain-of-thought", True), ("few-shot", False)]

    db = ("--db", "c.duckdb")
    groups = json.loads(cli("stability", *db, "--json").out)["rows"]
    assert len(groups) == 5
    assert {row["n_pairs"] for row in groups} == {6}
    compared = cli("compare", *db, "--by", "prompt_style", "--chat", "no", "--shots", "3", "--json")
    assert compared.code == 0
    assert "few-shot" in json.loads(compared.out)["title"]
    assert not any("mixes" in note for note in json.loads(compared.out)["notes"])
    styles = json.loads(cli("circuits", *db, "--prompt-style", "chain-of-thought", "--chat", "yes", "--json").out)[
        "rows"
    ]
    assert [row["circuit_id"] for row in styles] == [13, 14, 15, 16]
    across = cli(
        "similarity", *db, "--shots-drawn", "fixed", "--chat", "no", "--prompt-style", "few-shot", "--against",
        "shots_drawn=per-example", "--json",
    )  # fmt: skip
    assert across.code == 0
    drawn = cli("compare", *db, "--by", "shots_drawn", "--prompt-style", "few-shot", "--chat", "no", "--json")
    assert drawn.code == 0
    chat = cli("compare", *db, "--by", "chat", "--prompt-style", "few-shot", "--shots", "3", "--json")
    assert json.loads(chat.out)["title"].startswith("chat no (first) against yes (second)")
    shown = cli("show", "13", *db)
    assert "chain-of-thought" in shown.out
    assert "reasoning_tokens" in shown.out


def test_a_task_without_worked_reasoning_is_asked_without_shots(folder: Path, tmp_path: Path, cli: Cli) -> None:
    command = ["ingest", "--model", str(folder), "--db", "c.duckdb", "--task", "dates", "--partition", "unit=days",
               "--partition", "span=3", "--examples", "8", "--folds", "1", "--steps", "2", "--positions", "all",
               "--chain-of-thought", "--reasoning-tokens", "4"]  # fmt: skip
    assert cli(*command).code == 0
    with reading(tmp_path / "c.duckdb") as connection:
        assert connection.execute("SELECT shots FROM circuits").fetchall() == [(0,)]
    refused = cli(*command, "--shots", "1", "--json")
    assert refused.code == 1
    assert json.loads(refused.out)["rows"][0]["reason"] == (
        "dates 3 days has no worked reasoning for its shots; with --chain-of-thought use --shots 0."
    )


REFUSED = [
    (["--shots-drawn", "anew"], 2, "Shots are not drawn 'anew'; choose one of fixed, per-example."),
    (["--chain-of-thought", "--reasoning-tokens", "0"], 2, "The number of reasoning tokens must be at least 1, not 0."),
    (["--chain-of-thought", "--metric", "logit-difference"], 2, "The metric logit-difference compares answers, and"),
    (
        ["--chain-of-thought", "--shots-drawn", "per-example", "--positions", "last"], 2,
        "use --positions all with shots per-example.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("options", "code", "message"), REFUSED, ids=[" ".join(case[0]) for case in REFUSED])
def test_refusals_are_one_sentence(folder: Path, cli: Cli, options: list[str], code: int, message: str) -> None:
    run = cli(*small(folder, *options))
    assert (run.code, run.out) == (code, "")
    assert message in " ".join(run.err.split())
    assert "Traceback" not in run.err


def test_a_model_without_a_template_is_refused(tmp_path: Path, cli: Cli) -> None:
    plain = tiny_models.llama_folder(tmp_path / "plain", tiny_models.digit_tokenizer())
    run = cli(*small(plain, "--chat"))
    assert (run.code, run.out) == (1, "")
    assert "The tokenizer of mine has no chat template" in " ".join(run.err.split())
    assert "Traceback" not in run.err
