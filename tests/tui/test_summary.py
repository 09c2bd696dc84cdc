from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import circuitdb
from circuitdb.graph import GraphShape
from circuitdb.store import Store
from circuitdb.tui import summary
from circuitdb.tui.catalogue import Catalogue, Entry
from stores import addition_store, circuit, model


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """addition_store (1..9), and circuit 10 of a model of another shape."""
    path = addition_store(tmp_path_factory.mktemp("summary") / "c.duckdb")
    shape = GraphShape(n_layers=3, n_heads=2)
    scores = np.linspace(-1, 1, shape.n_edges, dtype=np.float32)
    Store(path).write(circuit("1+1", of=model("other", shape)), scores)
    return path


@pytest.fixture(scope="module")
def entries(path: Path) -> tuple[Entry, ...]:
    return Catalogue.of(circuitdb.open(path).circuits(model="tiny")).entries


def test_numbers_are_those_of_the_questions(path: Path) -> None:
    db = circuitdb.open(path)
    found = summary.summarise(db, range(1, 10))
    (row,) = db.stability(model="tiny").rows()
    assert found.stability == (row,)
    families = db.families(0.6, model="tiny").rows()
    alpha, grouped = found.families(0.6)
    assert alpha == 0.6
    assert [(name, label) for name, members in grouped for label in members] == [
        (family["family"], family["subtask"]) for family in families
    ]
    # Equal digits share a signal, and nothing else does.
    assert grouped[0] == ("A", ("1+1", "2+2", "3+3"))
    assert len(grouped) == 7
    assert found.refusal is None


def test_alpha_is_the_useful_one_if_none_is_given(path: Path) -> None:
    found = summary.summarise(circuitdb.open(path), range(1, 10))
    title = circuitdb.open(path).families(model="tiny").title
    assert f"at alpha = {found.useful:.4g} " in title
    assert found.families(None) == found.families(found.useful)


def test_circuits_of_different_shapes_have_no_families(path: Path) -> None:
    found = summary.summarise(circuitdb.open(path), [1, 2, 10])
    assert len(found.stability) == 2
    assert found.families(0.6) == (0.6, [])
    assert found.refusal is not None
    assert found.refusal.startswith("These circuits are of different graph shapes")


def test_accuracy_of_those_that_have_one(entries: tuple[Entry, ...]) -> None:
    # 1/2, 1/3, 1/4, 1/3, 1/4, 1/5, 1/4, 1/5, 1/6: the mean of the nine is 0.276.
    assert summary.accuracy(entries) == "0.28, 0.17 to 0.50, of 9 circuits"
    assert summary.accuracy(entries[:1]) == "0.50, of 1 circuit"
    assert summary.accuracy(()) == "not asked"


def test_overview_and_provenance(entries: tuple[Entry, ...]) -> None:
    assert summary.overview(entries) == "1 model, 1 task, 9 subtasks, 1 method"
    told = dict(summary.provenance(entries))
    assert {name: told[name] for name in ("metric", "steps", "prompt", "shots", "seed", "examples", "origin")} == {
        "metric": "kl", "steps": "5", "prompt": "few-shot", "shots": "3", "seed": "0", "examples": "8",
        "origin": "ingest",
    }  # fmt: skip
    assert "left out" not in told
    assert "revision" not in told


def test_stability_in_words() -> None:
    row = {
        "stability": -0.001, "low": -0.25, "high": 0.5, "n_pairs": 36, "ceiling": 0.877, "corrected": None,
        "n_subtasks": 9, "warning": None,
    }  # fmt: skip
    assert list(summary.stability(row)) == ["0.00 [-0.25, 0.50] over 36 pairs", "ceiling 0.88"]
    assert list(summary.stability({**row, "corrected": 1.336, "low": None})) == [
        "0.00 over 36 pairs", "ceiling 0.88, corrected 1.34",
    ]  # fmt: skip
    assert list(summary.stability({**row, "stability": None, "n_subtasks": 1})) == ["not known, of 1 subtask"]


def test_each_warning_once(path: Path) -> None:
    found = summary.summarise(circuitdb.open(path), [1, 10])
    assert summary.warnings(found) == ("Stability needs circuits of two subtasks; this group has one.",)


def test_groups_that_look_alike_are_told_apart() -> None:
    row = {"model": "m", "task": "t", "method": "eap", "metric": "kl", "examples": 78, "n_subtasks": 1}
    other, unknown = row | {"examples": 192, "n_subtasks": 15}, row | {"examples": None}
    logit = row | {"metric": "logit_diff", "examples": 1}
    assert summary.group(row, [row, row | {"task": "u", "examples": 3}, row | {"n_subtasks": 2}]) == "m, t, eap"
    assert summary.group(row, [row, other]) == "m, t, eap, examples 78"
    assert summary.group(unknown, [row, unknown]) == "m, t, eap, examples not known"
    assert summary.group(logit, [row, logit]) == "m, t, eap, metric logit_diff, examples 1"
