"""Scores of single examples: each is that of its pair alone, their mean the whole; the store keeps them in order."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

import tiny_models
from circuitdb.connection import reading
from circuitdb.ingest import LoadedModel, Options, ingest, load_model, score_edges
from circuitdb.ingest.batch import Group
from circuitdb.ingest.tasks.addition import Addition
from circuitdb.store import Store

SMALL = Options(n_examples=6, shots=1, steps=2, by_example=True)
PLAIN = Options(n_examples=6, shots=1, steps=2)
Rows = npt.NDArray[np.float32]


@pytest.fixture(scope="module")
def teens(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A model whose prompts of one subtask differ in length."""
    folder = tmp_path_factory.mktemp("teens") / "tiny"
    return load_model(tiny_models.llama_folder(folder, tiny_models.teens_tokenizer(), seed=2))


def pairs(n: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    draws = torch.Generator().manual_seed(2)
    clean, corrupted = torch.randint(64, (2, n, 7), generator=draws)
    return clean, corrupted


def stored(path: Path, circuit: int = 1) -> dict[int, Rows]:
    """Position to scores [n_edges]."""
    with reading(path) as connection:
        rows = connection.execute(
            "SELECT position, list(score ORDER BY edge_id), list(edge_id ORDER BY edge_id) FROM example_score "
            "WHERE circuit_id = ? GROUP BY position ORDER BY position",
            [circuit],
        ).fetchall()
    assert all(ids == list(range(len(ids))) for _, _, ids in rows)
    return {position: np.array(scores, np.float32) for position, scores, _ in rows}


@pytest.mark.parametrize("method", ["eap-ig", "clean-corrupted", "eap-ig-activations", "exact"])
@pytest.mark.parametrize("batch_size", [None, 2])
def test_rows_are_the_scores_of_single_pairs(gqa: LoadedModel, method: str, batch_size: int | None) -> None:
    clean, corrupted = pairs()
    steps = 2 if "ig" in method else None
    found = score_edges(
        gqa, clean, corrupted, method=method, steps=steps, folds=2, by_example=True, batch_size=batch_size
    )
    assert found.by_example is not None
    for i in range(5):
        alone = score_edges(gqa, clean[i : i + 1], corrupted[i : i + 1], method=method, steps=steps).scores
        np.testing.assert_allclose(found.by_example[i], alone, rtol=0, atol=1e-6 * np.abs(alone).max())
    scale = np.abs(found.scores).max()
    np.testing.assert_allclose(found.by_example.mean(0), found.scores, rtol=0, atol=1e-6 * scale)
    for fold in (0, 1):
        np.testing.assert_allclose(found.by_example[fold::2].mean(0), found.folds[fold], rtol=0, atol=1e-6 * scale)


def test_folds_that_are_not_in_order_leave_the_examples_in_theirs(gqa: LoadedModel) -> None:
    clean, corrupted = pairs()
    scorer = SMALL.scorer(gqa)
    found = scorer.score([Group(clean, corrupted, None, torch.tensor([1, 0, 1, 1, 0]))])
    alone = [score_edges(gqa, clean[i : i + 1], corrupted[i : i + 1], steps=2).scores for i in range(5)]
    assert found.by_example is not None
    np.testing.assert_allclose(found.by_example, alone, rtol=0, atol=1e-6 * np.abs(alone).max())


def test_without_the_option_there_are_none(gqa: LoadedModel) -> None:
    assert score_edges(gqa, *pairs(), steps=2).by_example is None


def test_the_whole_is_the_same_with_and_without(gqa: LoadedModel) -> None:
    with_them, without = (score_edges(gqa, *pairs(), folds=2, by_example=b) for b in (True, False))
    scale = np.abs(without.scores).max()
    np.testing.assert_allclose(with_them.scores, without.scores, rtol=0, atol=1e-6 * scale)
    np.testing.assert_allclose(with_them.folds, without.folds, rtol=0, atol=1e-6 * scale)


def test_mixed_lengths_are_stored_with_the_right_example(teens: LoadedModel, tmp_path: Path) -> None:
    """Groups of one length are scored one after the other; the rows go back to the order of the questions."""
    path, options = tmp_path / "c.duckdb", Options(n_examples=20, shots=0, steps=2, folds=1, by_example=True)
    ingest(Store(path), teens, Addition((2,)), options)
    with reading(path) as connection:
        examples = connection.execute(
            "SELECT position, clean_ids, corrupted_ids FROM example WHERE used ORDER BY position"
        ).fetchall()
        whole = connection.execute("SELECT score FROM edge_score ORDER BY edge_id").fetchnumpy()["score"]
    lengths = [len(clean) for _, clean, _ in examples]
    assert len(Counter(lengths)) > 1
    assert lengths != sorted(lengths)
    rows = stored(path)
    assert list(rows) == [position for position, _, _ in examples]
    for position, clean, corrupted in examples:
        alone = score_edges(teens, torch.tensor([clean]), torch.tensor([corrupted]), steps=2).scores
        # float32, and the others of its length were in the same matrix products
        np.testing.assert_allclose(rows[position], alone, rtol=0, atol=1e-5 * np.abs(alone).max())
    mean = np.mean(list(rows.values()), axis=0)
    np.testing.assert_allclose(mean, whole, rtol=0, atol=1e-6 * np.abs(whole).max())


def test_a_skipped_example_has_no_rows(teens: LoadedModel, tmp_path: Path) -> None:
    path = tmp_path / "c.duckdb"
    options = Options(n_examples=40, shots=0, steps=2, folds=1, by_example=True)
    (outcome,) = ingest(Store(path), teens, Addition((2,)), options)
    with reading(path) as connection:
        (skipped,) = connection.execute("SELECT position FROM example WHERE NOT used").fetchall()
    assert outcome.n_skipped == 1
    assert len(stored(path)) == 39
    assert skipped[0] not in stored(path)


def test_a_circuit_stored_without_them_is_given_them(digits_model: LoadedModel, tmp_path: Path) -> None:
    store, task = Store(tmp_path / "c.duckdb"), Addition((1,))
    ingest(store, digits_model, task, PLAIN)
    assert (len(store.finished()), store.finished(by_example=True)) == (1, {})
    (again,) = ingest(store, digits_model, task, SMALL)
    assert (again.status, again.circuit_id) == ("stored", 1)
    with reading(tmp_path / "c.duckdb") as connection:
        used = connection.execute("SELECT position FROM example WHERE used ORDER BY position").fetchall()
    assert list(stored(tmp_path / "c.duckdb", 1)) == [position for (position,) in used] != []
    assert store.finished(by_example=True) == store.finished()
    assert list(store.finished().values()) == [1]
    for options in (SMALL, PLAIN):  # both find what they want
        (kept,) = ingest(store, digits_model, task, options)
        assert (kept.status, kept.circuit_id) == ("kept", 1)
    (replaced,) = ingest(store, digits_model, task, PLAIN, replace=True)
    assert (replaced.status, replaced.circuit_id) == ("stored", 2)
    with reading(tmp_path / "c.duckdb") as connection:
        assert connection.execute("SELECT count(*) FROM example_score").fetchall() == [(0,)]
        assert connection.execute("SELECT circuit_id FROM circuit").fetchall() == [(2,)]


def test_the_scores_are_the_same_whether_they_are_kept_or_not(digits_model: LoadedModel, tmp_path: Path) -> None:
    """Nothing of the spec changes: the circuit is one."""
    digests = []
    for name, options in (("plain", PLAIN), ("single", SMALL)):
        ingest(Store(tmp_path / name), digits_model, Addition((1,)), options)
        with reading(tmp_path / name) as connection:
            digests.append(connection.execute("SELECT spec_digest, n_examples FROM circuit").fetchall())
    assert digests[0] == digests[1]
