"""Checkpoints: stability and accuracy rise together, as was planted, and the differences are those of the database."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from circuitdb.graph import GraphShape
from circuitdb.queries import Database
from circuitdb.queries.proportions import holm
from circuitdb.queries.studies.findings import Findings
from planted import arithmetic, checkpoints
from stores import model

NAMES = ["pythia@step1000", "pythia@step8000", "pythia@step64000"]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Database:
    return Database(checkpoints(tmp_path_factory.mktemp("checkpoints") / "c.duckdb"))


@pytest.fixture(scope="module")
def found(db: Database) -> Findings:
    return db.study("training")


def test_the_curve(db: Database, found: Findings) -> None:
    rows = found.findings[0].tables[0].rows()
    assert [row["model"] for row in rows] == NAMES  # 8000 before 64000
    expected = {row["model"]: row for row in db.stability().rows()}
    for row, accuracy in zip(rows, (0.1, 0.4, 0.7), strict=True):
        own = expected[row["model"]]
        assert [row[k] for k in ("stability", "low", "high", "ceiling")] == [
            own[k] for k in ("stability", "low", "high", "ceiling")
        ]
        assert row["accuracy"] == pytest.approx(accuracy)
    last = expected[NAMES[-1]]
    assert f"{NAMES[-1]}: stability {last['stability']:.2f} (95% interval {last['low']:.2f}" in found.findings[0].answer


def test_differences_are_tested(db: Database, found: Findings) -> None:
    rows = found.findings[1].tables[0].rows()
    assert [(row["model"], row["less"]) for row in rows] == [
        (NAMES[1], NAMES[0]), (NAMES[2], NAMES[1]), (NAMES[2], NAMES[0]),
    ]  # fmt: skip
    for row in rows:
        pair = (str(row["model"]), str(row["less"]))
        expected = {r["statistic"]: r for r in db.compare("model", pair, model=pair).rows()}["stability"]
        assert row["difference"] == pytest.approx(expected["effect"])
        assert row["p"] == pytest.approx(expected["p"])
    adjusted = holm(np.array([row["p"] for row in rows], np.float64))
    assert [row["p_of_all"] for row in rows] == pytest.approx(adjusted)
    assert f"{NAMES[2]} is more stable than {NAMES[0]}, by" in found.findings[1].answer


def test_stability_goes_with_accuracy(found: Findings) -> None:
    # Three models: 2 of 6 orders have |rho| = 1.
    assert "over 3 models the rank correlation of stability with accuracy is 1.00, p = 0.33" in found.findings[2].answer


def test_models_of_different_shapes_are_not_exchanged(tmp_path: Path) -> None:
    path = arithmetic(tmp_path / "c.duckdb", digits=2, of=model("small"), shape=model("small").shape)
    large = GraphShape(3, 4)
    arithmetic(path, digits=2, of=replace(model("large", large)), shape=large)
    found = Database(path).study("training")
    assert found.findings[1].tables[0].rows()[0]["p"] is None
    assert "1 pair is not tested: the models are of different graph shapes" in found.findings[1].caveats[1]


def test_one_model(tmp_path: Path) -> None:
    (one,) = Database(arithmetic(tmp_path / "c.duckdb", digits=2)).study("training").findings
    assert one.answer.startswith("There is one model, tiny; a comparison takes circuits of two")
