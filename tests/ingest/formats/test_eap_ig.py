"""EAP-IG's files: scores by name equal to the bit, both dialects, and what is loaded again by the tool's own rules."""

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
from circuitdb.ingest.formats import eap_ig_json, eap_ig_pt
from circuitdb.ingest.formats.found import Found
from circuitdb.ingest.formats.recognition import read
from tool_files import GOLDEN, Numbers

WAYS = ["kl_EAP", "kl_EAP_IG_inputs", "ld_EAP", "ld_EAP_IG_inputs", "ld_EAP_IG_activations", "ld_clean_corrupted"]
SHAPE = GraphShape(2, 4)


def golden_scores(golden: Path, model: str, way: str) -> tuple[dict[str, float], Numbers]:
    """(score by name, dense matrix) that EAP-IG itself made."""
    with np.load(golden / f"{model}.npz") as file:
        return (
            dict(zip(file["edges"].tolist(), file[f"f32_{way}"].tolist(), strict=True)),
            file[f"matrix_f32_{way}"],
        )


def by_name(found: Found) -> dict[str, float]:
    assert found.scores is not None
    return dict(zip(found.shape.edge_names, found.scores.tolist(), strict=True))


def one(path: Path) -> Found:
    (found,), _ = read(path)
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", GOLDEN)
def test_both_layouts_hold_the_tools_own_scores(golden: Path, tmp_path: Path, model: str, way: str) -> None:
    scores, matrix = golden_scores(golden, model, way)
    config = tool_files.cfg(model)
    for file in (
        tool_files.eap_ig_json(tmp_path / "a.json", config, scores),
        tool_files.eap_ig_pt(tmp_path / "a.pt", config, matrix),
    ):
        found = one(file)
        assert by_name(found) == scores
        assert (found.d_model, found.n_kv_heads, found.n_missing, found.members) == (32, None, 0, None)
        assert found.tool == "eap-ig"
        # What the file does not say is not made up.
        assert (found.method, found.steps, found.positions, found.ablation, found.sign_convention) == (None,) * 5


def test_circuit_stability_shares_columns_as_its_own_files_do(golden: Path, tmp_path: Path) -> None:
    with np.load(golden / "fork_C_llama_gqa.npz") as file:
        names, cells = file["edges"].tolist(), file["edge_index"]
        matrix = file["matrix_f32_ld_EAP_IG"]
        wanted = dict(zip(names, file["f32_ld_EAP_IG"].tolist(), strict=True))
    n_layers, n_heads, _, n_kv_heads, _ = GOLDEN["C_llama_gqa"]
    config = {"n_layers": n_layers, "n_heads": n_heads, "n_kv_heads": n_kv_heads, "parallel_attn_mlp": False}
    sources = dict.fromkeys(tool_files.source_names(n_layers, n_heads), True)
    content = {
        "cfg": config, "src_nodes": sources, "dst_nodes": tool_files.target_names(n_layers, n_heads),
        "edges": torch.from_numpy(matrix), "edges_in_graph": torch.zeros(matrix.shape, dtype=torch.bool),
    }  # fmt: skip
    torch.save(content, tmp_path / "a.pt")
    found = one(tmp_path / "a.pt")
    assert by_name(found) == wanted
    assert (found.dialect, found.n_kv_heads, found.d_model) == ("circuit-stability .pt", 2, None)
    assert "one column for m0 and a1.h0<q>" in found.notes[0]
    # The golden file itself says so: these edges have one cell of the matrix.
    place = {name: tuple(cell) for name, cell in zip(names, cells.tolist(), strict=True)}
    assert place["input->m0"] == place["input->a1.h0<q>"]


def test_circuit_stability_json(golden: Path, tmp_path: Path) -> None:
    scores, _ = golden_scores(golden, "C_llama_gqa", "ld_EAP")
    config = {"n_layers": 3, "n_heads": 4, "n_kv_heads": 2, "parallel_attn_mlp": False}
    found = one(tool_files.eap_ig_json(tmp_path / "a.json", config, scores, plain=True))
    assert by_name(found) == scores
    assert (found.dialect, found.n_kv_heads, found.d_model) == ("circuit-stability JSON", 2, None)


def test_what_is_no_number_is_no_score_and_missing_edges_are_counted(tmp_path: Path) -> None:
    edges: dict[str, Any] = dict.fromkeys(tool_files.edge_names(tool_files.cfg("B_gpt2")), 1.0)
    odd = {"input->m0": None, "a0.h0->m0": float("nan"), "a0.h1->m0": float("inf"), "a0.h2->m0": -float("inf"),
           "a0.h3->m0": 1e39, "m1->logits": {"in_graph": True}, "input->a0.h0<q>": 7}  # fmt: skip
    edges.update(odd)
    del edges["m0->logits"], edges["m0->m1"]
    found = one(tool_files.eap_ig_json(tmp_path / "a.json", tool_files.cfg("B_gpt2"), edges))
    named = by_name(found)
    without = {name for name, score in named.items() if np.isnan(score)}
    assert without == {*odd, "m0->logits", "m0->m1"} - {"input->a0.h0<q>"}
    assert named["input->a0.h0<q>"] == 7
    assert found.n_missing == 2
    assert found.members is not None
    assert np.flatnonzero(found.members).tolist() == [SHAPE.edge_id("m1->logits")]


@pytest.mark.parametrize("score", [None, float("nan"), 0.0, "absent"])
def test_membership_without_scores_is_a_hard_circuit(tmp_path: Path, score: object) -> None:
    names = tool_files.edge_names(tool_files.cfg("B_gpt2"))
    chosen = {"input->a0.h3<k>", "a0.h3->m1", "m1->logits"}
    edges = {name: {"in_graph": name in chosen} | ({} if score == "absent" else {"score": score}) for name in names}
    found = one(tool_files.eap_ig_json(tmp_path / "a.json", tool_files.cfg("B_gpt2"), edges))
    assert found.scores is None
    assert found.members is not None
    assert {name for name, is_in in zip(found.shape.edge_names, found.members, strict=True) if is_in} == chosen


def test_membership_in_pt_ignores_cells_that_are_no_edge(tmp_path: Path) -> None:
    inside = torch.zeros((11, 27), dtype=torch.bool)
    inside[10, :] = True  # m1, as EAP-IG's cut by nodes sets it: every target, also those before it
    path = tool_files.eap_ig_pt(
        tmp_path / "a.pt", tool_files.cfg("B_gpt2"), np.zeros((11, 27), np.float32), edges_in_graph=inside
    )
    found = one(path)
    assert found.scores is None
    assert found.members is not None
    assert [found.shape.edge_names[i] for i in np.flatnonzero(found.members)] == ["m1->logits"]


def test_scores_of_nodes_are_not_stored_and_that_is_said(tmp_path: Path) -> None:
    path = tool_files.eap_ig_json(tmp_path / "a.json", tool_files.cfg("B_gpt2"), {"input->m0": 1.0})
    content = json.loads(path.read_text())
    content["nodes"]["m0"] = {"in_graph": True, "score": float("nan")}
    path.write_text(json.dumps(content))
    assert one(path).notes == ()
    content["nodes"]["m0"] = {"in_graph": True, "score": 2.0, "neurons": [True]}
    path.write_text(json.dumps(content))
    assert [note.split(" also tells of ")[1] for note in one(path).notes] == [
        "nodes, which are not stored.", "neurons, which are not stored.",
    ]  # fmt: skip


def odd_scores() -> Numbers:
    """float32 of every kind: huge, tiny, subnormal, negative zero, none."""
    rng = np.random.default_rng(0)
    scores = rng.standard_normal(SHAPE.n_edges).astype(np.float32)
    scores[:7] = [3.4028235e38, -3.4028235e38, 1e-45, -1e-40, -0.0, 0.0, np.nan]
    return scores


@pytest.mark.parametrize("suffix", [".json", ".pt"])
@pytest.mark.parametrize("n_top", [0, 5])
def test_what_is_written_is_loaded_by_the_tools_rules_and_read_back_to_the_bit(
    tmp_path: Path, suffix: str, n_top: int
) -> None:
    scores = odd_scores()
    members = np.zeros(SHAPE.n_edges, bool)
    members[np.argsort(-np.abs(np.nan_to_num(scores)))[:n_top]] = True
    path = tmp_path / f"a{suffix}"
    writer = eap_ig_json.write if suffix == ".json" else eap_ig_pt.write
    writer(path, SHAPE, scores, members, d_model=32)
    loaded, inside, nodes = tool_files.load_eap_ig(path)
    for name, score, is_in in zip(SHAPE.edge_names, scores.tolist(), members.tolist(), strict=True):
        if np.isnan(score):  # left out of the JSON, which the tool takes for 0
            assert loaded[name] == 0 if suffix == ".json" else np.isnan(loaded[name])
        else:
            assert np.float32(loaded[name]).tobytes() == np.float32(score).tobytes(), name
        assert inside[name] == is_in
    # The tool's own rule: a node is in with an edge out of it and, but for the input, one into it.
    chosen = [name.split("->") for name in inside if inside[name]]
    for node, is_in in nodes.items():
        leads_out = any(source == node for source, _ in chosen)
        led_to = any(target.split("<")[0] == node for _, target in chosen)
        assert is_in == (leads_out and (led_to or node == "input")), node
    found = one(path)
    assert found.scores is not None
    assert found.scores.tobytes() == scores.tobytes()
    chosen_again = np.zeros(SHAPE.n_edges, bool) if found.members is None else found.members
    assert np.array_equal(chosen_again, members)
    assert found.d_model == 32


def test_an_unknown_width_stays_unknown(tmp_path: Path) -> None:
    eap_ig_json.write(tmp_path / "a.json", SHAPE, odd_scores(), None, d_model=None)
    assert one(tmp_path / "a.json").d_model is None


def test_membership_alone_is_written_and_read_back(tmp_path: Path) -> None:
    members = np.arange(SHAPE.n_edges) % 7 == 0
    for path, writer in ((tmp_path / "a.json", eap_ig_json.write), (tmp_path / "a.pt", eap_ig_pt.write)):
        writer(path, SHAPE, None, members, d_model=32)
        loaded, inside, _ = tool_files.load_eap_ig(path)
        assert all(np.isnan(score) for score in loaded.values())
        assert [inside[name] for name in SHAPE.edge_names] == members.tolist()
        found = one(path)
        assert found.scores is None
        assert np.array_equal(found.members, members)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("edge", "reason"),
    [
        ("m1->m0", "has no edge 'm1->m0': source and target must exist and the target must come after the source"),
        ("a0.h0->a0.h1<q>", "has no edge 'a0.h0->a0.h1<q>'"),
        ("input->a9.h0<q>", "has no edge 'input->a9.h0<q>'"),
        ("A0.1->MLP 5", "'A0.1->MLP 5' is no edge name"),
    ],
)
def test_impossible_edges_are_refused_by_name(tmp_path: Path, edge: str, reason: str) -> None:
    path = tool_files.eap_ig_json(tmp_path / "a.json", tool_files.cfg("B_gpt2"), {"input->m0": 1.0, edge: 1.0})
    with pytest.raises(ScoreError) as caught:
        read(path)
    assert reason in str(caught.value)
    assert str(path) in str(caught.value)


def test_parallel_blocks_have_no_edge_from_a_layers_head_to_its_mlp(tmp_path: Path) -> None:
    path = tool_files.eap_ig_json(tmp_path / "a.json", tool_files.cfg("D_neox"), {"a0.h0->m0": 1.0})
    with pytest.raises(ScoreError, match=r"2 layers, 4 heads, parallel blocks\) has no edge 'a0.h0->m0'"):
        read(path)
    matrix = np.zeros((11, 27), np.float32)
    matrix[1, 12] = 0.5  # a0.h0, m0
    with pytest.raises(ScoreError, match=r"has a score for a0.h0->m0, which is no edge of this graph"):
        read(tool_files.eap_ig_pt(tmp_path / "a.pt", tool_files.cfg("D_neox"), matrix))
    assert by_name(one(tool_files.eap_ig_pt(tmp_path / "b.pt", tool_files.cfg("B_gpt2"), matrix)))["a0.h0->m0"] == 0.5
