"""Files in the layouts of other tools, written and read by these tools' own rules and none of the product's code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

Numbers = npt.NDArray[Any]
# (layers, heads, parallel, key-value heads, width) of the golden models, from their config.json.
GOLDEN = {
    "B_gpt2": (2, 4, False, 4, 32),
    "C_llama_gqa": (3, 4, False, 2, 32),
    "D_neox": (2, 4, True, 4, 32),
    "E_gemma2": (2, 4, False, 2, 32),
}


def cfg(model: str) -> dict[str, Any]:
    """What EAP-IG writes of a golden model."""
    n_layers, n_heads, parallel, _, d_model = GOLDEN[model]
    return {"n_layers": n_layers, "n_heads": n_heads, "parallel_attn_mlp": parallel, "d_model": d_model}


def source_names(n_layers: int, n_heads: int) -> list[str]:
    """EAP-IG's sources, by their row."""
    blocks = [[*(f"a{layer}.h{head}" for head in range(n_heads)), f"m{layer}"] for layer in range(n_layers)]
    return ["input", *(name for block in blocks for name in block)]


def target_names(n_layers: int, n_heads: int) -> list[str]:
    """EAP-IG's targets, by their column: all q of a layer, all k, all v, the MLP."""
    names = []
    for layer in range(n_layers):
        names += [f"a{layer}.h{head}<{letter}>" for letter in "qkv" for head in range(n_heads)]
        names.append(f"m{layer}")
    return [*names, "logits"]


def eap_ig_json(path: Path, config: Mapping[str, Any], edges: Mapping[str, Any], *, plain: bool = False) -> Path:
    """EAP-IG's JSON, nodes as objects or (circuit-stability) as plain booleans; an edge is its score or its object."""
    names = [*source_names(config["n_layers"], config["n_heads"]), "logits"]
    content = {
        "cfg": dict(config),
        "nodes": {name: True if plain else {"in_graph": True} for name in names},
        "edges": {
            name: edge if isinstance(edge, dict) else {"score": edge, "in_graph": False} for name, edge in edges.items()
        },
    }
    path.write_text(json.dumps(content))
    return path


def eap_ig_pt(path: Path, config: Mapping[str, Any], matrix: Numbers, **more: object) -> Path:
    """EAP-IG's .pt."""
    n_layers, n_heads = config["n_layers"], config["n_heads"]
    content = {
        "cfg": dict(config),
        "src_nodes": source_names(n_layers, n_heads),
        "dst_nodes": target_names(n_layers, n_heads),
        "edges_scores": torch.from_numpy(np.array(matrix)),
        "edges_in_graph": torch.zeros(matrix.shape, dtype=torch.bool),
        "nodes_in_graph": torch.zeros(matrix.shape[0], dtype=torch.bool),
        **more,
    }
    torch.save({key: value for key, value in content.items() if value is not None}, path)
    return path


def load_eap_ig(path: Path) -> tuple[dict[str, float], dict[str, bool], dict[str, bool]]:
    """(score and membership of each edge, membership of each node), as EAP-IG's `from_json` and `from_pt` set them.

    Edges that a JSON file does not mention keep what a new graph has: a score of 0, and they are out.
    """
    if path.suffix == ".json":
        content = json.loads(path.read_text())
        assert {"cfg", "nodes", "edges"} <= set(content)
        assert content["cfg"]["d_model"] >= 1
        scores = dict.fromkeys(edge_names(content["cfg"]), 0.0)
        inside = dict.fromkeys(scores, False)
        nodes = dict.fromkeys(source_names(content["cfg"]["n_layers"], content["cfg"]["n_heads"]), False)
        for name, node in content["nodes"].items():
            if name != "logits":
                assert name in nodes
                nodes[name] = node["in_graph"]
        for name, edge in content["edges"].items():
            assert name in scores
            scores[name], inside[name] = float(np.float32(edge["score"])), edge["in_graph"]
        return scores, inside, nodes
    content = torch.load(path, weights_only=True)
    required = ["cfg", "src_nodes", "dst_nodes", "edges_scores", "edges_in_graph", "nodes_in_graph"]
    assert all(key in content for key in required)
    assert content["edges_scores"].shape == content["edges_in_graph"].shape
    n_layers, n_heads = content["cfg"]["n_layers"], content["cfg"]["n_heads"]
    rows = {name: i for i, name in enumerate(source_names(n_layers, n_heads))}
    columns = {name: i for i, name in enumerate(target_names(n_layers, n_heads))}
    assert content["src_nodes"] == list(rows)
    assert content["dst_nodes"] == list(columns)
    assert content["edges_scores"].shape == (len(rows), len(columns))
    cells = {name: (rows[name.split("->")[0]], columns[name.split("->")[1]]) for name in edge_names(content["cfg"])}
    scores = {name: content["edges_scores"][cell].item() for name, cell in cells.items()}
    inside = {name: content["edges_in_graph"][cell].item() for name, cell in cells.items()}
    return scores, inside, dict(zip(rows, content["nodes_in_graph"].tolist(), strict=True))


def edge_names(config: Mapping[str, Any]) -> list[str]:
    """Every edge that EAP-IG makes for a model, by its own loop over the residual stream."""
    names, stream = [], ["input"]
    for layer in range(config["n_layers"]):
        heads = [f"a{layer}.h{head}" for head in range(config["n_heads"])]
        names += [f"{source}->{head}<{letter}>" for source in stream for head in heads for letter in "qkv"]
        read = stream if config["parallel_attn_mlp"] else [*stream, *heads]
        names += [f"{source}->m{layer}" for source in read]
        stream = [*stream, *heads, f"m{layer}"]
    return [*names, *(f"{source}->logits" for source in stream)]


def prune_scores(config: Mapping[str, Any], scores: Mapping[str, float]) -> dict[str, torch.Tensor]:
    """auto-circuit's prune scores of edge scores by name: [head, source] or [source], in the order of the pass."""
    n_layers, n_heads = config["n_layers"], config["n_heads"]
    stream = source_names(n_layers, n_heads)
    found = {}
    for layer in range(n_layers):
        before = stream[: 1 + layer * (n_heads + 1)]
        for letter in "qkv":
            rows = [[scores[f"{s}->a{layer}.h{head}<{letter}>"] for s in before] for head in range(n_heads)]
            found[f"blocks.{layer}.hook_{letter}_input"] = torch.tensor(rows)
        heads = [] if config["parallel_attn_mlp"] else [f"a{layer}.h{head}" for head in range(n_heads)]
        found[f"blocks.{layer}.hook_mlp_in"] = torch.tensor([scores[f"{s}->m{layer}"] for s in [*before, *heads]])
    found[f"blocks.{n_layers - 1}.hook_resid_post"] = torch.tensor([scores[f"{s}->logits"] for s in stream])
    return found
