"""Studies of what is poor, or strange: said in sentences, never an error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from circuitdb.queries import Database
from circuitdb.queries.studies.digits import described
from circuitdb.store import Store
from planted import SHAPE, arithmetic, write
from stores import circuit, model


def texts(path: Path, study: str = "arithmetic") -> dict[str, str]:
    """Answers by question."""
    found = Database(path).study(study)
    for finding in found.findings:
        assert finding.answer.endswith(".")
        assert "nan" not in finding.answer
        for figure in finding.figures:
            figure.draw()
    return {finding.question: finding.answer for finding in found.findings}


@pytest.mark.parametrize("study", ["arithmetic", "boolean", "sports", "training"])
def test_an_empty_database(tmp_path: Path, study: str) -> None:
    Store(tmp_path / "c.duckdb").create()
    found = Database(tmp_path / "c.duckdb").study(study)
    assert found.findings == ()
    assert found.summary == ("There is no circuit to study yet; `circuitdb ingest` stores some.",)


def test_one_circuit(tmp_path: Path) -> None:
    said = texts(arithmetic(tmp_path / "c.duckdb", digits=1))
    assert "right on 80%" in said["How often is the model right?"]
    assert said["Does the model use one circuit across the task?"] == (
        "There is one circuit, of 1+1; similarity, families and the rest take two subtasks or more."
    )


def test_no_folds_and_no_accuracy(tmp_path: Path) -> None:
    said = texts(arithmetic(tmp_path / "c.duckdb", digits=3, folds=0, accuracy=lambda *_: None))
    assert said["How often is the model right?"].startswith("No accuracy is stored")
    assert said["Are the circuits measured well enough to be compared?"].startswith("No circuit has a reliability")
    for question in ("Does the model use one circuit across the task?", "Which digit counts go together?"):
        assert said[question].startswith("These circuits are too noisy to tell: their reliability is not known.")
    assert "no accuracy is stored" in said["Is the model more often right where its circuit is like the others?"]


def test_noise_is_called_noise_with_what_would_cure_it(tmp_path: Path) -> None:
    path = arithmetic(tmp_path / "c.duckdb", digits=3, noise=4.0)
    said = texts(path)
    (row,) = Database(path).stability().rows()
    median, needed = float(str(row["median_reliability"])), row["examples_needed"]
    assert median < 0.5
    assert said["Are the circuits measured well enough to be compared?"].startswith(
        f"No, they are too noisy to tell. The median reliability is {median:.2f}"
    )
    assert (
        f"about {needed} examples a circuit would bring the median to 0.5"
        in (said["Are the circuits measured well enough to be compared?"])
    )
    short = f"These circuits are too noisy to tell: their median reliability is {median:.2f}."
    told = [question for question, text in said.items() if text.startswith(short)]
    assert len(told) == 7
    assert "So they are different circuits" not in " ".join(said.values())


def test_scores_that_are_null_constant_or_of_no_edge(tmp_path: Path) -> None:
    path, rng = tmp_path / "c.duckdb", np.random.default_rng(0)
    arithmetic(path, digits=2)
    for name, value in (("3+1", np.nan), ("1+3", 0.0)):
        a, b = map(int, name.split("+"))
        record = circuit(name, {"digits_a": a, "digits_b": b}, of=model(shape=SHAPE), n_examples=20)
        write(Store(path), record, np.full(SHAPE.n_edges, value), rng, noise=0.0, accuracy=0.0)
    said = texts(path)
    assert "over 4 circuits" in said["Are circuits less alike the further apart their digit counts are?"]
    assert "Of 6 circuits there are" in said["How many families of circuits are there, at which alpha?"]


def test_all_are_without_a_similarity(tmp_path: Path) -> None:
    path, rng = tmp_path / "c.duckdb", np.random.default_rng(0)
    for a in (1, 2, 3):
        record = circuit(f"{a}+{a}", {"digits_a": a, "digits_b": a}, of=model(shape=SHAPE))
        write(Store(path), record, np.zeros(SHAPE.n_edges), rng, noise=0.0)
    said = texts(path)
    assert (
        "No two circuits of distinct subtasks have a similarity."
        in (said["Does the model use one circuit across the task?"])
    )
    assert "no two circuits can be joined" in said["How many families of circuits are there, at which alpha?"]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ([(1, 1)], "alone"),
        ([(1, 1), (2, 2), (3, 3), (4, 4)], "equal digit counts"),
        ([(1, 2), (2, 1), (3, 2), (3, 4)], "one digit apart"),
        ([(3, 1), (4, 1), (4, 2)], "first operand longer by two or more"),
        ([(2, 1), (3, 1), (4, 3)], "first operand longer"),
        ([(1, 1), (1, 2), (1, 3), (1, 4)], "first operand of a single digit"),
        ([(1, 1), (1, 3), (3, 1)], "an operand of a single digit"),
        ([(1, 1), (2, 2), (3, 3), (1, 4)], "mostly equal digit counts (3 of 4)"),
        ([(1, 1), (4, 2)], "mixed"),
        ([(a, b) for a in range(1, 5) for b in range(1, 5)], "all subtasks"),
    ],
)
def test_families_in_words(cells: list[tuple[int, int]], words: str) -> None:
    assert described(cells, [(a, b) for a in range(1, 5) for b in range(1, 5)]) == words
