"""Stored circuits that are not run: impossible sizes, other models, ways that do not cross, what is not known here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny_models
from circuitdb.connection import reading
from circuitdb.errors import UsageError
from circuitdb.ingest import Cuts, LoadedModel, Options, ingest, load_model, metrics, register_metric, run_faithfulness
from circuitdb.ingest.tasks.addition import Addition
from circuitdb.records import Example
from circuitdb.store import Store
from stores import circuit

SMALL = Options(n_examples=6, shots=1, steps=2, folds=1)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "c.duckdb")


def runs(store: Store) -> list[tuple[int, float, float | None]]:
    """Circuit, share and accuracy of all stored runs."""
    with reading(store.path) as connection:
        return connection.execute("SELECT circuit_id, share, accuracy FROM faithfulness ORDER BY 1, 2").fetchall()


@pytest.mark.parametrize("shares", [(), (1.5,), (-0.1,), (0.1, float("nan")), ("a",), 0.5, "1", (True,), {0.1: 1}])
def test_impossible_sizes(shares: Any) -> None:
    with pytest.raises(UsageError, match="The sizes of circuits are shares of all edges, from 0 to 1, not"):
        Cuts(shares)


def test_other_weights_and_other_types_are_refused(digits_model: LoadedModel, store: Store, tmp_path: Path) -> None:
    ingest(store, digits_model, Addition((1,)), SMALL)
    other = tiny_models.llama_folder(tmp_path / "other", tiny_models.digit_tokenizer(), seed=1)
    same = tiny_models.llama_folder(tmp_path / "tiny", tiny_models.digit_tokenizer())
    for model in (load_model(other, name="tiny"), load_model(same, dtype="bfloat16")):
        with pytest.raises(UsageError, match=r"another model, revision or type than tiny as .* can't be run: 1"):
            run_faithfulness(store, model, [1], Cuts((1.0,)))
    assert run_faithfulness(store, load_model(same), [1], Cuts((1.0,))) == 1


def test_circuits_of_other_models_are_left_out_and_it_is_said(
    digits_model: LoadedModel, store: Store, tmp_path: Path
) -> None:
    ingest(store, digits_model, Addition((1,)), SMALL)
    other = load_model(tiny_models.llama_folder(tmp_path / "other", tiny_models.digit_tokenizer(), seed=1))
    ingest(store, other, Addition((1,)), SMALL)
    heard: list[str] = []

    class Listener:
        def skipped(self, reason: str) -> None:
            heard.append(reason)

        def progress(self, n_done: float, n_pairs: int, what: str) -> None:
            heard.append(what)

    assert run_faithfulness(store, other, [1, 2], Cuts((1.0,)), watcher=Listener()) == 1
    assert heard[0] == (
        f"Circuits that were scored in another model, revision or type than {other.record.name} as float32 are left "
        "out: 1."
    )
    assert [circuit_id for circuit_id, _, _ in runs(store)] == [2]


def test_one_that_can_not_be_run_does_not_keep_others_from_it(digits_model: LoadedModel, store: Store) -> None:
    ingest(store, digits_model, Addition((1,)), SMALL)
    store.write(circuit(of=digits_model.record), np.zeros(110, np.float32), examples=[Example("1+1", n_tokens=3)])
    assert run_faithfulness(store, digits_model, [1, 2], Cuts((0.5, 0.5, 1.0))) == 1
    assert [run[:2] for run in runs(store)] == [(1, 0.5), (1, 1.0)]  # each size once


def test_circuits_scored_in_different_ways_do_not_cross(digits_model: LoadedModel, store: Store) -> None:
    ingest(store, digits_model, Addition((1,)), SMALL)
    ingest(store, digits_model, Addition((1,)), replace(SMALL, positions="answer"))
    ingest(store, digits_model, Addition((1,)), replace(SMALL, metric="nll"))
    with pytest.raises(UsageError, match=r"Circuits of different positions \(answer, last\) can't be run across"):
        run_faithfulness(store, digits_model, [1, 2], Cuts((1.0,)), across=True)
    with pytest.raises(UsageError, match=r"Circuits of different metric \(kl, nll\) can't be run across"):
        run_faithfulness(store, digits_model, [1, 3], Cuts((1.0,)), across=True)
    assert runs(store) == []
    assert run_faithfulness(store, digits_model, [1, 2, 3], Cuts((1.0,))) == 3


def test_another_metric_of_the_same_name_is_refused(digits_model: LoadedModel, store: Store) -> None:
    before = dict(metrics.METRICS)
    try:
        register_metric("mine", lambda logits, clean, labels: logits.sum((1, 2)))
        ingest(store, digits_model, Addition((1,)), replace(SMALL, metric="mine"))
        register_metric("mine", lambda logits, clean, labels: 2 * logits.sum((1, 2)))
        with pytest.raises(UsageError, match="a metric mine that is not registered here can't be run: 1"):
            run_faithfulness(store, digits_model, [1], Cuts((1.0,)))
    finally:
        metrics.METRICS.clear()
        metrics.METRICS.update(before)


def test_answers_of_a_task_of_ones_own_need_its_reader(digits_model: LoadedModel, store: Store) -> None:
    task = Addition((1,), name="sums")
    ingest(store, digits_model, task, SMALL)
    with pytest.raises(UsageError, match="How answers of sums are read is not known here"):
        run_faithfulness(store, digits_model, [1], Cuts((1.0,), generate=True))
    given = {"sums": task.read_answer}
    assert run_faithfulness(store, digits_model, [1], Cuts((1.0,), generate=True), readers=given) == 1
    with reading(store.path) as connection:
        ((accuracy,),) = connection.execute("SELECT value FROM evaluation WHERE metric = 'accuracy'").fetchall()
    assert runs(store) == [(1, 1.0, accuracy)]  # no question was skipped


def test_circuits_without_token_ids_or_that_are_not_there_are_refused(digits_model: LoadedModel, store: Store) -> None:
    store.write(circuit(of=digits_model.record), np.zeros(110, np.float32), examples=[Example("1+1", n_tokens=3)])
    with pytest.raises(UsageError, match=r"stored without the token ids of their examples .* can't be run: 1\."):
        run_faithfulness(store, digits_model, [1], Cuts((1.0,)))
    with pytest.raises(UsageError, match="There is no circuit 2"):
        run_faithfulness(store, digits_model, [2], Cuts((1.0,)))


def test_a_metric_that_is_not_known_here_is_refused(digits_model: LoadedModel, store: Store) -> None:
    example = Example("1", "2", n_tokens=2, clean_ids=(1, 2), corrupted_ids=(1, 3), labels=((1, 2),))
    record = replace(circuit(of=digits_model.record), metric="mine")
    store.write(record, np.zeros(110, np.float32), examples=[example])
    with pytest.raises(UsageError, match="a metric mine that is not registered here can't be run: 1"):
        run_faithfulness(store, digits_model, [1], Cuts((1.0,)))
