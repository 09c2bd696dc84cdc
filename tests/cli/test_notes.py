"""`circuitdb notes`: written, listed, changed, deleted; what is wrong is one sentence."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from terminals import Cli


@pytest.fixture
def notes(cli: Cli, shared_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """`notes(...)` runs `circuitdb notes ...` on a copy of the shared database."""
    monkeypatch.setenv("CIRCUITDB", str(shutil.copy(shared_store, tmp_path / "c.duckdb")))
    return lambda *arguments: cli("notes", *arguments)


def texts(out: str) -> list[tuple[object, ...]]:
    return [(r["note_id"], r["circuit_id"], r["node"], r["edge"], r["text"]) for r in json.loads(out)["rows"]]


def test_written_listed_changed_and_deleted(notes: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert texts(notes("--json").out) == []
    assert texts(notes("add", "copies", "--circuit", "3", "--about", "a0.h1", "--json").out) == [
        (1, 3, "a0.h1", None, "copies")
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO("from a pipe\n"))
    notes("add", "-", "--about", "a0.h1->logits")
    assert texts(notes("--json").out)[1] == (2, None, None, "a0.h1->logits", "from a pipe")
    assert texts(notes("--subtask", "1+3", "--json").out) == [(1, 3, "a0.h1", None, "copies")]
    assert texts(notes("--subtask", "1+1", "--json").out) == []
    notes("change", "1", "copies, and more")
    assert texts(notes("delete", "2", "--json").out) == [(1, 3, "a0.h1", None, "copies, and more")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "x"), "Error: What is the note about? Give a circuit, a node or an edge.\n"),
        (
            ("add", "x", "--circuit", "99"),
            "Error: There is no circuit 99; `circuitdb circuits` lists those there are.\n",
        ),
        (("delete", "4"), "Error: There is no note 4; `circuitdb notes` lists those there are.\n"),
        (("change", "4", "x"), "Error: There is no note 4; `circuitdb notes` lists those there are.\n"),
        (
            ("--task", "addition", "delete", "4"),
            "Error: Options follow the command: `circuitdb notes delete ... --task`.\n",
        ),
    ],
    ids=["nothing", "circuit", "delete", "change", "options"],
)
def test_refusals(notes: Cli, arguments: tuple[str, ...], said: str) -> None:
    ran = notes(*arguments)
    assert (ran.code, ran.out, ran.err) == (2, "", said)
