"""The examples in the docstrings of the Python API run, and give what they say; each question has one."""

from __future__ import annotations

import doctest
import inspect
import shutil
from collections.abc import Callable
from pathlib import Path
from types import FunctionType

import pytest

import circuitdb
from circuitdb.queries import Database
from circuitdb.queries.result import Answer
from examples import example_folder

QUESTIONS = [
    function
    for name, function in inspect.getmembers(Database, inspect.isfunction)
    if not name.startswith("_") and function.__module__.startswith("circuitdb.")
]
CHANGING = {
    "add_evaluations",
    "map_evaluations",
    "remove_evaluations",
    "notes",
    "add_note",
    "change_note",
    "delete_note",
}
EXPLAINED = [circuitdb.open, Answer.rows, Answer.columns, *QUESTIONS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the examples, not to be written to."""
    return example_folder(tmp_path_factory.mktemp("examples"))


@pytest.fixture(scope="module")
def db(folder: Path) -> Database:
    return circuitdb.open(folder / "circuits.duckdb", cache=False)


def _name(explained: object) -> str:
    function = explained.fget if isinstance(explained, property) else explained
    return getattr(function, "__name__", "")


@pytest.mark.parametrize("explained", EXPLAINED, ids=_name)
def test_its_example_runs(
    explained: Callable[..., object], folder: Path, db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if _name(explained) in CHANGING:
        folder = Path(shutil.copytree(folder, tmp_path / "example"))
        db = circuitdb.open(folder / "circuits.duckdb")
    monkeypatch.chdir(folder)
    names = {"circuitdb": circuitdb, "db": db}
    text = inspect.getdoc(explained)
    assert text is not None
    example = doctest.DocTestParser().get_doctest(text, names, _name(explained), None, 0)
    assert example.examples, f"{_name(explained)} has no example"
    said: list[str] = []
    failed, tried = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=said.append)
    assert tried
    assert not failed, "".join(said)


def test_the_questions_are_found() -> None:
    assert {"similarity", "stability", "families", "containment", "hard_circuit", "correlate", "sql"} <= {
        question.__name__ for question in QUESTIONS
    }
    assert all(isinstance(question, FunctionType) for question in QUESTIONS)
