"""auto-circuit, ACDC and TransformerLens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tool_files
from circuitdb.errors import ScoreError
from circuitdb.graph import GraphShape
from circuitdb.ingest import LoadedModel, load_model, score_edges
from circuitdb.ingest.formats.found import Found
from circuitdb.ingest.formats.recognition import read
from circuitdb.ingest.formats.transformer_lens import from_attribution_result
from tool_files import GOLDEN

SHAPE = GraphShape(2, 3)


def numbered(config: dict[str, Any]) -> dict[str, float]:
    """A number of its own for every edge."""
    return {name: float(i) - 20 for i, name in enumerate(tool_files.edge_names(config))}


def by_name(found: Found) -> dict[str, float]:
    assert found.scores is not None
    return dict(zip(found.shape.edge_names, found.scores.tolist(), strict=True))


@pytest.mark.parametrize("model", GOLDEN)
def test_prune_scores(tmp_path: Path, model: str) -> None:
    config = tool_files.cfg(model)
    torch.save(tool_files.prune_scores(config, numbered(config)), tmp_path / "scores.pkl")  # auto-circuit's own suffix
    (found,), _ = read(tmp_path / "scores.pkl")
    assert by_name(found) == numbered(config)
    assert (found.tool, found.shape.parallel, found.method, found.task) == (
        "auto-circuit", config["parallel_attn_mlp"], None, None,
    )  # fmt: skip


def test_nested_prune_scores_are_circuits_of_their_own(tmp_path: Path) -> None:
    config = tool_files.cfg("B_gpt2")
    plain = tool_files.prune_scores(config, numbered(config))
    double = {name: 2 * tensor for name, tensor in plain.items()}
    torch.save({"IOI": {"EAP": plain, "Random": double}, "Docstring": {"EAP": double}}, tmp_path / "a.pt")
    found, _ = read(tmp_path / "a.pt")
    assert [(one.task, one.method, one.part) for one in found] == [
        ("IOI", "EAP", "IOI/EAP"), ("IOI", "Random", "IOI/Random"), ("Docstring", "EAP", "Docstring/EAP"),
    ]  # fmt: skip
    assert by_name(found[0])["m1->logits"] * 2 == by_name(found[2])["m1->logits"] != 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"blocks.0.hook_attn_in": torch.zeros(4, 1)}, "one score for q, k and v together"),
        ({"blocks.0.hook_q_input": torch.zeros(12, 4, 1)}, "a score for each position of an edge"),
        ({"blocks.1.hook_k_input": torch.zeros(4, 5)}, r"blocks.1.hook_k_input has the shape \[4, 5\]; .* \[4, 6\]"),
        ({"blocks.1.hook_mlp_in": None}, "has no scores for blocks.1.hook_mlp_in"),
        ({"blocks.1.hook_resid_post": None}, "has no scores for blocks.1.hook_resid_post"),
        ({"blocks.0.hook_resid_post": torch.zeros(11)}, "no target of the factorized graph"),
        ({"blocks.999999999.hook_mlp_in": torch.zeros(1)}, "too few for its 1,000,000,000 layers"),
        ({"blocks.0.hook_mlp_in": torch.zeros(3)}, r"the shapes of blocks.0.hook_q_input, \[4, 1\]"),
        ({"blocks.0.attn.hook_z": torch.zeros(3)}, "is no module that reads"),
        ({"blocks.0.hook_q_input": "four"}, "the shapes of blocks.0.hook_q_input"),
        ({"blocks.1.hook_v_input": torch.zeros(1).expand(10**6, 10**6)}, r"has the shape \[1000000, 1000000\]"),
        ({"blocks.1.hook_v_input": torch.zeros(4, 6, dtype=torch.complex64)}, "no plain tensor of real numbers"),
    ],
)
def test_prune_scores_that_are_none(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    config = tool_files.cfg("B_gpt2")
    content = {**tool_files.prune_scores(config, numbered(config)), **change}
    torch.save({name: value for name, value in content.items() if value is not None}, tmp_path / "a.pt")
    with pytest.raises(ScoreError, match=reason):
        read(tmp_path / "a.pt")


# What ACDC's save_edges lists, in JSON; the third and fourth are within a node.
EDGES: list[Any] = [
    [["blocks.1.hook_resid_post", [None], "blocks.1.hook_mlp_out", [None]], 0.5],
    [["blocks.1.hook_q_input", [None, None, 2], "blocks.0.attn.hook_result", [None, None, 1]], -0.25],
    [["blocks.0.attn.hook_q", [None, None, 2], "blocks.0.hook_q_input", [None, None, 2]], 9.0],
    [["blocks.1.hook_mlp_out", [None], "blocks.1.hook_resid_mid", [None]], 9.0],
    [["blocks.1.hook_resid_mid", [None], "blocks.0.hook_resid_pre", [None]], None],
    [["blocks.0.hook_resid_mid", [None], "blocks.0.attn.hook_result", [None, None, 0]], 2],
]
WANTED = {"m1->logits": 0.5, "a0.h1->a1.h2<q>": -0.25, "input->m1": None, "a0.h0->m0": 2.0}


@pytest.mark.parametrize("suffix", [".json", ".pt"])
def test_acdc_edges_are_a_hard_circuit_with_scores(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    if suffix == ".json":
        path.write_text(json.dumps(EDGES))
    else:
        torch.save(EDGES, path)
    (found,), _ = read(path, SHAPE)
    assert found.members is not None
    assert {SHAPE.edge_names[i] for i in np.flatnonzero(found.members)} == set(WANTED)
    assert {name: score for name, score in by_name(found).items() if not np.isnan(score)} == {
        name: score for name, score in WANTED.items() if score is not None
    }
    assert found.n_missing == SHAPE.n_edges - 4
    assert (found.tool, found.method, found.sign_convention) == ("acdc", "acdc", None)


@pytest.mark.parametrize(
    ("entry", "shape", "reason"),
    [
        (EDGES[0], None, "say it with --shape"),
        (EDGES[0], GraphShape(3, 3), "says that the model has 3 layers"),
        ([["blocks.1.hook_q_input", [None, None, 7], "blocks.0.hook_mlp_out", [None]], 1.0], SHAPE,
         "no edge 'm0->a1.h7<q>'"),
        ([["blocks.0.hook_q_input", [None, None, 0], "blocks.1.hook_mlp_out", [None]], 1.0], SHAPE,
         "no edge 'm1->a0.h0<q>'"),
        ([["blocks.0.hook_q_input", [None, 4, 0], "hook_embed", [None]], 1.0], SHAPE,
         r"it must be \[null, null, head\]"),
        ([["blocks.0.hook_q_input", [None, None, 0], "hook_pos_embed", [None]], 1.0], SHAPE, "use_pos_embed"),
        ([["blocks.0.hook_q_input", [None, None, 0], "spam", [None]], 1.0], SHAPE, "'spam' is no node that writes"),
        ([["blocks.0.hook_q_input", [None, None, 0], "hook_embed", [None]], "x"], SHAPE, "is x, no number"),
        ([["blocks.0.hook_q_input", [None, None, 0], "hook_embed"], 1.0], SHAPE, "an entry is not"),
    ],
)  # fmt: skip
def test_acdc_edges_that_are_none(tmp_path: Path, entry: object, shape: GraphShape | None, reason: str) -> None:
    (tmp_path / "a.json").write_text(json.dumps([EDGES[0], entry] if shape == SHAPE else [entry]))
    with pytest.raises(ScoreError, match=reason):
        read(tmp_path / "a.json", shape)


@pytest.fixture(scope="module", params=["B_gpt2", "D_neox"])
def golden_model(request: pytest.FixtureRequest, golden: Path) -> tuple[LoadedModel, torch.Tensor, torch.Tensor]:
    with np.load(golden / f"{request.param}.npz") as file:
        clean, corrupted = torch.tensor(file["clean"]), torch.tensor(file["corrupt"])
    return load_model(golden / request.param, dtype="float64"), clean, corrupted


def test_a_result_of_transformer_lens_is_minus_the_sum_over_positions(
    golden_model: tuple[LoadedModel, torch.Tensor, torch.Tensor],
) -> None:
    from transformer_lens.tools.analysis.attribution_patching import EdgeAttributionConfig, attribution_patch

    model, clean, corrupted = golden_model
    labels = torch.tensor([[3, 5]] * len(clean))

    def metric(logits: torch.Tensor) -> torch.Tensor:
        return (logits[:, -1, 3] - logits[:, -1, 5]).mean()

    model.bridge.requires_grad_(True)  # an ingest needs no gradients of weights, TransformerLens does
    result = attribution_patch(model.bridge, clean, corrupted, metric, config=EdgeAttributionConfig(granularity="edge"))
    model.bridge.requires_grad_(False)
    found = from_attribution_result(result)
    # EAP of the pair turned round: its source difference is clean minus corrupted, its gradient of the corrupted run.
    ours = score_edges(model, corrupted, clean, method="eap", metric="logit-difference", labels=labels)
    assert found.shape.edge_names == list(ours.names)
    assert found.scores is not None
    largest = np.abs(ours.scores).max()
    assert largest > 0
    np.testing.assert_allclose(found.scores, -ours.scores, rtol=0, atol=1e-5 * largest)
    assert (found.method, found.ablation, found.sign_convention, found.n_missing) == (
        "eap-corrupted", "patching", "ablated-minus-clean", 0,
    )  # fmt: skip


def test_a_result_without_edges_is_refused() -> None:
    class Empty:
        edge_scores: dict[Any, float] = {}  # noqa: RUF012

    with pytest.raises(ScoreError, match="make it with granularity='edge'"):
        from_attribution_result(Empty())
