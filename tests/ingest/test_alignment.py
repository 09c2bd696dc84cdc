"""Pairs of unequal length, each run by itself, against prompts that are really padded and masked.

The oracle pads the shorter prompts of a pair on the left, masks the padding and numbers the positions without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

import activation_paths
import architectures
import oracle
from circuitdb.errors import UsageError
from circuitdb.ingest import CircuitRunner, EdgeScores, Options, evaluate_circuits, score_edges
from circuitdb.ingest.batch import Group
from circuitdb.ingest.methods import METHODS, points
from circuitdb.ingest.metrics import METRICS
from padding import comparable, padded

if TYPE_CHECKING:
    from cases import Case

# Largest difference from the oracle, as a share of the largest score.
TOLERANCE = 1e-12
N = 3
DIFFERENCE = "logit-difference"
Scores = npt.NDArray[np.floating[Any]]


def prompts(length: int, *, n: int = N, seed: int = 0) -> Tensor:
    """Random token ids."""
    return torch.randint(1, 64, (n, length), generator=torch.Generator().manual_seed(seed + length))


SHORT, LONG = prompts(6), prompts(8)
BOTH = pytest.mark.parametrize(
    ("clean", "corrupted"), [(LONG, SHORT), (SHORT, LONG)], ids=["corrupted shorter", "clean shorter"]
)


@pytest.fixture(autouse=True)
def full_precision() -> Iterator[None]:
    with oracle.full_precision():
        yield


@pytest.fixture(params=list(architectures.CONFIGS))
def case(request: pytest.FixtureRequest, case_of: Callable[[str], Case]) -> Case:
    return case_of(request.param)


@pytest.fixture(params=["gpt2", "llama-3", "gemma-2"])
def some(request: pytest.FixtureRequest, case_of: Callable[[str], Case]) -> Case:
    return case_of(request.param)


@pytest.fixture
def gpt2(case_of: Callable[[str], Case]) -> Case:
    return case_of("gpt2")


def score(case: Case, clean: Tensor, corrupted: Tensor, **options: Any) -> EdgeScores:
    return score_edges(case.engine, clean, corrupted, align="left-pad", labels=case.labels, **options)


def measure(case: Case, clean: Tensor, metric: str) -> oracle.Metric:
    return oracle.divergence(oracle.logits(case.model, clean)) if metric == "kl" else case.metric(metric)


def assert_equal(found: Scores, expected: Scores) -> None:
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * np.abs(expected).max())


# --- every architecture ----------------------------------------------------------------------------------------------


def test_masked_padding_leaves_the_logits_as_they_are(case: Case) -> None:
    """Why leaving it out is the same, and why the oracle's runs below are those of the prompts alone."""
    short, whole = padded(SHORT, LONG)
    assert (short.n, whole.n) == (2, 0)
    for run, tokens in ((short, SHORT), (whole, LONG)):
        expected = oracle.logits(case.model, tokens)
        torch.testing.assert_close(oracle.logits(case.model, run), expected, rtol=0, atol=1e-12)
    unmasked = oracle.logits(case.model, short.tokens)
    assert float((unmasked - oracle.logits(case.model, SHORT)).abs().max()) > 1e-3


@BOTH
def test_eap_equals_the_padded_oracle(case: Case, clean: Tensor, corrupted: Tensor) -> None:
    expected = oracle.eap(case.model, *padded(clean, corrupted), measure(case, clean, DIFFERENCE))
    assert_equal(score(case, clean, corrupted, method="eap", metric=DIFFERENCE).scores, expected)


@BOTH
def test_eap_ig_equals_the_padded_oracle(case: Case, clean: Tensor, corrupted: Tensor) -> None:
    path = [(0.0, 1 / 3), (1 / 3, 1 / 3), (2 / 3, 1 / 3)]
    expected = oracle.eap(case.model, *padded(clean, corrupted), measure(case, clean, "kl"), path)
    assert_equal(score(case, clean, corrupted, grid="left", steps=3).scores, expected)


@BOTH
def test_exact_really_patches_the_padded_pair(case: Case, clean: Tensor, corrupted: Tensor) -> None:
    found = score(case, clean, corrupted, method="exact", metric="kl")
    assert_equal(found.scores, oracle.exact(case.model, *padded(clean, corrupted), measure(case, clean, "kl")))


# --- every method ----------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("metric", ["kl", DIFFERENCE])
@pytest.mark.parametrize("grid", ["right", "left", "midpoint", "gauss-legendre"])
def test_every_grid(gpt2: Case, clean: Tensor, corrupted: Tensor, grid: str, metric: str) -> None:
    path = [(p.position, p.weight) for p in points(METHODS["eap-ig"], 4, grid, METRICS[metric])]
    expected = oracle.eap(gpt2.model, *padded(clean, corrupted), measure(gpt2, clean, metric), path)
    assert_equal(score(gpt2, clean, corrupted, grid=grid, steps=4, metric=metric).scores, expected)


@BOTH
def test_clean_corrupted(some: Case, clean: Tensor, corrupted: Tensor) -> None:
    path = [(0.0, 0.5), (1.0, 0.5)]
    expected = oracle.eap(some.model, *padded(clean, corrupted), measure(some, clean, DIFFERENCE), path)
    found = score(some, clean, corrupted, method="clean-corrupted", metric=DIFFERENCE)
    assert_equal(found.scores, expected)


@BOTH
def test_activation_paths(gpt2: Case, clean: Tensor, corrupted: Tensor) -> None:
    first, second = padded(clean, corrupted)
    whole = oracle.sources(gpt2.model, second) - oracle.sources(gpt2.model, first)
    change = comparable(first, second, whole)
    expected = activation_paths.scores(gpt2.model, first, change, measure(gpt2, clean, DIFFERENCE))
    found = score(gpt2, clean, corrupted, method="eap-ig-activations", steps=1, grid="left", metric=DIFFERENCE)
    assert_equal(found.scores, expected)


@BOTH
def test_the_inputs_edges_add_up_to_its_real_replacement(some: Case, clean: Tensor, corrupted: Tensor) -> None:
    """The integral over the path of the embedding is the change between its ends, up to 0.3% with so many nodes."""
    first, second = padded(clean, corrupted)
    metric, before = measure(some, clean, DIFFERENCE), oracle.sources(some.model, first)[0]
    after = before + comparable(first, second, oracle.sources(some.model, second)[0] - before)
    with torch.no_grad():
        ends = [metric(oracle.Pass(some.model, entry=entry).run(first).logits).mean() for entry in (before, after)]
    found = score(some, clean, corrupted, steps=100, grid="gauss-legendre", metric=DIFFERENCE)
    total = float(found.scores[found.shape.edge_sources == 0].astype(np.float64).sum())
    assert abs(float(ends[1] - ends[0])) > 1e-2
    assert total == pytest.approx(float(ends[1] - ends[0]), rel=1e-2)


@BOTH
def test_the_metrics_are_those_of_the_prompts_alone(some: Case, clean: Tensor, corrupted: Tensor) -> None:
    metric = measure(some, clean, DIFFERENCE)
    expected = [float(metric(oracle.logits(some.model, tokens)).mean()) for tokens in (clean, corrupted)]
    for method in METHODS:
        found = score(some, clean, corrupted, method=method, metric=DIFFERENCE)
        assert (found.metric_clean, found.metric_corrupted) == pytest.approx(expected, rel=0, abs=1e-12)


@pytest.mark.parametrize("method", ["eap", "exact"])
@pytest.mark.parametrize("ablation", ["zero", "mean", "mean-positional"])
def test_other_ablations_know_the_corrupted_prompt_as_a_reference_alone(gpt2: Case, ablation: str, method: str) -> None:
    """Of prompts of equal length they are tested against brute force elsewhere."""
    reference = {} if ablation == "zero" else {"reference": prompts(8, seed=5)}
    options: dict[str, Any] = {"method": method, "ablation": ablation, "metric": DIFFERENCE, **reference}
    plain, unequal = (score(gpt2, LONG, other, **options) for other in (LONG.flip(0), SHORT))
    np.testing.assert_array_equal(unequal.scores, plain.scores)
    assert unequal.metric_corrupted == plain.metric_corrupted


def test_the_mean_is_over_all_tokens_of_corrupted_prompts_of_another_length(gpt2: Case) -> None:
    options = {"method": "eap", "ablation": "mean", "metric": DIFFERENCE}
    expected = score(gpt2, LONG, LONG.flip(0), reference=SHORT, **options)
    np.testing.assert_array_equal(score(gpt2, LONG, SHORT, **options).scores, expected.scores)


@BOTH
def test_more_positions_than_the_last(gpt2: Case, clean: Tensor, corrupted: Tensor) -> None:
    """What is scored at the last but one is what is scored at the last when both prompts end there."""
    at_both = torch.stack([gpt2.labels, torch.full_like(gpt2.labels, -1)], 1)
    options: dict[str, Any] = {"method": "eap", "metric": DIFFERENCE, "align": "left-pad"}
    found = score_edges(gpt2.engine, clean, corrupted, labels=at_both, scored=2, **options)
    ended = score_edges(gpt2.engine, clean[:, :-1], corrupted[:, :-1], labels=gpt2.labels, **options)
    assert_equal(found.scores, ended.scores)
    assert found.metric_corrupted == pytest.approx(ended.metric_corrupted, abs=1e-12)


# --- what must not matter --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", list(METHODS))
def test_pairs_of_equal_length_are_scored_as_ever(gpt2: Case, method: str) -> None:
    """With the beginning that they share left out, as ever."""
    options: dict[str, Any] = {"method": method, "metric": DIFFERENCE}
    plain = score_edges(gpt2.engine, gpt2.clean, gpt2.corrupted, labels=gpt2.labels, **options)
    np.testing.assert_array_equal(score(gpt2, gpt2.clean, gpt2.corrupted, **options).scores, plain.scores)


@BOTH
@pytest.mark.parametrize("batch_size", [1, 2])
def test_batches_and_order_change_rounding_alone(gpt2: Case, clean: Tensor, corrupted: Tensor, batch_size: int) -> None:
    order = torch.tensor([2, 0, 1])
    whole = score(gpt2, clean, corrupted).scores
    found = score(gpt2, clean[order], corrupted[order], batch_size=batch_size).scores
    assert_equal(found, whole)


def test_a_beginning_in_common_is_not_left_out_where_it_lies_elsewhere(gpt2: Case) -> None:
    """A header of three tokens, which stands two positions later in the longer prompts."""
    clean, corrupted = SHORT.clone(), LONG.clone()
    clean[:, :3] = corrupted[:, :3] = torch.tensor([11, 29, 7])
    expected = oracle.eap(gpt2.model, *padded(clean, corrupted), measure(gpt2, clean, DIFFERENCE))
    assert_equal(score(gpt2, clean, corrupted, method="eap", metric=DIFFERENCE).scores, expected)


@pytest.mark.parametrize("swap", [False, True])
def test_a_prompt_of_a_single_token(gpt2: Case, *, swap: bool) -> None:
    clean, corrupted = (LONG, LONG[:, -1:]) if swap else (LONG[:, -1:], LONG)
    expected = oracle.exact(gpt2.model, *padded(clean, corrupted), measure(gpt2, clean, DIFFERENCE))
    assert_equal(score(gpt2, clean, corrupted, method="exact", metric=DIFFERENCE).scores, expected)


def test_the_trial_is_on_the_longest_prompts_of_either_run(gpt2: Case) -> None:
    fold = torch.zeros(N, dtype=torch.int64)
    groups = [Group(SHORT, prompts(12), None, fold, align="left-pad"), Group(LONG, LONG.flip(0), None, fold)]
    gpt2.engine.checked.clear()  # of what other tests had scored
    Options(folds=1, steps=2).scorer(gpt2.engine).score(groups)
    assert "prompts of 6 and 12, 0 shared" in gpt2.engine.checked
    assert "prompts of 8 and 8, 0 shared" not in gpt2.engine.checked


# --- circuits --------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("metric", ["kl", DIFFERENCE])
def test_circuits_equal_the_padded_oracle(some: Case, clean: Tensor, corrupted: Tensor, metric: str) -> None:
    both, value = padded(clean, corrupted), measure(some, clean, metric)
    kept = np.random.default_rng(0).random((3, some.shape.n_edges)) < np.array([[0.2], [0.6], [0.95]])
    expected = [float(value(oracle.circuit(some.model, *both, circuit)).mean()) for circuit in kept]
    found = evaluate_circuits(some.engine, clean, corrupted, kept, metric=metric, labels=some.labels, align="left-pad")
    assert len(set(expected)) == 3
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-10)


@BOTH
def test_all_edges_are_the_clean_prompt_alone_and_none_the_corrupted(
    some: Case, clean: Tensor, corrupted: Tensor
) -> None:
    value = measure(some, clean, DIFFERENCE)
    expected = [float(value(oracle.logits(some.model, tokens)).mean()) for tokens in (clean, corrupted)]
    kept = np.stack([np.ones(some.shape.n_edges, dtype=bool), np.zeros(some.shape.n_edges, dtype=bool)])
    found = evaluate_circuits(
        some.engine, clean, corrupted, kept, metric=DIFFERENCE, labels=some.labels, align="left-pad"
    )
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-12)
    assert (found.clean, found.ablated) == pytest.approx(expected, rel=0, abs=1e-12)


def greedy(case: Case, start: Tensor, n_tokens: int) -> Tensor:
    """What the model writes after prompts."""
    seen = start
    for _ in range(n_tokens):
        seen = torch.cat([seen, oracle.logits(case.model, seen).argmax(-1)[:, None]], dim=1)
    return seen[:, start.shape[1] :]


@BOTH
def test_circuits_write_like_the_model_on_either_prompt(some: Case, clean: Tensor, corrupted: Tensor) -> None:
    runner = CircuitRunner(some.engine, batch_size=2)
    written = [greedy(some, tokens, 4).tolist() for tokens in (clean, corrupted)]
    assert written[0] != written[1]
    for kept, expected in zip((np.ones, np.zeros), written, strict=True):
        circuit = kept(some.shape.n_edges, dtype=bool)
        assert runner.generate(clean, corrupted, circuit, 4, align="left-pad").tolist() == expected


@BOTH
def test_a_part_of_the_model_writes_as_the_padded_oracle_does(gpt2: Case, clean: Tensor, corrupted: Tensor) -> None:
    kept, written = np.random.default_rng(1).random(gpt2.shape.n_edges) < 0.8, clean[:, :0]
    for _ in range(3):
        both = padded(torch.cat([clean, written], 1), torch.cat([corrupted, written], 1))
        following = oracle.circuit(gpt2.model, *both, kept).argmax(-1)
        written = torch.cat([written, following[:, None]], 1)
    found = CircuitRunner(gpt2.engine).generate(clean, corrupted, kept, 3, align="left-pad")
    assert found.tolist() == written.tolist()


def test_writing_ends_with_the_context_of_the_longer_prompt(gpt2: Case) -> None:
    clean, corrupted = torch.arange(5)[None], torch.arange(62)[None]
    circuit = np.ones(gpt2.shape.n_edges, dtype=bool)
    found = CircuitRunner(gpt2.engine).generate(clean, corrupted, circuit, 9, align="left-pad")
    assert found.shape == (1, 3)  # after 62, 63 and 64 tokens of 64


# --- refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"align": "right-pad"}, "There is no alignment 'right-pad'; choose one of equal, left-pad."),
        ({"align": None}, "There is no alignment None; choose one of equal, left-pad."),
        ({"align": "equal"}, "every pair must have equal length (or align='left-pad')."),
        ({"corrupted": SHORT[:2]}, "shape (3, 8), the corrupted (2, 6); every pair must have equal length"),
        ({"scored": 7}, "Of 6 positions a whole number from 1 up to all can be scored, not 7."),
        ({"corrupted": torch.ones(3, 65).long()}, "Prompts of 65 tokens exceed the model's context of 64."),
    ],
)
def test_what_can_not_be_is_refused_in_a_sentence(gpt2: Case, given: dict[str, Any], message: str) -> None:
    plain: dict[str, Any] = {"clean": LONG, "corrupted": SHORT, "align": "left-pad"}
    with pytest.raises(UsageError, match=re.escape(message)):
        score_edges(gpt2.engine, **{**plain, **given})
