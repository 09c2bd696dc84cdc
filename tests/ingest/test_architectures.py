"""Every architecture's edge scores against those of the brute-force oracle, and the oracle against itself and EAP-IG.

Everything runs in float64 throughout. The oracle knows the definitions and the plain Hugging Face model, and nothing of
the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

import architectures
import oracle
from circuitdb.graph import GraphShape
from circuitdb.ingest import EdgeScores, LoadedModel, load_model, score_edges

# Largest difference from the oracle, as a share of the largest score.
TOLERANCE = 1e-12
ROUNDING = 1e-12
N_PAIRS, N_TOKENS = 3, 9

Numbers = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Case:
    """A model, for the oracle and for the engine, with pairs of token ids in which about half of the tokens differ."""

    folder: Path
    clean: Tensor
    corrupted: Tensor
    labels: Tensor

    @cached_property
    def model(self) -> Any:
        return oracle.load(self.folder)

    @cached_property
    def engine(self) -> LoadedModel:
        return load_model(self.folder, dtype="float64", device="cpu")

    @property
    def shape(self) -> GraphShape:
        return oracle.graph_shape(self.model)

    def metric(self, name: str) -> oracle.Metric:
        if name == "kl":
            return oracle.divergence(oracle.logits(self.model, self.clean))
        return oracle.logit_difference(self.labels)

    def score(self, **options: Any) -> EdgeScores:
        return score_edges(self.engine, self.clean, self.corrupted, labels=self.labels, share_prefix=False, **options)


def case_in(folder: Path) -> Case:
    draws = torch.Generator().manual_seed(1)
    clean = torch.randint(1, architectures.ECHO, (N_PAIRS, N_TOKENS), generator=draws)
    echoes = torch.rand(clean.shape, generator=draws) < 0.5
    return Case(folder, clean, clean + architectures.ECHO * echoes, torch.tensor([[3, 5], [7, 9], [20, 40]]))


@pytest.fixture(scope="session", params=list(architectures.CONFIGS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def case(name: str, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return case_in(architectures.build(name, tmp_path_factory.mktemp(name)))


@pytest.fixture(autouse=True)
def full_precision() -> Iterator[None]:
    with oracle.full_precision():
        yield


def assert_equal(found: Numbers, expected: Numbers, tolerance: float) -> None:
    assert np.abs(expected).max() > 1e-9
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


# --- the oracle ------------------------------------------------------------------------------------------------------


def test_the_model_with_a_key_and_value_for_each_head_is_the_same_model(case: Case) -> None:
    with torch.no_grad():
        expected = oracle.load(case.folder, ungroup=False)(case.clean).logits[:, -1]
    torch.testing.assert_close(oracle.logits(case.model, case.clean), expected, rtol=0, atol=ROUNDING)


@torch.no_grad()
def test_sources_add_up_to_the_stream_at_every_target(case: Case) -> None:
    clean, corrupted = (oracle.Pass(case.model).run(tokens) for tokens in (case.clean, case.corrupted))
    written = torch.cat(clean.sources)
    assert len(written) == case.shape.n_sources
    whole = written.sum(0) + torch.stack(clean.biases).sum(0)
    torch.testing.assert_close(whole, clean.streams[-1], rtol=0, atol=ROUNDING)
    difference = torch.cat(corrupted.sources) - written
    mask = torch.tensor(case.shape.mask)
    target = 0
    for reads, before, after in zip(clean.reads, clean.streams, corrupted.streams, strict=True):
        torch.testing.assert_close(difference[mask[:, target]].sum(0), after - before, rtol=0, atol=ROUNDING)
        target += len(reads)
    assert target == case.shape.n_targets


def test_the_full_circuit_is_the_clean_run_and_the_empty_one_the_corrupted(case: Case) -> None:
    kept = np.ones(case.shape.n_edges, dtype=bool)
    for circuit, tokens in ((kept, case.clean), (~kept, case.corrupted)):
        found = oracle.circuit(case.model, case.clean, case.corrupted, circuit)
        torch.testing.assert_close(found, oracle.logits(case.model, tokens), rtol=0, atol=ROUNDING)


def test_an_exact_score_is_the_effect_of_the_circuit_without_that_edge(case: Case) -> None:
    metric = case.metric("logit-difference")
    edges = np.arange(0, case.shape.n_edges, 7)
    effects = []
    for edge in edges:
        kept = np.arange(case.shape.n_edges) != edge
        logits = oracle.circuit(case.model, case.clean, case.corrupted, kept)
        effects.append(float((metric(logits) - metric(oracle.logits(case.model, case.clean))).mean()))
    found = oracle.exact(case.model, case.clean, case.corrupted, metric, edges)
    assert_equal(found, np.array(effects), ROUNDING)


def shrinks(name: str, folder: Path, estimate: Callable[[Case], Numbers]) -> None:
    """Assert that the estimate's error falls with the corruption's size, a hundredfold."""
    errors = []
    for echo in (1e-3, 1e-5):
        case = case_in(architectures.build(name, folder / str(echo), echo=echo))
        exact = oracle.exact(case.model, case.clean, case.corrupted, case.metric("logit-difference"))
        errors.append(np.abs(estimate(case) - exact).max() / np.abs(exact).max())
    coarse, fine = errors
    assert fine < 1e-3
    assert fine < coarse / 50


def test_the_oracle_s_eap_becomes_exact_as_the_corruption_shrinks(name: str, tmp_path: Path) -> None:
    def eap(case: Case) -> oracle.Scores:
        return oracle.eap(case.model, case.clean, case.corrupted, case.metric("logit-difference"))

    shrinks(name, tmp_path, eap)


@pytest.mark.parametrize("metric", ["kl", "ld"])
@pytest.mark.parametrize("shape", ["B_gpt2", "C_llama_gqa", "D_neox"])
def test_the_oracle_equals_the_reference(golden: Path, shape: str, metric: str) -> None:
    model = oracle.load(golden / shape)
    with np.load(golden / f"{shape}.npz") as file:
        clean, corrupted = torch.tensor(file["clean"]), torch.tensor(file["corrupt"])
        labels = torch.tensor(file["ld_labels"])
        edges = file["edges"].tolist()
        estimates = file[f"f64_{metric}_EAP_IG_inputs"] * len(clean)  # it divides by the batch size twice
        effects = file[f"f64_{metric}_exact_reset"]
    ids = np.array([oracle.graph_shape(model).edge_id(edge) for edge in edges])
    kl = oracle.divergence(oracle.logits(model, clean))
    measure = kl if metric == "kl" else oracle.logit_difference(labels)
    assert_equal(oracle.eap(model, clean, corrupted, measure, left_grid(5))[ids], estimates, ROUNDING)
    assert_equal(oracle.exact(model, clean, corrupted, measure, ids), effects, ROUNDING)


def left_grid(steps: int) -> list[tuple[float, float]]:
    return [(k / steps, 1 / steps) for k in range(steps)]


def test_full_precision_rounds_nothing() -> None:
    third = torch.tensor([1 / 3], dtype=torch.float64)
    for same in (third.float(), third.to(torch.float32), third.to(dtype=torch.float32), third.type(torch.float32)):
        assert same.item() == 1 / 3
    assert third.softmax(-1, dtype=torch.float32).dtype == torch.float64


# --- the engine ------------------------------------------------------------------------------------------------------


def test_eap_equals_the_oracle(case: Case) -> None:
    found = case.score(method="eap", metric="logit-difference")
    assert found.shape == case.shape
    expected = oracle.eap(case.model, case.clean, case.corrupted, case.metric("logit-difference"))
    assert_equal(found.scores, expected, TOLERANCE)


def test_eap_ig_equals_the_oracle(case: Case) -> None:
    found = case.score(method="eap-ig", metric="kl", grid="left", steps=3)
    expected = oracle.eap(case.model, case.clean, case.corrupted, case.metric("kl"), left_grid(3))
    assert_equal(found.scores, expected, TOLERANCE)


@pytest.mark.parametrize("metric", ["kl", "logit-difference"])
def test_exact_equals_the_oracle(case: Case, metric: str) -> None:
    found = case.score(method="exact", metric=metric)
    expected = oracle.exact(case.model, case.clean, case.corrupted, case.metric(metric))
    assert_equal(found.scores, expected, TOLERANCE)


def test_eap_becomes_exact_as_the_corruption_shrinks(name: str, tmp_path: Path) -> None:
    shrinks(name, tmp_path, lambda case: case.score(method="eap", metric="logit-difference").scores)
