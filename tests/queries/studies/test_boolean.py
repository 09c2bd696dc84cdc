"""The boolean study: parentheses change the circuit, and cost accuracy, with `not` alone, as was planted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import fisher_exact

from circuitdb.queries import Database
from circuitdb.queries.studies.findings import Finding, Findings
from circuitdb.records import Parameters
from circuitdb.store import Store
from planted import SHAPE, N, boolean, write
from stores import circuit, model


def answer(found: Findings, start: str) -> Finding:
    """The only finding whose question begins so."""
    (one,) = [f for f in found.findings if f.question.startswith(start)]
    return one


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Database:
    return Database(boolean(tmp_path_factory.mktemp("boolean") / "c.duckdb"))


@pytest.fixture(scope="module")
def found(db: Database) -> Findings:
    return db.study("boolean")


def test_the_circuit_changes_with_not_alone(db: Database, found: Findings) -> None:
    one = answer(found, "Do parentheses change")
    rows = {str(row["expressions"]): row for row in one.tables[0].rows()}
    assert list(rows) == ["not,and, length 7", "not,and,or, length 7", "not"]
    pairs = {(row["a"], row["b"]): row for row in db.similarity(intervals=True).rows()}
    expected = pairs["not", "not parentheses"]
    for name in ("similarity", "low", "high", "ceiling", "corrected", "corrected_low", "corrected_high"):
        assert rows["not"][name] == expected[name]
    assert rows["not"]["corrected_high"] < 1  # type: ignore[operator]
    assert f"With not the two circuits have a similarity of {expected['similarity']:.2f} where noise" in one.answer
    assert one.answer.count("the circuit changes, beyond noise") == 1
    assert one.answer.count("that it stays the same can't be excluded") == 2


def test_and_costs_forty_points(found: Findings) -> None:
    one = answer(found, "Do parentheses cost")
    row = next(row for row in one.tables[0].rows() if row["expressions"] == "not")
    assert row["cost"] == pytest.approx(0.4)
    assert row["stderr"] == pytest.approx(np.sqrt(0.95 * 0.05 / 20 + 0.55 * 0.45 / 20))
    assert "With not they cost 40 points (95% interval 13 to 61 points), p = 0.0084." in one.answer
    assert "With not,and, length 7 they cost nothing" in one.answer


def test_stability_within_each_condition_as_the_database_compares(db: Database, found: Findings) -> None:
    one = answer(found, "Is the circuit as stable")
    rows = {row["statistic"]: row for row in db.compare("parentheses", ("False", "True")).rows()}
    first, second = (f"{rows['stability'][name]:.2f}".replace("-0.00", "0.00") for name in ("first", "second"))
    assert f"Stability is {first} without parentheses and {second} with them" in one.answer
    assert one.caveats == (
        "There are only 8 different exchanges, and of each the opposite is as extreme, so that p can't be below 0.25.",
    )


def test_several_lengths_are_told_together(tmp_path: Path) -> None:
    found = Database(boolean(tmp_path / "c.duckdb", lengths=(6, 7, 8))).study("boolean")
    one = answer(found, "Do parentheses change")
    assert "With not,and the two circuits of 3 pairs have a mean similarity of" in one.answer
    assert "the circuit changes beyond noise in 0 of 3" in one.answer
    assert "not,and, the mean of 3 pairs, they cost nothing" in answer(found, "Do parentheses cost").answer


def test_two_folds_give_no_interval_and_say_so(tmp_path: Path) -> None:
    one = answer(Database(boolean(tmp_path / "c.duckdb", folds=2)).study("boolean"), "Do parentheses change")
    assert "An interval of a pair takes three folds of the examples of every circuit." in one.caveats
    assert "95% interval" not in one.answer.partition("Over all")[0]
    assert all(row["low"] is None for row in one.tables[0].rows())


def test_guessing_is_said(tmp_path: Path) -> None:
    path = boolean(tmp_path / "c.duckdb")
    found = Database(path).study("boolean", subtask="not parentheses")
    assert "Guessing would be right on 50%: the model hardly does the task" in answer(found, "How often").caveats[0]
    assert "There is one circuit, of not parentheses" in answer(found, "Does the model").answer
    only = Database(path).study("boolean", subtask=["not", "not,and 7"])
    assert "no operators and length are there both" in answer(only, "Do parentheses change").answer


def test_depths_that_share_a_circuit_without_parentheses_are_one_observation(tmp_path: Path) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "c.duckdb"
    store, of = Store(path), model(shape=SHAPE)
    signal = rng.standard_normal(SHAPE.n_edges)
    for parentheses, depth in ((False, 0), (True, 1), (True, 2), (True, 3)):
        parameters: Parameters = {"operators": "not", "parentheses": parentheses, "length": 7, "depth": depth}
        record = circuit(f"not {depth}", parameters, of=of, task="boolean", n_examples=N)
        write(store, record, signal, rng, accuracy=0.95 if not depth else 0.5)
    one = answer(Database(path).study("boolean"), "Do parentheses cost")
    # One circuit is in all three pairs: three times the same difference is no interval.
    assert one.answer == "With not, the mean of 3 pairs, they cost 45 points, p = 1.00."
    assert "the two circuits of 3 pairs have a mean similarity of" in (
        answer(Database(path).study("boolean"), "Do parentheses change").answer
    )


def test_costs_are_tested_together(found: Findings) -> None:
    rows = answer(found, "Do parentheses cost").tables[0].rows()
    # Holm: the smallest of three p three times, the others are 1 already.
    assert [row["p_of_all"] for row in rows] == pytest.approx(
        [1, 1, 3 * fisher_exact([[19, 1], [11, 9]]).pvalue], abs=1e-9
    )
