"""The command line within this process, and a database with something of everything to show."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from circuitdb.cli.main import main
from circuitdb.records import Accuracy, Example
from circuitdb.store import Store
from stores import SHAPE, circuit, model
from terminals import Cli, Run


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shared_store: Path) -> Cli:
    """`cli("circuits", "--json")` runs that on the shared database, in an empty folder, its output through a pipe."""
    for name in ("CIRCUITDB_DEBUG", "COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CIRCUITDB", str(shared_store))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Run:
        capsys.readouterr()
        code = main(arguments)
        said = capsys.readouterr()
        return Run(code, said.out, said.err)

    return run


@pytest.fixture(scope="session")
def odd_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One circuit (id 1) with skipped examples, a NULL score, times, software and a name that tries to be markup."""
    path = tmp_path_factory.mktemp("odd") / "odd.duckdb"
    scores = np.linspace(-1, 1, SHAPE.n_edges, dtype=np.float32)
    scores[3] = np.nan
    record = replace(
        circuit("1+1", {"digits_a": 1}, of=replace(model("[red]bold\x1b[31m"), n_parameters=1234)),
        n_skipped=2,
        software={"torch": "2.13.0"},
        started_at=datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
        metric_clean=0.0,
        metric_corrupted=5.25,
    )
    examples = [
        Example("1+2=", "1+3=", "3", "4", n_tokens=4, fold=0, prediction="3", correct=True),
        Example("9+1=\n", answer="10", reason="no corrupted prompt of equal length"),
        Example("", answer="", reason="empty, prompt"),
    ]
    Store(path).write(record, scores, [scores, scores], examples=examples, accuracy=Accuracy(0.75, 0.125, 8))
    return path
