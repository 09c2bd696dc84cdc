from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

import circuitdb.queries
from circuitdb.connection import reading
from circuitdb.queries import named

PARAMETERS: dict[str, dict[str, named.Parameter]] = {
    "selection": dict.fromkeys(
        [
            "models",
            "tasks",
            "subtasks",
            "origins",
            "methods",
            "steps",
            "grids",
            "metrics",
            "positions",
            "contrasts",
            "ablations",
            "prompt_styles",
            "shots_drawn",
            "reasoning_tokens",
            "chats",
            "dtypes",
            "shots",
            "seeds",
            "examples",
            "circuits",
        ]
    ),
    "models": {},
    "extent": {},
    "widths": {},
    "scores": {"circuits": [1, 2], "first": 1, "last": 2},
    "fold_scores": {"circuits": [1, 2], "first": 1, "last": 2},
    "circuits": {"circuits": [1, 2]},
    "top_edges": {"circuit": 1, "n": 3},
    "provenance": {"circuit": 1},
    "skipped": {"circuit": 1},
    "relations": {},
    "relation_columns": {"name": "circuit"},
    "faithfulness": {"circuits": [1, 2], "selections": None},
    "evaluations": {"circuits": [1, 2], "everything": False},
    "evaluation_map": {"source": None},
    "evaluation_sources": {},
    "metric_names": {},
    "node_scores": {"circuit": 1},
    "vocabulary": {},
    "notes": {"circuits": [1, 2], "everything": True},
    "metric_values": {"circuits": [1, 2], "source": "circuitdb", "metric": "accuracy", "filter": None},
    "accuracies": {"circuits": [1, 2]},
    "study_models": {"circuits": [1, 2]},
    "study_runs": {"circuits": [1, 2]},
}


def test_every_file_is_tested_here() -> None:
    assert set(named.names()) == set(PARAMETERS)


@pytest.mark.parametrize("name", named.names())
def test_every_file_is_used(name: str) -> None:
    folder = Path(circuitdb.queries.__file__).parent
    assert any(f'"{name}"' in file.read_text() for file in folder.rglob("*.py"))


@pytest.mark.parametrize("name", named.names())
def test_header_tells_parameters_and_columns(name: str, path: Path) -> None:
    header, body = _parts(named.text(name))
    assert [line.split(":")[0] for line in header if re.match(r"\w+:", line)] == [
        "question", "parameters", "columns", "units",
    ]  # fmt: skip
    told = "\n".join(header)
    assert set(re.findall(r"\$(\w+)", told)) == set(re.findall(r"\$(\w+)", body)) == set(PARAMETERS[name])
    with reading(path) as connection:
        table = named.run(connection, name, **PARAMETERS[name])
    columns = told.partition("columns:")[2].partition("units:")[0]
    assert set(table.column_names) <= set(re.findall(r"\w+", columns))
    none_here = ("skipped", "faithfulness", "evaluation_map", "evaluation_sources", "notes")
    assert table.num_rows or name in none_here


def test_values_are_bound_and_never_formatted(path: Path) -> None:
    hostile = "x' OR 1=1 --"
    with reading(path) as connection:
        asked = PARAMETERS["selection"] | {"tasks": [hostile]}
        assert named.run(connection, "selection", **asked).num_rows == 0


def test_the_file_is_free_after_a_question(path: Path) -> None:
    with reading(path) as connection:
        named.run(connection, "circuits", circuits=[1])
    duckdb.connect(str(path)).close()  # another configuration: refused while a cursor is open


def _parts(text: str) -> tuple[list[str], str]:
    lines = text.splitlines()
    header = [line[3:] for line in lines if line.startswith("-- ")]
    return header, "\n".join(line for line in lines if not line.startswith("--"))
