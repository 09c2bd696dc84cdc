"""What must hold of edge scores whatever the model is."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import LlamaForCausalLM

from circuitdb.errors import CircuitdbError, ModelError, UsageError
from circuitdb.ingest import EdgeScores, LoadedModel, load_model, score_edges

N, LENGTH, VOCABULARY = 7, 9, 64


def pairs(*, header: int = 4, n: int = N) -> tuple[Tensor, Tensor]:
    """Random prompts that all begin with the same `header` tokens."""
    generator = torch.Generator().manual_seed(1)
    clean, corrupted = (torch.randint(VOCABULARY, (n, LENGTH), generator=generator) for _ in range(2))
    clean[:, :header] = corrupted[:, :header] = torch.arange(header) + 5
    return clean, corrupted


def relative(found: EdgeScores, wanted: EdgeScores) -> float:
    """Largest difference of two results as a share of the largest score."""
    return float(np.abs(found.scores - wanted.scores).max() / np.abs(wanted.scores).max())


@pytest.mark.parametrize("batch_size", [1, 3])
def test_batch_size_does_not_matter(gqa: LoadedModel, batch_size: int) -> None:
    clean, corrupted = pairs()
    whole = score_edges(gqa, clean, corrupted)
    assert whole.batch_size == N
    found = score_edges(gqa, clean, corrupted, batch_size=batch_size)
    assert found.batch_size == batch_size
    assert relative(found, whole) < 1e-6
    assert found.metric_corrupted == pytest.approx(whole.metric_corrupted, rel=1e-9)


def test_order_of_examples_does_not_matter(gqa: LoadedModel) -> None:
    clean, corrupted = pairs()
    order = torch.tensor([3, 0, 6, 1, 5, 2, 4])
    whole = score_edges(gqa, clean, corrupted, batch_size=3)
    assert relative(score_edges(gqa, clean[order], corrupted[order], batch_size=3), whole) < 1e-6


@pytest.mark.parametrize("header", [0, 4, 8])
def test_shared_prefix_is_exact(gqa: LoadedModel, header: int) -> None:
    clean, corrupted = pairs(header=header)
    plain = score_edges(gqa, clean, corrupted, share_prefix=False)
    assert relative(score_edges(gqa, clean, corrupted, share_prefix=True), plain) < 1e-6


def test_folds_average_to_the_whole(gqa: LoadedModel) -> None:
    clean, corrupted = pairs()
    found = score_edges(gqa, clean, corrupted, folds=3, batch_size=4)
    sizes = np.array([3, 2, 2])  # examples 0, 3, 6 are fold 0
    assert found.folds.shape == (3, found.shape.n_edges)
    mean = (found.folds * sizes[:, None]).sum(0) / N
    np.testing.assert_allclose(found.scores, mean, rtol=0, atol=1e-6 * np.abs(found.scores).max())


def test_fold_is_the_score_of_its_examples_alone(gqa: LoadedModel) -> None:
    clean, corrupted = pairs()
    found = score_edges(gqa, clean, corrupted, folds=2)
    alone = score_edges(gqa, clean[1::2], corrupted[1::2], folds=1)
    np.testing.assert_allclose(found.folds[1], alone.scores, rtol=0, atol=1e-6 * np.abs(alone.scores).max())


def test_a_single_pair_is_enough(gqa: LoadedModel) -> None:
    clean, corrupted = pairs()
    alone = [score_edges(gqa, clean[i : i + 1], corrupted[i : i + 1]).scores for i in range(N)]
    whole = score_edges(gqa, clean, corrupted).scores
    np.testing.assert_allclose(np.mean(alone, axis=0), whole, rtol=0, atol=1e-6 * np.abs(whole).max())


def test_half_precision_is_close_to_single(golden: Path) -> None:
    clean, corrupted = pairs()
    single = score_edges(load_model(golden / "B_gpt2"), clean, corrupted)
    half = score_edges(load_model(golden / "B_gpt2", dtype="bfloat16"), clean, corrupted)
    assert half.scores.dtype == np.float32
    assert relative(half, single) < 0.05  # bfloat16 keeps 8 bits: 0.4 % a value


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, lambda: torch.autocast("cpu", torch.bfloat16)])
def test_the_callers_modes_change_nothing(golden: Path, mode: Callable[[], Any]) -> None:
    model = load_model(golden / "B_gpt2")
    clean, corrupted = pairs()
    plain = score_edges(model, clean, corrupted)
    with mode():
        assert relative(score_edges(model, clean, corrupted), plain) == 0


def test_equal_pairs_score_nothing(gqa: LoadedModel) -> None:
    clean, _ = pairs()
    found = score_edges(gqa, clean, clean.clone())
    assert not found.scores.any()
    assert found.metric_corrupted == 0


def test_sum_over_a_nodes_edges_is_its_plain_gradient_times_difference(gqa: LoadedModel, golden: Path) -> None:
    """Independent of our hooks and algebra: autograd on the plain Hugging Face model."""
    clean, corrupted = pairs()
    labels = torch.tensor([(3, 9)] * N)
    found = score_edges(gqa, clean, corrupted, method="eap", metric="logit-difference", labels=labels)
    shape = found.shape
    by_node = np.bincount(shape.edge_sources, weights=found.scores, minlength=shape.n_sources)
    plain = LlamaForCausalLM.from_pretrained(golden / "C_llama_gqa", dtype=torch.float64, attn_implementation="eager")
    for layer in range(shape.n_layers):
        outputs: list[Tensor] = []
        handle = plain.model.layers[layer].mlp.register_forward_hook(lambda _m, _a, out, to=outputs: to.append(out))
        plain(corrupted)
        logits = plain(clean).logits[:, -1]
        handle.remove()
        difference = (logits[:, 3] - logits[:, 9]).mean()
        (gradient,) = torch.autograd.grad(difference, outputs[1])
        wanted = float((gradient * (outputs[0] - outputs[1]).detach()).sum())
        mlp = 1 + layer * (shape.n_heads + 1) + shape.n_heads
        assert by_node[mlp] == pytest.approx(wanted, rel=1e-5)


def test_scores_of_the_inputs_edges_add_up_to_the_effect_of_a_small_corruption(golden: Path) -> None:
    """All edges of the input together are the input; GPT-2, since Hugging Face computes its norms in float64."""
    gpt2 = load_model(golden / "B_gpt2", dtype="float64")
    clean, corrupted = pairs()
    labels = torch.tensor([(3, 9)] * N)
    step = 1e-4
    found = score_edges(gpt2, clean, corrupted, method="eap", metric="logit-difference", labels=labels)
    estimate = found.scores[found.shape.edge_sources == 0].sum() * step

    def difference(share: float) -> float:
        """Mean logit difference with the embedding moved that far towards the corrupted one."""
        with torch.no_grad():
            start, end = (gpt2.bridge.embed(tokens) for tokens in (clean, corrupted))
            logits = gpt2.bridge(torch.lerp(start, end, share))[:, -1]
        return float((logits[:, 3] - logits[:, 9]).mean())

    true = (difference(step) - difference(-step)) / 2
    assert estimate == pytest.approx(true, rel=1e-5)


def test_right_grid_with_kl_leaves_out_the_clean_run_without_changing_the_mean(gqa: LoadedModel) -> None:
    clean, corrupted = pairs()
    right = score_edges(gqa, clean, corrupted, steps=2, grid="right")
    left = score_edges(gqa, clean, corrupted, steps=2, grid="left")
    corrupted_only = score_edges(gqa, clean, corrupted, steps=1, grid="left")
    # right = (g(1/2) + g(1)) / 2 with g(1) = 0; left = (g(0) + g(1/2)) / 2; so left - right = g(0) / 2
    np.testing.assert_allclose(
        left.scores - right.scores, corrupted_only.scores / 2, rtol=0, atol=1e-6 * np.abs(left.scores).max()
    )


def test_progress_reaches_one(gqa: LoadedModel) -> None:
    seen: list[float] = []
    score_edges(gqa, *pairs(), batch_size=3, progress=seen.append)
    assert seen == pytest.approx([3 / 7, 6 / 7, 1.0])


def test_model_is_left_as_it_was(gqa: LoadedModel) -> None:
    clean, corrupted = pairs()
    before = gqa.bridge(clean)
    score_edges(gqa, clean, corrupted)
    assert torch.equal(gqa.bridge(clean), before)
    assert all(block.attn.original_component.num_key_value_groups == 2 for block in gqa.bridge.blocks)
    assert all(parameter.grad is None for parameter in gqa.bridge.parameters())


CLEAN, CORRUPTED = pairs()
BAD: list[tuple[str, dict[str, Any], type[CircuitdbError], str]] = [
    ("floats", {"clean": CLEAN.float()}, UsageError, "must be int64"),
    ("one row", {"clean": CLEAN[0]}, UsageError, "must be int64 [batch, pos]"),
    ("unequal length", {"corrupted": CORRUPTED[:, :-1]}, UsageError, "every pair must have equal length"),
    ("unequal number", {"corrupted": CORRUPTED[:-1]}, UsageError, "every pair must have equal length"),
    ("no examples", {"clean": CLEAN[:0], "corrupted": CORRUPTED[:0]}, UsageError, "no examples"),
    ("token too large", {"clean": CLEAN + 64}, UsageError, "outside the model's vocabulary of 64"),
    ("negative token", {"clean": CLEAN - 64}, UsageError, "outside the model's vocabulary of 64"),
    ("no labels", {"metric": "logit-difference"}, UsageError, "needs labels"),
    (
        "labels of one",
        {"labels": torch.zeros(N, 1, dtype=torch.int64), "metric": "logit-difference"},
        UsageError,
        "must be an int64 tensor [7, 2]",
    ),
    ("label too large", {"labels": torch.full((N, 2), 64)}, UsageError, "labels have ids outside"),
    ("numpy tokens", {"clean": CLEAN.numpy()}, UsageError, "of type ndarray; give a torch tensor"),
    ("list of tokens", {"corrupted": CORRUPTED.tolist()}, UsageError, "of type list; give a torch tensor"),
    (
        "list of labels",
        {"labels": [[1, 2]] * N},
        UsageError,
        "The labels are list; they must be an int64 tensor [7, 2]",
    ),
    ("float labels", {"labels": torch.zeros(N, 2)}, UsageError, "they must be an int64 tensor [7, 2]"),
    (
        "equal labels",
        {"labels": torch.ones(N, 2, dtype=torch.int64), "metric": "logit-difference"},
        UsageError,
        "labels of pair 0 are one token",
    ),
    ("half a step", {"steps": 2.5}, UsageError, "not 2.5"),
    ("too many steps", {"steps": 2**31}, UsageError, "from one to 10,000"),
    ("half a fold", {"folds": 1.5}, UsageError, "not 1.5"),
    ("batch of text", {"batch_size": "x"}, UsageError, "not 'x'"),
    ("no loaded model", {"model": "gpt2"}, UsageError, "give one from load_model"),
    ("no metric", {"metric": "loss"}, UsageError, "There is no metric 'loss'; choose one of kl, logit-difference"),
    ("no method", {"method": "magic"}, UsageError, "There is no method 'magic'"),
    ("no grid", {"grid": "up"}, UsageError, "There is no grid 'up'"),
    ("no steps", {"steps": 0}, UsageError, "a whole number of steps from one to 10,000, not 0"),
    ("one right step", {"steps": 1}, UsageError, "zero by construction"),
    ("eap of kl", {"method": "eap"}, UsageError, "zero by construction, so eap would score every edge 0"),
    ("no batch", {"batch_size": 0}, UsageError, "at least one pair, not 0"),
    ("no fold", {"folds": 0}, UsageError, "at least one fold, not 0"),
    ("more folds than examples", {"folds": 8}, UsageError, "7 pairs can't be split into 8 folds"),
    (
        "too long",
        {"clean": torch.ones(1, 65, dtype=torch.int64), "corrupted": torch.ones(1, 65, dtype=torch.int64), "folds": 1},
        UsageError,
        "exceed the model's context of 64",
    ),
]


@pytest.mark.parametrize(("given", "error", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_input_is_refused_in_a_sentence(
    gqa: LoadedModel, given: dict[str, Any], error: type[CircuitdbError], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        score_edges(**{"model": gqa, "clean": CLEAN, "corrupted": CORRUPTED, **given})


def test_a_model_that_gives_nan_is_refused(gqa: LoadedModel) -> None:
    norm = gqa.bridge.ln_final.original_component.weight
    kept = norm.data.clone()
    norm.data[0] = float("nan")
    try:
        with pytest.raises(ModelError, match="not finite"):
            score_edges(gqa, CLEAN, CORRUPTED)
    finally:
        norm.data.copy_(kept)
