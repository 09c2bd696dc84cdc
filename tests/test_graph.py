"""The edge set: its size in closed form, its names, its order."""

from __future__ import annotations

import re

import numpy as np
import pytest

from circuitdb.errors import UsageError
from circuitdb.graph import GraphShape


@pytest.mark.parametrize(
    ("shape", "n_edges"),
    [
        (GraphShape(12, 12), 32_491),  # GPT-2 small
        (GraphShape(26, 8), 74_218),  # Gemma-2-2B
        (GraphShape(30, 9), 123_211),  # SmolLM2-135M
        (GraphShape(12, 12, parallel=True), 32_347),  # Pythia-160M: 12 layers x 12 heads fewer than GPT-2
        (GraphShape(1, 1), 8),  # written out below
    ],
)
def test_number_of_edges_in_closed_form(shape: GraphShape, n_edges: int) -> None:
    assert shape.n_edges == n_edges
    assert int(shape.mask.sum()) == n_edges
    assert len(shape.edge_names) == n_edges


def test_smallest_graph_in_order() -> None:
    assert GraphShape(1, 1).edge_names == [
        "input->a0.h0<q>", "input->a0.h0<k>", "input->a0.h0<v>", "input->m0", "input->logits",
        "a0.h0->m0", "a0.h0->logits",
        "m0->logits",
    ]  # fmt: skip


def test_parallel_blocks_have_no_edge_from_a_head_to_its_own_mlp() -> None:
    shape = GraphShape(2, 1, parallel=True)
    assert "a0.h0->m0" not in shape.edge_names
    assert {"a0.h0->m1", "a0.h0->a1.h0<q>", "m0->a1.h0<v>", "m0->m1"} <= set(shape.edge_names)


@pytest.mark.parametrize("shape", [GraphShape(3, 4), GraphShape(3, 4, parallel=True)])
def test_ids_names_sources_and_targets_agree(shape: GraphShape) -> None:
    for edge in (0, 17, shape.n_edges - 1):
        source, target = shape.edge_sources[edge], shape.edge_targets[edge]
        assert shape.edge_names[edge] == f"{shape.source_names[source]}->{shape.target_names[target]}"
        assert shape.edge_id(shape.edge_names[edge]) == edge
        node = shape.edge_target_nodes[edge]
        assert shape.target_names[target].split("<")[0] == [*shape.source_names, "logits"][node]
    assert (np.diff(shape.edge_sources) >= 0).all()
    assert (np.diff(shape.target_nodes) >= 0).all()
    assert shape.sources_before(2) == 1 + 2 * 5
    assert shape.sources_before(2, mlp=True) == (11 if shape.parallel else 15)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("m1->a1.h0<q>", "the target must come after the source"),
        ("a9.h0->logits", "source and target must exist"),
        ("a0.h0", "is no edge name"),
        ("logits->m0", "is no edge name"),
    ],
)
def test_unknown_edges_are_refused_with_the_reason(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        GraphShape(2, 2).edge_id(name)


@pytest.mark.parametrize("sizes", [(0, 4), (4, 0)])
def test_a_graph_without_layers_or_heads_is_refused(sizes: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match="at least one layer and one head"):
        GraphShape(*sizes)
