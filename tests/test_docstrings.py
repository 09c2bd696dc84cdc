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
EXPLAINED = [circuitdb.open, Answer.rows, Answer.columns, *QUESTIONS]


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the examples, to be copied."""
    return example_folder(tmp_path_factory.mktemp("examples"))


def _name(explained: object) -> str:
    function = explained.fget if isinstance(explained, property) else explained
    return getattr(function, "__name__", "")


@pytest.mark.parametrize("explained", EXPLAINED, ids=_name)
def test_its_example_runs(
    explained: Callable[..., object], ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(ready, tmp_path / "example"))
    monkeypatch.chdir(folder)
    names = {"circuitdb": circuitdb, "db": circuitdb.open("circuits.duckdb", cache=False)}
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
