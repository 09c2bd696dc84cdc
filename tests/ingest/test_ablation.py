"""Scores under zero and mean ablation, against brute force: what a target reads is moved by (value - source output)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

import activation_paths
import oracle
from circuitdb.errors import UsageError
from circuitdb.ingest import EdgeScores, score_edges

if TYPE_CHECKING:
    from cases import Case

ABLATIONS = ["zero", "mean", "mean-positional"]
# Largest difference from brute force, as a share of the largest score.
TOLERANCE = 1e-12
Scores = npt.NDArray[np.float64]


@pytest.fixture(autouse=True)
def full_precision() -> Iterator[None]:
    with oracle.full_precision():
        yield


@pytest.fixture(params=["gpt2", "llama-3", "gemma-2"])
def case(request: pytest.FixtureRequest, case_of: Callable[[str], Case]) -> Case:
    return case_of(request.param)


@pytest.fixture
def gpt2(case_of: Callable[[str], Case]) -> Case:
    return case_of("gpt2")


def score(case: Case, method: str, ablation: str, **options: Any) -> EdgeScores:
    return score_edges(
        case.engine, case.clean, case.corrupted, method=method, ablation=ablation, metric="logit-difference",
        labels=case.labels, **options,
    )  # fmt: skip


def ablated(case: Case, ablation: str, reference: Tensor) -> Tensor:
    """What each source writes when ablated, [source, 1, pos, d_model]."""
    written = oracle.sources(case.model, reference)
    by_position = written.mean(1, keepdim=True)
    mean = by_position.mean(2, keepdim=True).expand_as(by_position)
    return {"zero": torch.zeros_like(mean), "mean": mean, "mean-positional": by_position}[ablation]


def brute_eap(case: Case, values: Tensor) -> Scores:
    """<value - source output, gradient at the target>, by autograd on the plain model."""
    difference = values - oracle.sources(case.model, case.clean)
    entry = oracle.sources(case.model, case.clean)[0].requires_grad_()
    run = oracle.Pass(case.model, entry=entry).run(case.clean)
    gradients = torch.cat(torch.autograd.grad(case.metric("logit-difference")(run.logits).sum(), run.reads))
    cells = torch.einsum("ubpd,vbpd->uv", difference, gradients) / len(case.clean)
    return np.asarray(cells.numpy()[case.shape.mask])


@torch.no_grad()
def brute_exact(case: Case, values: Tensor, edges: npt.NDArray[np.int64]) -> Scores:
    """The metric's mean change when one target's stream is moved by (value - source output), edge by edge."""
    difference = values - oracle.sources(case.model, case.clean)
    metric = case.metric("logit-difference")
    plain, found = metric(oracle.logits(case.model, case.clean)), []
    for edge in edges:
        source, target = int(case.shape.edge_sources[edge]), int(case.shape.edge_targets[edge])

        def change(targets: slice, _present: Tensor, source: int = source, target: int = target) -> Tensor:
            moved = torch.zeros(targets.stop - targets.start, *difference.shape[1:], dtype=torch.float64)
            if targets.start <= target < targets.stop:
                moved[target - targets.start] = difference[source]
            return moved

        found.append(float((metric(oracle.Pass(case.model, change).run(case.clean).logits) - plain).mean()))
    return np.array(found)


def assert_equal(found: npt.NDArray[Any], expected: Scores) -> None:
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * np.abs(expected).max())


@pytest.mark.parametrize("ablation", ABLATIONS)
def test_eap_is_the_difference_to_the_fixed_value_times_the_gradient(case: Case, ablation: str) -> None:
    assert_equal(score(case, "eap", ablation).scores, brute_eap(case, ablated(case, ablation, case.corrupted)))


@pytest.mark.parametrize("ablation", ABLATIONS)
def test_exact_moves_the_targets_stream_to_the_fixed_value(case: Case, ablation: str) -> None:
    edges = np.arange(0, case.shape.n_edges, 3)
    expected = brute_exact(case, ablated(case, ablation, case.corrupted), edges)
    assert_equal(score(case, "exact", ablation).scores[edges], expected)


@pytest.mark.parametrize("ablation", ["mean", "mean-positional"])
def test_means_are_over_the_given_reference_set(gpt2: Case, ablation: str) -> None:
    reference = torch.arange(40).reshape(5, 8)
    expected = brute_eap(gpt2, ablated(gpt2, ablation, reference))
    assert_equal(score(gpt2, "eap", ablation, reference=reference).scores, expected)
    assert np.abs(score(gpt2, "eap", ablation).scores - expected).max() > 1e-2 * np.abs(expected).max()


def test_a_mean_weighs_every_position_of_every_prompt_alike_whatever_the_batches(gpt2: Case) -> None:
    """With a batch of two, the five prompts are run in three passes."""
    reference = torch.arange(40).reshape(5, 8)
    found = score(gpt2, "eap", "mean", reference=reference, batch_size=2)
    assert_equal(found.scores, brute_eap(gpt2, ablated(gpt2, "mean", reference)))


def test_a_mean_may_be_over_prompts_of_another_length(gpt2: Case) -> None:
    reference = torch.arange(10).reshape(2, 5)
    values = oracle.sources(gpt2.model, reference).mean((1, 2), keepdim=True).expand(-1, 1, 8, -1)
    assert_equal(score(gpt2, "eap", "mean", reference=reference).scores, brute_eap(gpt2, values))


def test_a_mean_at_each_position_needs_a_prompt_of_the_length(gpt2: Case) -> None:
    with pytest.raises(UsageError, match="The reference set has no prompt of 8 tokens to take a mean over"):
        score(gpt2, "eap", "mean-positional", reference=torch.arange(10).reshape(2, 5))


@pytest.mark.parametrize("ablation", ["mean", "mean-positional"])
def test_an_empty_reference_set_is_refused(gpt2: Case, ablation: str) -> None:
    with pytest.raises(UsageError, match="The reference set"):
        score(gpt2, "eap", ablation, reference=torch.ones(0, 8, dtype=torch.int64))


@pytest.mark.parametrize("ablation", ABLATIONS)
@pytest.mark.parametrize("method", ["eap", "exact"])
def test_a_beginning_in_common_keeps_its_effect(gpt2: Case, method: str, ablation: str) -> None:
    """Under patching the positions that all prompts share have none; here they do, and are never left out."""
    shared, plain = (score(gpt2, method, ablation, share_prefix=share).scores for share in (True, False))
    np.testing.assert_array_equal(shared, plain)


def test_activation_paths_go_to_the_fixed_value(gpt2: Case) -> None:
    """GPT-2 with the embedding, each layer's attention and each MLP moved all of the way, one after the other."""
    difference = ablated(gpt2, "mean", gpt2.corrupted) - oracle.sources(gpt2.model, gpt2.clean)
    total = activation_paths.scores(gpt2.model, gpt2.clean, difference, gpt2.metric("logit-difference"))
    assert_equal(score(gpt2, "eap-ig-activations", "mean", steps=1, grid="left").scores, total)


@pytest.mark.parametrize("ablation", ABLATIONS)
def test_the_metric_of_the_ablated_model_is_that_of_the_empty_circuit(gpt2: Case, ablation: str) -> None:
    stream = ablated(gpt2, ablation, gpt2.corrupted)[:, 0, -1].sum(0)
    stream = stream + sum(block.attn.c_proj.bias for block in gpt2.model.transformer.h)
    logits = gpt2.model.lm_head(gpt2.model.transformer.ln_f(stream)).expand(3, -1)
    expected = float(gpt2.metric("logit-difference")(logits).mean())
    for method in ("eap", "exact"):
        assert score(gpt2, method, ablation).metric_corrupted == pytest.approx(expected, rel=0, abs=1e-12)
