"""Table, JSON and CSV of one answer agree cell for cell."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from terminals import Cli

COMMANDS = [
    ["circuits"],
    ["reliability"],
    ["reliability", "--on", "magnitude"],
    ["similarity"],
    ["similarity", "--corrected", "--on", "magnitude"],
    ["similarity", "--long"],
    ["similarity", "--null", "--kind", "pearson"],
    ["similarity", "--intervals", "--layers", "0-1", "--source", "head"],
    ["similarity", "--against", "circuit=2", "--against", "circuit=3", "--corrected"],
    ["reliability", "--wanted", "0.9", "--level", "node"],
    ["stability"],
    ["stability", "--by", "digits_a", "--kind", "kappa", "--top", "15"],
    ["compare", "--by", "digits_a", "--value", "1", "--value", "3"],
    ["commutativity"],
    ["neighbours", "--parameter", "digits_b"],
    ["families"],
    ["families", "--every-pair", "--alpha", "0.3", "--shared"],
    ["families", "--barcode", "--share", "0.5"],
    ["families", "--births"],
    ["families", "--births", "--every-pair"],
    ["families", "--share", "0.5", "--share", "0.9", "--corrected"],
    ["families", "--tree"],
    ["families", "--map", "mds", "--nonzero"],
    ["families", "--alpha", "0.3", "--corrected"],
    ["families", "--sweep"],
    ["containment", "--top", "20"],
    ["containment", "--top", "20", "--long"],
    ["containment", "--order", "--tolerance", "0.6"],
    ["inclusion", "--top", "20"],
    ["hard", "2", "--greedy", "9"],
    ["evals"],
    ["correlate"],
    ["correlate", "--points", "--on", "magnitude"],
    ["tasks"],
    ["tasks", "dyck"],
    ["schema"],
    ["schema", "circuits"],
    ["schema", "top_edges"],
    ["sql", "from edge_score order by all limit 40"],
    ["sql", "select null as n, '' as empty, 'a,\"b' as quoted, true as yes, [1, 2] as list, 1e-9 as small, now() as t"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_three_forms_agree_cell_for_cell(cli: Cli, command: list[str]) -> None:
    if "now()" in command[-1]:
        command = [*command[:-1], command[-1].replace("now()", "timestamptz '2026-01-02 03:04:05.678Z'")]
    answer, shown, written = cli(*command, "--json"), cli(*command), cli(*command, "--csv")
    assert (answer.code, shown.code, written.code) == (0, 0, 0)
    whole = json.loads(answer.out)
    rows: list[dict[str, object]] = whole["rows"]
    assert rows
    assert all(list(row) == whole["columns"] for row in rows)
    # CSV: each cell is the JSON of the value at full precision, or the text itself.
    lines = list(csv.DictReader(io.StringIO(written.out)))
    assert lines == [{name: _as_csv(value) for name, value in row.items()} for row in rows]
    # Table: the same value, rounded.
    assert len(shown.table) == len(rows)
    for cells, row in zip(shown.table, rows, strict=True):
        assert list(cells) == whole["columns"]
        for name, value in row.items():
            _check(cells[name], value)
    # The title stands above the table, the notes on standard error, both inside of the object.
    assert shown.out.splitlines()[0] == whole["title"]
    assert shown.err == written.err == "".join(f"Note: {note}\n" for note in whole["notes"])
    assert answer.err == ""


def _as_csv(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _check(cell: str, value: object) -> None:
    if value is None:
        assert cell == "-"
    elif isinstance(value, bool):
        assert cell == ("yes" if value else "no")
    elif isinstance(value, int):
        assert cell == str(value)
    elif isinstance(value, float):
        digits = len(cell.partition(".")[2].partition("e")[0])
        exponent = int(cell.partition("e")[2] or 0)
        assert float(cell) == pytest.approx(value, abs=0.5000001 * 10.0 ** (exponent - digits))
        assert (float(cell) == 0) <= (abs(value) < 0.005)
    elif isinstance(value, list):
        assert cell == ", ".join(map(str, value))
    elif len(str(value)) > 19 and str(value)[10] == "T":
        moment = datetime.fromisoformat(str(value))
        assert cell == f"{moment:%Y-%m-%d %H:%M:%S}Z"
    else:
        assert cell == value


def test_the_parts_of_one_circuit_agree_too(cli: Cli, odd_store: Path) -> None:
    whole = json.loads(cli("show", "1", "--db", str(odd_store), "--json").out)
    assert list(whole) == ["title", "provenance", "reliability", "edges", "skipped"]
    (provenance,) = whole["provenance"]["rows"]
    assert provenance["model"] == "[red]bold\x1b[31m"
    assert provenance["started_at"] == "2026-01-02T03:04:05.678901Z"
    assert json.loads(provenance["software"]) == {"torch": "2.13.0"}
    assert (provenance["accuracy"], provenance["accuracy_stderr"], provenance["accuracy_n"]) == (0.75, 0.125, 8)
    assert (provenance["metric_corrupted"], provenance["n_nonfinite"], provenance["revision"]) == (5.25, 1, None)
    assert [row["reliability"] for row in whole["reliability"]["rows"]] == [1.0, 1.0]  # its two folds are the same
    assert [row["on"] for row in whole["reliability"]["rows"]] == ["signed", "magnitude"]
    strongest = whole["edges"]["rows"]
    assert [row["edge_id"] for row in strongest[:4]] == [0, 74, 1, 73]  # of -1..1 evenly spaced
    assert [row["score"] for row in strongest[:2]] == [-1.0, 1.0]
    assert whole["skipped"]["rows"] == [
        {"position": 1, "clean": "9+1=\n", "answer": "10", "reason": "no corrupted prompt of equal length"},
        {"position": 2, "clean": "", "answer": "", "reason": "empty, prompt"},
    ]


def test_one_circuit_for_people(cli: Cli, odd_store: Path) -> None:
    run = cli("show", "1", "--edges", "3", "--db", str(odd_store))
    lines = [line.rstrip() for line in run.out.splitlines()]
    assert lines[0] == "Circuit 1"
    assert "model             [red]bold\\x1b[31m" in lines
    assert "started_at        2026-01-02 03:04:05Z" in lines
    assert "revision          -" in lines
    assert "Strongest 3 edges of circuit 1 (1+1)" in lines
    assert "2 questions left out" in lines
    assert "       1  9+1=\\n  10      no corrupted prompt of equal length" in lines
    assert "\x1b" not in run.out
