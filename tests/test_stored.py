"""A circuit that is written is read back with all that running it takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from circuitdb.errors import MissingDatabase, UsageError
from circuitdb.graph import GraphShape
from circuitdb.records import Example, Faithfulness
from circuitdb.store import Store
from circuitdb.stored import StoredExample, read_circuit
from stores import circuit, model

SHAPE = GraphShape(1, 2, parallel=True)
USED = [
    Example("1+2=", "1+3=", "3", "4", n_tokens=2, fold=0, clean_ids=(1, 2, 3), corrupted_ids=(1, 4, 3),
            labels=((3, 4), (5, -1))),
    Example("9=", "8=", None, n_tokens=3, fold=1, clean_ids=(7, 8, 9), corrupted_ids=(7, 8, 6), labels=((1, 2),)),
]  # fmt: skip
SKIPPED = Example("0", answer="0", n_tokens=1, reason="no partner", clean_ids=(5,))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "c.duckdb")


def write(store: Store, examples: list[Example], salt: str = "") -> int:
    scores = np.linspace(-1, 1, SHAPE.n_edges, dtype=np.float32)
    scores[3] = np.nan
    record = replace(circuit("1+1", of=model("two", SHAPE), salt=salt), ablation="mean", metric="nll")
    return store.write(record, scores, examples=examples)


def test_all_of_it_comes_back(store: Store) -> None:
    write(store, [USED[0]], salt="another")
    found = read_circuit(store.path, write(store, [USED[0], SKIPPED, USED[1]]))
    assert (found.circuit_id, found.model, found.weights_digest) == (2, "two", "digest of two")
    assert (found.task, found.subtask, found.metric, found.ablation) == ("addition", "1+1", "nll", "mean")
    assert found.shape == SHAPE
    assert found.scores.dtype == np.float32
    expected = np.linspace(-1, 1, SHAPE.n_edges, dtype=np.float32)
    expected[3] = np.nan
    np.testing.assert_array_equal(found.scores, expected)
    assert found.examples == (
        StoredExample((1, 2, 3), (1, 4, 3), ((3, 4), (5, -1)), 2, "3"),
        StoredExample((7, 8, 9), (7, 8, 6), ((1, 2),), 3, None),
    )


@pytest.mark.parametrize(
    "examples",
    [[], [SKIPPED], [Example("1+2=", "1+3=", "3", "4", n_tokens=2)], [USED[0], replace(USED[1], corrupted_ids=None)]],
    ids=["none", "only skipped", "without ids", "one without"],
)
def test_without_token_ids_it_can_not_be_run(store: Store, examples: list[Example]) -> None:
    write(store, examples)
    assert read_circuit(store.path, 1).examples == ()


def test_without_labels_it_can_not_be_run(store: Store) -> None:
    write(store, [replace(USED[0], labels=None)])
    assert read_circuit(store.path, 1).examples == ()


def test_no_such_circuit(store: Store) -> None:
    write(store, USED)
    with pytest.raises(UsageError, match=r"There is no circuit 9 in .*c\.duckdb"):
        read_circuit(store.path, 9)
    with pytest.raises(MissingDatabase):
        read_circuit(Path(store.path).with_name("none.duckdb"), 1)


# --- runs of circuits ------------------------------------------------------------------------------------------------


def run(share: float, *, data: int = 1, selection: str = "top-absolute", accuracy: float | None = None) -> Faithfulness:
    return Faithfulness(
        circuit_id=1, data_circuit_id=data, share=share, n_edges=2, n_tied=0, selection=selection, ablation="mean",
        metric="nll", value=1.0, clean=2.0, corrupted=0.0, faithfulness=0.5, reason=None, n_examples=2,
        accuracy=accuracy,
    )  # fmt: skip


def test_which_runs_are_there(store: Store) -> None:
    write(store, USED)
    write(store, USED, salt="another")
    assert store.faithful("top-absolute") == set()
    store.write_faithfulness([run(0.1), run(0.5, accuracy=0.25), run(0.1, data=2), run(1.0, selection="top-signed")])
    assert store.faithful("top-absolute") == {(1, 1, 0.1), (1, 1, 0.5), (1, 2, 0.1)}
    assert store.faithful("top-absolute", answered=True) == {(1, 1, 0.5)}
    assert store.faithful("top-signed") == {(1, 1, 1.0)}


def test_a_run_takes_the_place_of_an_earlier_one_alone(store: Store) -> None:
    write(store, USED)
    store.write_faithfulness([run(0.1), run(0.5), run(0.1, selection="top-signed")])
    store.write_faithfulness([run(0.1, accuracy=0.75)])
    assert store.faithful("top-absolute") == {(1, 1, 0.1), (1, 1, 0.5)}
    assert store.faithful("top-absolute", answered=True) == {(1, 1, 0.1)}
    assert store.faithful("top-signed") == {(1, 1, 0.1)}
