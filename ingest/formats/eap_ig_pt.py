"""EAP-IG's .pt, also that of circuit-stability: a dense matrix of scores, [source, target column].

The names of the targets stand in another order than ours: of each layer all q, then all k, then all v, then the MLP.

circuit-stability's dialect has `src_nodes` as a dict, one k and v column for each key-value head, and a fault: a layer
is one column shorter than it should be, so that m{l} and a{l+1}.h0<q> share a column, which holds the sum of the two
scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from circuitdb.errors import ScoreError
from circuitdb.graph import QKV, GraphShape
from circuitdb.ingest.formats import torch_file
from circuitdb.ingest.formats.eap_ig_json import config, nodes_in, shape_of_cfg, width
from circuitdb.ingest.formats.found import EAP_IG, Found, Members, Scores, finite, parted, size

Columns = npt.NDArray[np.int64]


def is_graph(value: object) -> bool:
    """Whether what a .pt file holds is such a graph."""
    return isinstance(value, dict) and "cfg" in value and "src_nodes" in value


def read(value: Mapping[str, Any], where: str, n_bytes: int) -> Found:
    """The circuit of a loaded file of so many bytes. Raises ScoreError for one that breaks the layout."""
    cfg, sources = value["cfg"], value["src_nodes"]
    if not isinstance(cfg, dict):
        raise ScoreError(f"{where}: cfg is no dict; EAP-IG's files have one there.")
    shape = shape_of_cfg(cfg, where, n_bytes)
    old = isinstance(sources, dict)
    n_kv_heads = size(cfg.get("n_kv_heads"), "n_kv_heads", where=where)
    if list(sources) != shape.source_names:
        odd = next((str(name) for name in sources if name not in set(shape.source_names)), None)
        reason = f"its graph has no source {odd!r}" if odd else "its sources are not those of its graph, in their order"
        raise ScoreError(f"{where}: {reason}; its names and its sizes do not belong together.")
    n_columns, columns = _old_columns(shape, n_kv_heads or shape.n_heads) if old else _columns(shape)
    key = next((key for key in ("edges_scores", "edges") if key in value), None)
    scores, members = None, None
    wanted = (shape.n_sources, n_columns)
    if key is not None:
        matrix = torch_file.numbers(value[key], wanted, key, where)
        if not old:
            _refuse_impossible(shape, matrix, columns, where)
        scores = finite(matrix[shape.edge_sources, columns[shape.edge_targets]].astype(np.float64))
    if "edges_in_graph" in value:
        inside = torch_file.numbers(value["edges_in_graph"], wanted, "edges_in_graph", where)
        members = inside[shape.edge_sources, columns[shape.edge_targets]] != 0
    kept, chosen = parted(scores, members, where=where)
    return Found(
        EAP_IG, "circuit-stability .pt" if old else ".pt", shape, kept, chosen, 0, n_kv_heads,
        width(cfg, where), notes=_notes(value, where, old=old),
    )  # fmt: skip


def write(
    path: Path, shape: GraphShape, scores: Scores | None, members: Members | None, *, d_model: int | None
) -> None:
    """A file that EAP-IG's `Graph.from_pt` loads.

    Args:
        path: the new file.
        shape: the graph.
        scores: [n_edges], NaN for none; None for none at all.
        members: [n_edges], the edges that are in; None for none.
        d_model: width of the model, as far as it is known.
    """
    import torch

    n_columns, columns = _columns(shape)
    inside = np.zeros(shape.n_edges, bool) if members is None else members
    matrix = np.zeros((shape.n_sources, n_columns), np.float32)
    matrix[shape.edge_sources, columns[shape.edge_targets]] = np.nan if scores is None else scores
    chosen = np.zeros(matrix.shape, bool)
    chosen[shape.edge_sources, columns[shape.edge_targets]] = inside
    nodes = [is_in for name, is_in in nodes_in(shape, inside).items() if name != "logits"]
    names = np.empty(n_columns, object)
    names[columns] = shape.target_names
    content = {
        "cfg": config(shape, d_model),
        "src_nodes": shape.source_names,
        "dst_nodes": names.tolist(),
        "edges_scores": torch.from_numpy(matrix),
        "edges_in_graph": torch.from_numpy(chosen),
        "nodes_in_graph": torch.tensor(nodes),
    }
    torch.save(content, path)


def _columns(shape: GraphShape) -> tuple[int, Columns]:
    """(how many columns there are, the column of each of our targets)."""
    columns = _places(shape, shape.n_heads, 3 * shape.n_heads + 1)
    return shape.n_targets, np.append(columns, shape.n_targets - 1)


def _old_columns(shape: GraphShape, n_kv_heads: int) -> tuple[int, Columns]:
    """The same of circuit-stability, where a layer begins on the last column of the one before."""
    if shape.n_heads % n_kv_heads:
        raise ScoreError(f"{shape.n_heads} heads can't share {n_kv_heads} key-value heads; the file is damaged.")
    width = shape.n_heads + 2 * n_kv_heads
    n_columns = shape.n_layers * (width + 1) + 1
    return n_columns, np.append(_places(shape, n_kv_heads, width), n_columns - 1)


def _places(shape: GraphShape, n_kv_heads: int, stride: int) -> Columns:
    """The column of each target but the logits, in our order of targets."""
    heads = np.arange(shape.n_heads)
    shared = heads // (shape.n_heads // n_kv_heads)
    inner = np.stack([heads, shape.n_heads + shared, shape.n_heads + n_kv_heads + shared], axis=1).ravel()
    layer = np.append(inner, shape.n_heads + (len(QKV) - 1) * n_kv_heads)
    return np.asarray((np.arange(shape.n_layers)[:, None] * stride + layer).ravel(), np.int64)


def _refuse_impossible(shape: GraphShape, matrix: npt.NDArray[Any], columns: Columns, where: str) -> None:
    """Raise ScoreError where a cell that is no edge has a score; 0, NaN and the infinities are none."""
    rest = np.array(matrix)
    rest[shape.edge_sources, columns[shape.edge_targets]] = 0
    odd = np.argwhere(np.isfinite(rest) & (rest != 0))
    if not len(odd):
        return
    row, column = odd[0]
    target = shape.target_names[int(np.flatnonzero(columns == column)[0])]
    more = f", and {len(odd) - 1:,} more like it" if len(odd) > 1 else ""
    raise ScoreError(
        f"{where} has a score for {shape.source_names[row]}->{target}{more}, which is no edge of this graph: the "
        "target comes before the source."
    )


def _notes(value: Mapping[str, object], where: str, *, old: bool) -> tuple[str, ...]:
    kinds = {"nodes": ("nodes_scores",), "neurons": ("neurons", "neurons_in_graph", "neurons_scores")}
    found = [f"{where} also tells of {what}, which are not stored." for what, keys in kinds.items()
             if any(key in value for key in keys)]  # fmt: skip
    if old:
        found.append(
            f"{where} is of circuit-stability, whose matrix has one column for m0 and a1.h0<q>, and so on: both edges "
            "have the sum of their scores."
        )
    return tuple(found)
