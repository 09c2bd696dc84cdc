"""GraphML, DOT and node-link JSON, loaded by networkx."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import networkx as nx  # type: ignore[import-untyped]
import numpy as np
import pytest

from circuitdb.graph import GraphShape
from circuitdb.ingest.formats.graph_text import CircuitGraph, Value, dot, graphml, node_link

SHAPE = GraphShape(2, 2)
CHOSEN = ["input->a0.h1<q>", "input->a0.h1<k>", "input->m0", "a0.h1->m0", "m0->a1.h0<v>", "a1.h0->logits", "m1->logits"]
ABOUT: dict[str, Value] = {
    "model": 'a <"model"> & ü\\', "circuit_id": 3, "steps": None, "metric": "kl", "share": 0.1, "pruned": True,
}  # fmt: skip


@pytest.fixture
def graph() -> CircuitGraph:
    scores = np.random.default_rng(0).standard_normal(SHAPE.n_edges).astype(np.float32)
    scores[SHAPE.edge_id("m1->logits")] = np.nan
    members = np.isin(np.array(SHAPE.edge_names), CHOSEN)
    return CircuitGraph.of(SHAPE, scores, members, ABOUT)


def loaded(graph: CircuitGraph, form: str, tmp_path: Path) -> Any:
    if form == "node-link":
        return nx.node_link_graph(json.loads(node_link(graph)))
    if form == "graphml":
        (tmp_path / "a.graphml").write_text(graphml(graph), encoding="utf-8")
        return nx.read_graphml(tmp_path / "a.graphml", force_multigraph=True)
    pytest.importorskip("pydot")
    (tmp_path / "a.dot").write_text(dot(graph), encoding="utf-8")
    return nx.nx_pydot.read_dot(tmp_path / "a.dot")


def plain(value: object) -> object:
    """What pydot gives as quoted text."""
    return value.strip('"') if isinstance(value, str) else value


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # pydot uses old names of pyparsing
@pytest.mark.parametrize("form", ["node-link", "graphml", "dot"])
def test_networkx_loads_the_circuit(graph: CircuitGraph, form: str, tmp_path: Path) -> None:
    found = loaded(graph, form, tmp_path)
    assert isinstance(found, nx.MultiDiGraph)
    scores = np.random.default_rng(0).standard_normal(SHAPE.n_edges).astype(np.float32)
    wanted = set()
    for name in CHOSEN:
        source, target = name.split("->")
        score = None if name == "m1->logits" else float(scores[SHAPE.edge_id(name)])
        wanted.add((source, re.sub("<.>", "", target), target[-2] if "<" in target else None, score))
    edges = {
        (plain(u), plain(v), plain(data.get("qkv")), None if "score" not in data else float(str(plain(data["score"]))))
        for u, v, data in found.edges(data=True)
    }
    assert edges == wanted
    nodes = {plain(name): data for name, data in found.nodes(data=True)}
    assert set(nodes) == {"input", "a0.h1", "m0", "a1.h0", "m1", "logits"}
    assert plain(nodes["a1.h0"]["kind"]) == "head"
    assert (str(plain(nodes["a1.h0"]["layer"])), str(plain(nodes["a1.h0"]["head"]))) == ("1", "0")
    assert plain(nodes["input"]["kind"]) == "input"
    assert plain(nodes["m0"]["kind"]) == "mlp"
    if form != "dot":
        assert found.graph["model"] == ABOUT["model"]
        assert (found.graph["circuit_id"], found.graph["share"], found.graph["pruned"]) == (3, 0.1, True)
        assert "steps" not in found.graph


def test_what_dot_looks_like(graph: CircuitGraph) -> None:
    text = dot(graph)
    assert '  "model"="a <\\"model\\"> & ü\\\\";' in text
    (line,) = (line for line in text.splitlines() if '"m0" -> "a1.h0"' in line)
    score = float(
        np.random.default_rng(0).standard_normal(SHAPE.n_edges).astype(np.float32)[SHAPE.edge_id("m0->a1.h0<v>")]
    )
    assert f'score="{score}"' in line
    assert f'color="{"blue" if score > 0 else "red"}"' in line
    assert 'label="v"' in line


def test_an_empty_circuit_is_an_empty_graph() -> None:
    empty = CircuitGraph.of(SHAPE, None, np.zeros(SHAPE.n_edges, bool), {})
    assert nx.node_link_graph(json.loads(node_link(empty))).number_of_nodes() == 0
    assert nx.parse_graphml(graphml(empty)).number_of_nodes() == 0
    assert "->" not in dot(empty)
