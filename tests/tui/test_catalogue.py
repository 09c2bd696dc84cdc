from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import circuitdb
from circuitdb.store import Store
from circuitdb.tui.catalogue import Branch, Catalogue, tree
from stores import SHAPE, addition_store, circuit, model


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    """1+1 to 2+2 of tiny (1..4), 1+1 of tiny again (5), and one of another task of another model (6)."""
    path = addition_store(tmp_path_factory.mktemp("catalogue") / "c.duckdb", digits=2)
    store, scores = Store(path), np.ones(SHAPE.n_edges, np.float32)
    store.write(circuit("1+1", {"digits_a": 1, "digits_b": 1}, salt="again"), scores)
    store.write(circuit("and", of=model("other"), task="boolean"), scores)
    return Catalogue.of(circuitdb.open(path).circuits())


def test_the_order_is_that_of_the_answer(catalogue: Catalogue) -> None:
    assert catalogue.ids == (6, 1, 5, 2, 3, 4)


def test_labels_tell_circuits_apart(catalogue: Catalogue) -> None:
    labels = [catalogue.label(i) for i in catalogue.ids]
    assert labels == ["other/boolean/and", "tiny/addition/1+1#1", "tiny/addition/1+1#5", *(
        f"tiny/addition/{subtask}" for subtask in ("1+2", "2+1", "2+2")
    )]  # fmt: skip
    assert catalogue.label(77) == "#77"
    assert Catalogue(catalogue.entries[3:]).label(2) == "1+2"


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("", (6, 1, 5, 2, 3, 4)),
        ("TINY 1+", (1, 5, 2)),
        ("boolean", (6,)),
        ("#5", (5,)),
        ("few-shot 2+2", (4,)),
        ("tiny boolean", ()),
    ],
)
def test_every_word_must_be_there(catalogue: Catalogue, words: str, ids: tuple[int, ...]) -> None:
    assert tuple(entry.circuit_id for entry in catalogue.matching(words)) == ids


def test_the_tree_of_models_tasks_subtasks_methods(catalogue: Catalogue) -> None:
    def outline(branch: Branch) -> object:
        return (branch.name, branch.ids, [outline(b) for b in branch.branches])

    other, tiny = tree(catalogue.entries)
    assert outline(other) == ("other", (6,), [("boolean", (6,), [("and", (6,), [("eap-ig", (6,), [])])])])
    (addition,) = tiny.branches
    assert [(b.name, b.ids) for b in addition.branches] == [
        ("1+1", (1, 5)),
        ("1+2", (2,)),
        ("2+1", (3,)),
        ("2+2", (4,)),
    ]
    (method,) = addition.branches[0].branches
    assert [outline(b) for b in method.branches] == [
        ("#1 5 steps, kl, 3-shot, seed 0", (1,), []),
        ("#5 5 steps, kl, 3-shot, seed 0", (5,), []),
    ]
    assert addition.branches[0].branches[0].branches[0].path == ("tiny", "addition", "1+1", "eap-ig", "#1")


def test_the_newest_date(tmp_path: Path) -> None:
    from dataclasses import replace

    store = Store(tmp_path / "c.duckdb")
    for month in (3, 7, 5):
        record = replace(circuit(f"{month}"), started_at=datetime(2026, month, 2, 12, tzinfo=UTC))
        store.write(record, np.ones(SHAPE.n_edges, np.float32))
    (branch,) = tree(Catalogue.of(circuitdb.open(tmp_path / "c.duckdb").circuits()).entries)
    assert branch.newest is not None
    assert (branch.newest.year, branch.newest.month) == (2026, 7)
