"""Exact patching: some edges alone, chunks, positions, progress and the count of its work."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import oracle
from circuitdb.errors import UsageError
from circuitdb.graph import GraphShape
from circuitdb.ingest import EdgeScores, score_edges
from circuitdb.ingest.exact_scores import exact_work
from circuitdb.ingest.memory import Memory

if TYPE_CHECKING:
    from cases import Case


@pytest.fixture(autouse=True)
def full_precision() -> Iterator[None]:
    with oracle.full_precision():
        yield


@pytest.fixture(params=["llama-3", "gpt-neox"])
def case(request: pytest.FixtureRequest, case_of: Callable[[str], Case]) -> Case:
    return case_of(request.param)


@pytest.fixture
def llama(case_of: Callable[[str], Case]) -> Case:
    return case_of("llama-3")


def score(case: Case, **options: Any) -> EdgeScores:
    given = {"method": "exact", "metric": "logit-difference", "labels": case.labels, **options}
    return score_edges(case.engine, case.clean, case.corrupted, **given)


def test_some_edges_score_what_they_do_among_all_and_the_others_nothing(case: Case) -> None:
    everything, edges = score(case).scores, [0, 17, 60, case.shape.n_edges - 1]
    some = score(case, edges=edges, folds=2, by_example=True)
    np.testing.assert_allclose(some.scores[edges], everything[edges], rtol=0, atol=1e-12)
    others = np.delete(np.arange(case.shape.n_edges), edges)
    assert some.by_example is not None
    for scores in (some.scores[None], some.folds, some.by_example):
        assert np.isnan(scores[:, others]).all()
        assert np.isfinite(scores[:, edges]).all()
    assert some.n_nonfinite == len(others)


@pytest.mark.parametrize("edges", [[5], np.array([5, 5]), (5,), range(5, 6)], ids=["list", "twice", "tuple", "range"])
def test_edges_may_be_given_in_many_ways(llama: Case, edges: Any) -> None:
    assert np.flatnonzero(np.isfinite(score(llama, edges=edges).scores)).tolist() == [5]


@pytest.mark.parametrize("rows", [1, 3, 7, 10_000])
def test_how_many_copies_a_pass_has_does_not_matter(case: Case, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = score(case).scores
    monkeypatch.setattr(Memory, "exact_rows", lambda *_: rows)
    np.testing.assert_allclose(score(case).scores, plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize("batch_size", [1, 2])
def test_batch_size_does_not_matter(case: Case, batch_size: int) -> None:
    found, plain = score(case, batch_size=batch_size, folds=3), score(case, folds=3)
    np.testing.assert_allclose(found.scores, plain.scores, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.folds, plain.folds, rtol=0, atol=1e-12)
    np.testing.assert_allclose(plain.folds.mean(0), plain.scores, rtol=0, atol=1e-12)


def test_shared_prefix_is_exact(case: Case) -> None:
    plain = score(case, share_prefix=False).scores
    np.testing.assert_allclose(score(case).scores, plain, rtol=0, atol=1e-12 * np.abs(plain).max())


def test_scores_over_several_positions_are_those_of_the_oracle_summed(llama: Case) -> None:
    """The oracle reads the last logits alone: those at the last but one position are those of shorter prompts."""
    edges = np.arange(0, llama.shape.n_edges, 5)
    first = llama.labels.flip(1)
    before = oracle.exact(
        llama.model, llama.clean[:, :-1], llama.corrupted[:, :-1], oracle.logit_difference(first), edges
    )
    last = oracle.exact(llama.model, llama.clean, llama.corrupted, llama.metric("logit-difference"), edges)
    found = score(llama, labels=torch.stack([first, llama.labels], 1), scored=2, edges=edges).scores[edges]
    np.testing.assert_allclose(found, before + last, rtol=0, atol=1e-12)


def test_progress_rises_to_one(llama: Case) -> None:
    seen: list[float] = []
    score(llama, batch_size=2, progress=seen.append)
    assert seen == sorted(seen)
    assert len(set(seen)) > 3
    assert 0 < seen[0] < 1
    assert seen[-1] == 1


def test_progress_is_weighed_by_the_layers_an_edge_runs_through(llama: Case) -> None:
    """Two layers, four heads. Layer 0: input to 12 heads' branches, and input and 4 heads to the MLP, 17 edges of 3
    layers each; layer 1: 6 sources to 12 branches, and 10 to the MLP, 82 edges of 2; the end: 11 edges of 1."""
    seen: list[float] = []
    score(llama, progress=seen.append)
    assert seen == pytest.approx([51 / 226, (51 + 164) / 226, 1, 1], rel=1e-12)


def test_work_by_hand() -> None:
    """One layer, one head: input->a0.h0<q>, <k>, <v>, input->m0, a0.h0->m0 run through the layer and the unembedding,
    input->logits, a0.h0->logits, m0->logits through the unembedding alone."""
    shape = GraphShape(1, 1)
    assert exact_work(shape, shape.mask) == 5 * 2 + 3 * 1
    assert exact_work(GraphShape(1, 1, parallel=True), GraphShape(1, 1, parallel=True).mask) == 4 * 2 + 3 * 1
    assert exact_work(shape, np.zeros_like(shape.mask)) == 0


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([], "The edges to patch must be a list of edge ids."),
        ([1.5], "The edges to patch must be a list of edge ids."),
        ([[1, 2]], "The edges to patch must be a list of edge ids."),
        (["input->m0"], "The edges to patch must be a list of edge ids."),
        ([True, False], "The edges to patch must be a list of edge ids."),
        ([[1], [1, 2]], "The edges to patch must be a list of edge ids."),
        (7, "The edges to patch must be a list of edge ids."),
        ([-1], "The edges to patch must be ids from 0 to 109."),
        ([0, 110], "The edges to patch must be ids from 0 to 109."),
        ([2**70], "The edges to patch must be"),
    ],
)
def test_what_are_no_edges(llama: Case, edges: Any, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        score(llama, edges=edges)


@pytest.mark.parametrize("method", ["eap-ig", "eap", "clean-corrupted", "eap-ig-activations"])
def test_other_methods_score_all_edges(llama: Case, method: str) -> None:
    with pytest.raises(UsageError, match=f"{method} scores all edges at once; only exact can be asked for some of"):
        score(llama, method=method, edges=[1])
