"""From score vectors to Arrow tables: shapes and types checked, non-finite scores made NULL and counted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb.errors import ScoreError
from circuitdb.graph import GraphShape

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class ScoreBatch:
    """The scores of one circuit: `scores` [n_edges] and `folds` [n_folds, n_edges], float32.

    Non-finite scores stay in the arrays; they become NULL in the tables and are counted in `n_nonfinite`.
    """

    scores: FloatArray
    folds: FloatArray

    @classmethod
    def check(cls, shape: GraphShape, scores: npt.ArrayLike, folds: npt.ArrayLike | None = None) -> ScoreBatch:
        """Take scores in edge order. Raises ScoreError on a wrong shape or type."""
        whole = _floats(scores, "scores")
        parts = np.empty((0, shape.n_edges), np.float32) if folds is None else _floats(folds, "fold scores")
        if whole.shape != (shape.n_edges,):
            raise ScoreError(
                f"Scores have shape {whole.shape}; this graph has {shape.n_edges:,} edges, one score each."
            )
        if parts.ndim != 2 or parts.shape[1] != shape.n_edges:
            raise ScoreError(f"Fold scores have shape {parts.shape}; they must be [folds, {shape.n_edges}].")
        return cls(whole, parts)

    @property
    def n_nonfinite(self) -> int:
        """How many of the circuit's scores are NaN or infinite."""
        return int(np.count_nonzero(~np.isfinite(self.scores)))

    @property
    def digest(self) -> str:
        """The `score_digest` of the circuit's scores."""
        return score_digest(self.scores)

    def score_table(self, circuit_id: int) -> pa.Table:
        """Rows of `edge_score`, in edge order."""
        n = self.scores.size
        return pa.table(
            {
                "circuit_id": pa.array(np.full(n, circuit_id, np.int32)),
                "edge_id": pa.array(np.arange(n, dtype=np.int32)),
                "score": _nullable(self.scores),
            }
        )

    def fold_table(self, circuit_id: int) -> pa.Table:
        """Rows of `fold_score`, fold by fold in edge order."""
        k, n = self.folds.shape
        return pa.table(
            {
                "circuit_id": pa.array(np.full(k * n, circuit_id, np.int32)),
                "fold": pa.array(np.repeat(np.arange(k, dtype=np.int32), n)),
                "edge_id": pa.array(np.tile(np.arange(n, dtype=np.int32), k)),
                "score": _nullable(self.folds.reshape(-1)),
            }
        )


@dataclass(frozen=True)
class ExampleBatch:
    """Scores of single examples: `scores` [n, n_edges] float32, and the `positions` of the examples in the circuit."""

    scores: FloatArray
    positions: tuple[int, ...]

    @classmethod
    def check(cls, shape: GraphShape, scores: npt.ArrayLike | None, positions: Sequence[int]) -> ExampleBatch:
        """Take scores in edge order, or none. Raises ScoreError on a wrong shape or type."""
        if scores is None:
            return cls(np.empty((0, shape.n_edges), np.float32), ())
        found = _floats(scores, "example scores")
        if found.shape != (len(positions), shape.n_edges):
            raise ScoreError(
                f"Example scores have shape {found.shape}; they must be [{len(positions)}, {shape.n_edges}], "
                "a row for each scored example."
            )
        return cls(found, tuple(positions))

    def tables(self, circuit_id: int) -> Iterator[pa.Table]:
        """Rows of `example_score`, a table for each example, so that not all need memory at once."""
        n = self.scores.shape[1]
        for position, scores in zip(self.positions, self.scores, strict=True):
            yield pa.table(
                {
                    "circuit_id": pa.array(np.full(n, circuit_id, np.int32)),
                    "position": pa.array(np.full(n, position, np.int32)),
                    "edge_id": pa.array(np.arange(n, dtype=np.int32)),
                    "score": _nullable(scores),
                }
            )


def score_digest(scores: FloatArray) -> str:
    """SHA-256 of the scores as little-endian float32 in edge order; every non-finite score counts as one NaN."""
    clean = np.where(np.isfinite(scores), scores + np.float32(0), np.float32(np.nan))  # + 0 folds -0.0
    return hashlib.sha256(clean.astype("<f4").tobytes()).hexdigest()


def graph_tables(shape: GraphShape, graph_id: int) -> tuple[pa.Table, pa.Table]:
    """Rows of `node` and `edge` of a graph shape."""
    node_names = [*shape.source_names, "logits"]
    kinds = np.array([_kind(name) for name in node_names])
    layers, heads = _places(node_names)
    nodes = pa.table(
        {
            "graph_id": pa.array(np.full(len(node_names), graph_id, np.int32)),
            "node_id": pa.array(np.arange(len(node_names), dtype=np.int32)),
            "name": node_names,
            "kind": kinds.tolist(),
            "layer": pa.array(layers, mask=layers < 0),
            "head": pa.array(heads, mask=heads < 0),
        }
    )
    target_names = np.array(shape.target_names)
    qkv = np.array([name[-2] if name.endswith(">") else "" for name in shape.target_names])
    sources, targets = shape.edge_sources, shape.edge_targets
    ends = shape.edge_target_nodes
    branch = qkv[targets]
    edges = pa.table(
        {
            "graph_id": pa.array(np.full(shape.n_edges, graph_id, np.int32)),
            "edge_id": pa.array(np.arange(shape.n_edges, dtype=np.int32)),
            "name": shape.edge_names,
            "source": np.array(node_names)[sources].tolist(),
            "target": target_names[targets].tolist(),
            "source_id": pa.array(sources),
            "target_id": pa.array(ends),
            "source_kind": kinds[sources].tolist(),
            "source_layer": pa.array(layers[sources], mask=layers[sources] < 0),
            "source_head": pa.array(heads[sources], mask=heads[sources] < 0),
            "target_kind": kinds[ends].tolist(),
            "target_layer": pa.array(layers[ends], mask=layers[ends] < 0),
            "target_head": pa.array(heads[ends], mask=heads[ends] < 0),
            "qkv": pa.array(branch.tolist(), mask=branch == ""),
        }
    )
    return nodes, edges


def _kind(name: str) -> str:
    return {"a": "head", "m": "mlp"}.get(name[0], name)


def _places(names: list[str]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Layer and head of each node, -1 where it has none."""
    layers, heads = [], []
    for name in names:
        layer, _, head = name[1:].partition(".h")
        layers.append(int(layer) if layer.isdigit() else -1)
        heads.append(int(head) if head else -1)
    return np.array(layers, np.int32), np.array(heads, np.int32)


def _floats(values: npt.ArrayLike, what: str) -> FloatArray:
    array = np.asarray(values)
    if array.dtype.kind not in "fiu":
        raise ScoreError(f"The {what} are of type {array.dtype}; they must be real numbers.")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)


def _nullable(values: FloatArray) -> pa.Array:
    return pa.array(values, mask=~np.isfinite(values))
