"""TransformerLens' `AttributionResult`, from Python: edge scores at each position, of the opposite sign.

1. Its score is (clean - corrupted output of the source) times the gradient at the target on the corrupted run: to first
   order, what the metric gains as the edge is put from corrupted to clean. Ours is what it gains by ablation: the
   negative.
2. It has one score an edge and position. Effects of first order add up, so ours is their sum over the positions.
3. It is edge attribution patching, but with the gradient taken on the corrupted run, where `eap` takes it on the clean
   one: its method is called eap-corrupted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from circuitdb.errors import ScoreError
from circuitdb.ingest.formats import edges
from circuitdb.ingest.formats.found import ABLATED_MINUS_CLEAN, TRANSFORMER_LENS, Found, finite, shape_of

_TARGETS = {"q_input": "q", "k_input": "k", "v_input": "v"}


class Node(Protocol):
    """A node of TransformerLens' graph."""

    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def position(self) -> int: ...  # noqa: D102
    @property
    def layer(self) -> int | None: ...  # noqa: D102
    @property
    def head(self) -> int | None: ...  # noqa: D102


class AttributionResult(Protocol):
    """What TransformerLens' `attribution_patch` returns."""

    @property
    def edge_scores(self) -> Mapping[Any, float]: ...  # noqa: D102 - by pairs of nodes, but keys are invariant


def from_attribution_result(result: AttributionResult) -> Found:
    """The circuit of a result of granularity edge, ready for `importing.store`.

    `scores` [n_edges] are minus the sum over positions of the result's, float32. Whether attention and MLP are parallel
    is told by the edges that there are.

    Raises ScoreError for a result of granularity node, or one whose edges are not those of one graph.
    """
    where = "The AttributionResult"
    scores: Mapping[tuple[Node, Node], float] = result.edge_scores
    if not scores:
        raise ScoreError(f"{where} has no edge scores; make it with granularity='edge'.")
    nodes = {node for edge in scores for node in edge}
    n_layers = 1 + max((node.layer for node in nodes if node.layer is not None), default=0)
    n_heads = 1 + max((node.head for node in nodes if node.head is not None), default=0)
    names = np.array([f"{_source(writer, where)}->{_target(reader, where)}" for writer, reader in scores])
    shape = shape_of(n_layers, n_heads, "a0.h0->m0" not in names)
    distinct, place = np.unique(names, return_inverse=True)
    ids = edges.ids(shape, distinct.tolist(), where=where)
    sums = np.zeros(len(distinct))
    np.add.at(sums, place, _negative(list(scores.values())))
    found = np.full(shape.n_edges, np.nan)
    found[ids] = sums
    return Found(
        TRANSFORMER_LENS, "AttributionResult", shape, finite(found), None, shape.n_edges - len(ids),
        method="eap-corrupted", ablation="patching", sign_convention=ABLATED_MINUS_CLEAN,
    )  # fmt: skip


def _negative(values: list[float]) -> npt.NDArray[np.float64]:
    return -np.asarray(values, np.float64)


def _source(node: Node, where: str) -> str:
    if node.kind == "embed":
        return "input"
    if node.kind == "attn_head_out":
        return f"a{node.layer}.h{node.head}"
    if node.kind == "mlp_out":
        return f"m{node.layer}"
    raise ScoreError(f"{where} has an edge that starts at a {node.kind}, which writes nothing.")


def _target(node: Node, where: str) -> str:
    if node.kind in _TARGETS:
        return f"a{node.layer}.h{node.head}<{_TARGETS[node.kind]}>"
    if node.kind == "mlp_in":
        return f"m{node.layer}"
    if node.kind == "logits":
        return "logits"
    raise ScoreError(f"{where} has an edge that ends at a {node.kind}, which reads nothing.")
