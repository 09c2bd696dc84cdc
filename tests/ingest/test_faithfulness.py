"""Stored circuits that are cut and run: curves, selections, across conditions, going on, gaps, ties, answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tiny_models
from circuitdb.connection import reading
from circuitdb.errors import ScoreError
from circuitdb.ingest import (
    Cuts,
    LoadedModel,
    Options,
    evaluate_circuits,
    ingest,
    load_model,
    run_faithfulness,
)
from circuitdb.ingest.circuits import CircuitRunner
from circuitdb.ingest.tasks.addition import Addition
from circuitdb.ingest.tasks.task import Question
from circuitdb.records import Example, Faithfulness
from circuitdb.store import Store
from circuitdb.stored import read_circuit
from stores import circuit

SMALL = Options(n_examples=6, shots=1, steps=2, folds=1)
SHARES = (0.0, 0.1, 0.5, 1.0)
COLUMNS = (
    "circuit_id", "data_circuit_id", "share", "n_edges", "n_tied", "selection", "ablation", "metric", "value", "clean",
    "corrupted", "faithfulness", "reason", "n_examples", "accuracy",
)  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "c.duckdb")


def rows(store: Store) -> list[dict[str, Any]]:
    """All stored runs, by circuit, data and share."""
    with reading(store.path) as connection:
        found = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM faithfulness ORDER BY 1, 2, 3").fetchall()
    return [dict(zip(COLUMNS, row, strict=True)) for row in found]


def values(store: Store, model: LoadedModel, circuit_id: int, data: int, ranked_by: Any) -> list[float]:
    """The mean metric of each cut by the plain function, edges ranked by a function of their scores, largest first."""
    cut, on = read_circuit(store.path, circuit_id), read_circuit(store.path, data)
    order = sorted(range(len(cut.scores)), key=lambda i: (-ranked_by(float(cut.scores[i])), i))
    kept = np.zeros((len(SHARES), len(order)), dtype=bool)
    for row, share in zip(kept, SHARES, strict=True):
        row[order[: int(share * len(order))]] = True
    clean, corrupted, labels = (
        torch.tensor([getattr(e, name) for e in on.examples]) for name in ("clean", "corrupted", "labels")
    )
    found: list[float] = evaluate_circuits(
        model, clean, corrupted, kept, metric=cut.metric, labels=labels, ablation=cut.ablation
    ).values.tolist()
    return found


def test_a_curve_by_hand(digits_model: LoadedModel, store: Store) -> None:
    ingest(store, digits_model, Addition((1,)), SMALL)
    assert run_faithfulness(store, digits_model, [1], Cuts(SHARES)) == 1
    found = rows(store)
    expected = values(store, digits_model, 1, 1, abs)
    assert [row["value"] for row in found] == pytest.approx(expected, rel=1e-6, abs=1e-7)
    corrupted, clean = expected[0], expected[-1]
    for row, value, share in zip(found, expected, SHARES, strict=True):
        assert (row["share"], row["n_edges"], row["n_tied"]) == (share, int(share * 110), 0)
        assert (row["clean"], row["corrupted"]) == pytest.approx((clean, corrupted), rel=1e-6, abs=1e-7)
        assert row["faithfulness"] == pytest.approx((value - corrupted) / (clean - corrupted), rel=1e-5, abs=1e-6)
        assert [row[key] for key in ("circuit_id", "data_circuit_id", "selection", "ablation", "metric")] == [
            1, 1, "top-absolute", "patching", "kl",
        ]  # fmt: skip
        assert (row["reason"], row["accuracy"]) == (None, None)
    with reading(store.path) as connection:
        kept = connection.execute("SELECT n_examples, metric_clean, metric_corrupted FROM circuit").fetchall()
    assert {row["n_examples"] for row in found} == {kept[0][0]}
    assert (found[0]["clean"], found[0]["corrupted"]) == pytest.approx(kept[0][1:], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("metric", "sign"), [("kl", 1), ("nll", 1), ("logit-difference", -1), ("prob-difference", -1)])
def test_signed_cuts_keep_what_makes_the_metric_worse(
    digits_model: LoadedModel, store: Store, metric: str, sign: int
) -> None:
    """Ablating an edge that matters raises KL, and lowers a difference."""
    ingest(store, digits_model, Addition((2,)), replace(SMALL, metric=metric, n_examples=12))
    run_faithfulness(store, digits_model, [1], Cuts(SHARES, signed=True))
    found = rows(store)
    assert {row["selection"] for row in found} == {"top-signed"}
    expected = values(store, digits_model, 1, 1, lambda score: sign * score)
    assert [row["value"] for row in found] == pytest.approx(expected, rel=1e-5, abs=1e-6)
    other = values(store, digits_model, 1, 1, lambda score: -sign * score)
    assert abs(other[2] - expected[2]) > 1e-2 * abs(expected[2])


@pytest.mark.parametrize("ablation", ["zero", "mean", "mean-positional"])
def test_circuits_are_run_under_the_ablation_they_were_scored_under(
    digits_model: LoadedModel, store: Store, ablation: str
) -> None:
    options = replace(SMALL, method="eap", steps=None, grid=None, metric="nll", ablation=ablation)
    ingest(store, digits_model, Addition((1,)), options)
    run_faithfulness(store, digits_model, [1], Cuts(SHARES))
    found = rows(store)
    assert {row["ablation"] for row in found} == {ablation}
    assert [row["value"] for row in found] == pytest.approx(values(store, digits_model, 1, 1, abs), rel=1e-5)
    assert [found[0]["faithfulness"], found[-1]["faithfulness"]] == pytest.approx([0, 1], abs=1e-4)  # in float32
    with reading(store.path) as connection:
        (ends,) = connection.execute("SELECT metric_clean, metric_corrupted FROM circuit").fetchall()
    assert (found[0]["clean"], found[0]["corrupted"]) == pytest.approx(ends, rel=1e-5)


def test_prompts_of_several_lengths_and_answers_of_several_tokens(tmp_path: Path, store: Store) -> None:
    model = load_model(tiny_models.llama_folder(tmp_path / "tiny", tiny_models.teens_tokenizer(), seed=2))
    options = Options(n_examples=20, shots=0, steps=2, folds=1, metric="nll", positions="answer")
    ingest(store, model, Addition((2,)), options)
    run_faithfulness(store, model, [1], Cuts((0.0, 1.0)))
    with reading(store.path) as connection:
        ((n, clean, corrupted),) = connection.execute(
            "SELECT n_examples, metric_clean, metric_corrupted FROM circuit"
        ).fetchall()
        lengths = connection.execute("SELECT count(DISTINCT len(clean_ids)) FROM example WHERE used").fetchall()
    assert lengths[0][0] > 1
    empty, full = rows(store)
    assert (empty["n_examples"], full["n_examples"]) == (n, n)
    assert (full["value"], empty["value"]) == pytest.approx((clean, corrupted), rel=1e-5)


# --- across ----------------------------------------------------------------------------------------------------------


def test_across_is_each_circuit_on_the_examples_of_all(digits_model: LoadedModel, store: Store) -> None:
    ingest(store, digits_model, Addition((1, 2)), SMALL)
    heard: list[tuple[float, int, str]] = []

    class Listener:
        def skipped(self, reason: str) -> None:
            raise AssertionError(reason)

        def progress(self, n_done: float, n_pairs: int, what: str) -> None:
            heard.append((n_done, n_pairs, what))

    assert run_faithfulness(store, digits_model, [1, 4], Cuts(SHARES), across=True, watcher=Listener()) == 4
    found = rows(store)
    pairs = [(row["circuit_id"], row["data_circuit_id"]) for row in found[:: len(SHARES)]]
    assert pairs == [(1, 1), (1, 4), (4, 1), (4, 4)]
    for i, (cut, data) in enumerate(pairs):
        part = found[i * len(SHARES) : (i + 1) * len(SHARES)]
        expected = values(store, digits_model, cut, data, abs)
        assert [row["value"] for row in part] == pytest.approx(expected, rel=1e-5, abs=1e-8)
    assert list(dict.fromkeys(what for _, _, what in heard)) == ["1+1 on 1+1", "2+2 on 1+1", "1+1 on 2+2", "2+2 on 2+2"]
    assert [n_done for n_done, _, _ in heard] == sorted(n_done for n_done, _, _ in heard)
    assert (heard[0][0], heard[-1][0]) == (0, 4)
    assert {n_pairs for _, n_pairs, _ in heard} == {4}


# --- going on --------------------------------------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many circuits each call of the runner got."""
    plain, calls = CircuitRunner.evaluate, []

    def evaluate(self: CircuitRunner, groups: Any, circuits: Any, *more: Any, **named: Any) -> Any:
        calls.append(len(circuits))
        return plain(self, groups, circuits, *more, **named)

    monkeypatch.setattr(CircuitRunner, "evaluate", evaluate)
    return calls


def test_nothing_is_run_twice(digits_model: LoadedModel, store: Store, counted: list[int]) -> None:
    ingest(store, digits_model, Addition((1, 2)), SMALL)
    assert run_faithfulness(store, digits_model, [1, 2], Cuts(SHARES)) == 2
    before = rows(store)
    assert run_faithfulness(store, digits_model, [2, 1], Cuts(SHARES[1:])) == 0
    assert rows(store) == before
    assert run_faithfulness(store, digits_model, [1, 2], Cuts(SHARES), across=True) == 2
    assert run_faithfulness(store, digits_model, [1], Cuts((0.25,))) == 1
    assert run_faithfulness(store, digits_model, [1], Cuts((0.25,), signed=True)) == 1
    assert counted == [4, 4, 4, 4, 1, 1]
    assert len(rows(store)) == 18


def test_stopped_between_two_pairs_it_goes_on_with_the_second(
    digits_model: LoadedModel, store: Store, counted: list[int]
) -> None:
    ingest(store, digits_model, Addition((1, 2)), SMALL)

    class Stop:
        def skipped(self, reason: str) -> None:
            raise AssertionError(reason)

        def progress(self, n_done: float, n_pairs: int, what: str) -> None:
            if n_done > 1:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_faithfulness(store, digits_model, [1, 2, 3], Cuts(SHARES), watcher=Stop())
    assert {row["circuit_id"] for row in rows(store)} == {1}
    counted.clear()
    assert run_faithfulness(store, digits_model, [1, 2, 3], Cuts(SHARES)) == 2
    assert counted == [4, 4]
    assert [row["circuit_id"] for row in rows(store)] == [1] * 4 + [2] * 4 + [3] * 4


def test_a_circuit_that_is_replaced_loses_its_runs_and_those_on_its_examples(
    digits_model: LoadedModel, store: Store
) -> None:
    ingest(store, digits_model, Addition((1, 2)), SMALL)
    run_faithfulness(store, digits_model, [1, 4], Cuts((1.0,)), across=True)
    (replaced,) = ingest(store, digits_model, Addition((1,)), SMALL, replace=True)
    assert replaced.circuit_id == 5
    assert [(row["circuit_id"], row["data_circuit_id"]) for row in rows(store)] == [(4, 4)]


def test_a_circuit_that_is_gone_by_now(store: Store) -> None:
    store.write(circuit(), np.zeros(75, np.float32))
    row = Faithfulness(1, 9, 0.1, 7, 0, "top-absolute", "patching", "kl", 1.0, 0.0, 2.0, 0.5, None, 4)
    with pytest.raises(ScoreError, match="Circuit 9 was replaced while it was being run; run it again"):
        store.write_faithfulness([row])
    assert rows(store) == []


# --- gaps, ties, missing scores --------------------------------------------------------------------------------------


def by_hand(
    store: Store, model: LoadedModel, scores: np.ndarray[Any, np.dtype[np.float32]], corrupted: tuple[int, ...]
) -> int:
    """A stored circuit with these scores and one example, whose clean prompt is 1, 2, 3, 4."""
    example = Example("12+3", "x", "4", "5", n_tokens=4, fold=0, clean_ids=(1, 2, 3, 4), corrupted_ids=corrupted,
                      labels=((4, 5),))  # fmt: skip
    return store.write(circuit(of=model.record), scores, examples=[example])


def test_without_a_gap_there_is_no_faithfulness_and_the_reason_is_kept(digits_model: LoadedModel, store: Store) -> None:
    by_hand(store, digits_model, np.arange(110, dtype=np.float32), (1, 2, 3, 4))
    run_faithfulness(store, digits_model, [1], Cuts((0.1, 1.0)))
    for row in rows(store):
        assert row["faithfulness"] is None
        assert row["reason"] == "ablating every edge does not change the metric"
        assert (row["clean"], row["corrupted"]) == (0.0, 0.0)
        assert row["value"] == pytest.approx(0, abs=1e-6)  # float32


def test_ties_are_counted_and_edges_without_a_score_come_last(digits_model: LoadedModel, store: Store) -> None:
    """Twenty edges score 2, ten -3, the others nothing: of 22 edges ten score -3 and twelve of twenty 2."""
    scores = np.full(110, np.nan, np.float32)
    scores[40:60], scores[70:80] = 2, -3
    by_hand(store, digits_model, scores, (5, 6, 7, 8))
    run_faithfulness(store, digits_model, [1], Cuts((0.2, 1.0)))
    part, whole = rows(store)
    assert (part["n_edges"], part["n_tied"]) == (22, 8)
    kept = np.zeros((1, 110), dtype=bool)
    kept[0, [*range(70, 80), *range(40, 52)]] = True
    expected = evaluate_circuits(digits_model, torch.tensor([[1, 2, 3, 4]]), torch.tensor([[5, 6, 7, 8]]), kept)
    assert part["value"] == pytest.approx(float(expected.values[0]), rel=1e-5)
    assert (whole["n_edges"], whole["faithfulness"]) == (110, pytest.approx(1, abs=1e-6))


# --- answers ---------------------------------------------------------------------------------------------------------


class Known(Addition):
    """Sums whose right answer is what the model writes, but for the last two."""

    def __init__(self, model: LoadedModel) -> None:
        super().__init__((1,))
        written: dict[str, str] = {}
        assert model.tokenizer is not None
        for i in range(81):
            prompt = f"{1 + i // 9} + {1 + i % 9} ="
            ids = torch.tensor([model.tokenizer(prompt, add_special_tokens=False)["input_ids"]])
            with torch.no_grad():
                token = str(model.tokenizer.convert_ids_to_tokens(int(model.bridge(ids)[0, -1].argmax())))
            if token[0] == " " and token[1:].isdigit() and token[1:] not in written.values():
                written[prompt] = token[1:]
        found = [Question(prompt, answer) for prompt, answer in written.items()][:6]
        assert len(found) == 6
        wrong = [replace(q, answer=str(198 + i)) for i, q in enumerate(found[4:])]
        object.__setattr__(self, "drawn", [*found[:4], *wrong])

    def questions(self, *_: Any) -> list[Question]:
        drawn: list[Question] = self.drawn  # type: ignore[attr-defined]
        return drawn


def test_the_whole_circuit_is_as_often_right_as_the_model(words_model: LoadedModel, store: Store) -> None:
    """And with no edge it writes what follows the corrupted prompts, which is never right here."""
    (outcome,) = ingest(store, words_model, Known(words_model), replace(SMALL, shots=0))
    assert (outcome.accuracy, outcome.n_examples) == (4 / 6, 6)
    cuts = Cuts((0.0, 1.0), generate=True)
    assert run_faithfulness(store, words_model, [1], cuts) == 1
    assert [row["accuracy"] for row in rows(store)] == [0, 4 / 6]
    assert run_faithfulness(store, words_model, [1], cuts) == 0


def test_answers_that_were_not_counted_are_still_missing(words_model: LoadedModel, store: Store) -> None:
    ingest(store, words_model, Known(words_model), replace(SMALL, shots=0))
    assert run_faithfulness(store, words_model, [1], Cuts((1.0,))) == 1
    assert run_faithfulness(store, words_model, [1], Cuts((1.0,), generate=True)) == 1
    assert [row["accuracy"] for row in rows(store)] == [4 / 6]
