"""`circuitdb doctor`, `compact` and `backup` at the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from circuitdb.connection import writing
from stores import SHAPE

if TYPE_CHECKING:
    from terminals import Cli


@pytest.fixture
def path(shared_store: Path, tmp_path: Path) -> Path:
    """A database of its own."""
    return Path(shutil.copy(shared_store, tmp_path / "mine.duckdb"))


def test_doctor_of_a_good_file(cli: Cli, path: Path) -> None:
    run = cli("doctor", "--db", path.name, "--all")
    assert (run.code, run.err) == (0, "")
    assert run.out.startswith(f"mine.duckdb, {path.stat().st_size / 1e6:.1f} MB: nothing is wrong\n")
    assert "9 of 9 computed anew, and equal." in run.out


def test_doctor_of_a_bad_one_has_exit_code_1_and_json(cli: Cli, path: Path) -> None:
    with writing(path) as connection:
        connection.execute("DELETE FROM circuit WHERE circuit_id = 2")
    run = cli("doctor", "--db", path.name, "--json")
    assert (run.code, run.err) == (1, "")
    answer = json.loads(run.out)
    assert answer["title"].endswith("MB: 1 of 11 checks found a fault")
    faults = [row for row in answer["findings"]["rows"] if row["status"] == "wrong"]
    assert [row["check"] for row in faults] == ["orphan rows"]
    assert f"{SHAPE.n_edges} of edge_score with a circuit_id that is not in circuit" in faults[0]["found"]
    assert faults[0]["advice"].startswith("They count in no question.")
    assert {row["table"]: row["n_rows"] for row in answer["tables"]["rows"]}["circuit"] == 8


def test_compact(cli: Cli, path: Path) -> None:
    before = path.stat().st_size
    run = cli("compact", "--db", path.name, "--json")
    rows = json.loads(run.out)["rows"]
    assert (run.code, run.err) == (0, "")
    assert rows == [{"mb_before": before / 1e6, "mb_after": path.stat().st_size / 1e6, "n_scores": 9 * SHAPE.n_edges}]
    assert cli("circuits", "--db", path.name).code == 0


def test_backup(cli: Cli, path: Path, tmp_path: Path) -> None:
    run = cli("backup", "copy.duckdb", "--db", path.name, "--json")
    rows = json.loads(run.out)["rows"]
    assert rows == [{"file": str(tmp_path / "copy.duckdb"), "mb": path.stat().st_size / 1e6, "n_circuits": 9}]
    again = cli("backup", "copy.duckdb", "--db", path.name)
    assert (again.code, again.out) == (1, "")
    assert " ".join(again.err.split()).endswith("exists already; name another file, or replace it with --force.")
    assert cli("backup", "copy.duckdb", "--db", path.name, "--force").code == 0


@pytest.mark.parametrize("command", [["doctor"], ["compact"], ["backup", "x.duckdb"]])
def test_no_database(command: list[str], cli: Cli) -> None:
    run = cli(*command, "--db", "none.duckdb")
    assert (run.code, run.out) == (1, "")
    assert run.err.startswith("Error: There is no database none.duckdb; make one with `circuitdb ingest`")
