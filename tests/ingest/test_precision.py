"""What rounding must not do: zero ablation, half precision, no change, and gaps that are rounding alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import architectures
from circuitdb.ingest import LoadedModel, evaluate_circuits, load_model, metrics, register_metric, score_edges

CLEAN = torch.randint(1, 64, (4, 9), generator=torch.Generator().manual_seed(1))
CORRUPTED = CLEAN.roll(1, 0)


@pytest.fixture(scope="module", params=["gpt2", "gpt-j", "llama-3", "gemma-2"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return architectures.build(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return load_model(architectures.build("gpt2", tmp_path_factory.mktemp("plain")))


@pytest.mark.parametrize(("dtype", "allowed"), [("float32", 1e-4), ("float16", 0.02), ("bfloat16", 0.15)])
@pytest.mark.parametrize("ablation", ["zero", "mean", "patching"])
def test_circuits_of_few_edges_are_those_of_float64(folder: Path, ablation: str, dtype: str, allowed: float) -> None:
    """A target with few sources left reads almost nothing; what is left of a large stream would be its rounding."""
    exact = load_model(folder, dtype="float64")
    n_edges = exact.record.shape.n_edges
    draws = np.random.default_rng(0)
    circuits = np.stack([draws.random(n_edges) < share for share in (0.0, 0.02, 0.1, 0.5, 1.0)])
    wanted = evaluate_circuits(exact, CLEAN, CORRUPTED, circuits, ablation=ablation)
    found = evaluate_circuits(load_model(folder, dtype=dtype), CLEAN, CORRUPTED, circuits, ablation=ablation)
    np.testing.assert_allclose(found.values, wanted.values, rtol=allowed, atol=allowed * wanted.values.max())
    assert (found.faithfulness[0], found.faithfulness[-1]) == pytest.approx((0, 1), abs=1e-4)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_an_edge_without_a_change_scores_exactly_nothing(folder: Path, dtype: str) -> None:
    found = score_edges(load_model(folder, dtype=dtype), CLEAN, CLEAN.clone(), method="exact")
    assert not found.scores.any()


@pytest.fixture
def entropy() -> Iterator[None]:
    """A metric that knows neither labels nor the clean run: over permuted prompts both ends are the same."""

    def value(logits: Tensor, clean_logits: Tensor, labels: Tensor | None) -> Tensor:
        log = logits.log_softmax(-1)
        return -(log.exp() * log).sum((-2, -1))

    before = dict(metrics.METRICS)
    register_metric("entropy", value)
    yield
    metrics.METRICS.clear()
    metrics.METRICS.update(before)


def test_a_gap_that_is_rounding_is_none(gpt2: LoadedModel, entropy: None) -> None:
    circuits = np.ones((1, gpt2.record.shape.n_edges), dtype=bool)
    circuits[0, ::3] = False
    found = evaluate_circuits(gpt2, CLEAN, CORRUPTED, circuits, metric="entropy", batch_size=3)
    assert abs(found.clean - found.ablated) < 1e-6
    assert not found.has_gap
    assert np.isnan(found.faithfulness).all()
    assert evaluate_circuits(gpt2, CLEAN, CORRUPTED, circuits).has_gap


def test_the_published_loss_keeps_small_effects(gpt2: LoadedModel) -> None:
    """It is of the size of the vocabulary: in float32 what an edge changes would be lost in it."""
    logits = torch.randn(1, 1, 50_000, generator=torch.Generator().manual_seed(0))
    moved = logits.clone()
    moved[0, 0, 7] += 1e-3
    found = metrics.kl_published(moved, logits) - metrics.kl_published(logits, logits)
    run, clean = logits.double(), logits.double().softmax(-1)
    wanted = (clean.exp() * (run.log_softmax(-1) - moved.double().log_softmax(-1))).sum()
    assert float(wanted) == pytest.approx(float(found), rel=1e-6)
    assert found.dtype == torch.float64
