"""EAP-IG's JSON, also that of circuit-stability: `cfg`, `nodes` and `edges`, an object an edge.

circuit-stability's dialect has nodes that are plain booleans and `n_kv_heads` in `cfg`. In both a score may be a
number, null, NaN, an infinity or absent, and `in_graph` may be absent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from circuitdb.errors import ScoreError
from circuitdb.graph import GraphShape
from circuitdb.ingest.formats import edges
from circuitdb.ingest.formats.found import EAP_IG, Found, Members, Scores, checked_shape, finite, parted, size

UNKNOWN_WIDTH = 1
_EDGE = pa.struct([("score", pa.float64()), ("in_graph", pa.bool_())])


def is_graph(value: object) -> bool:
    """Whether a value read from JSON is such a file."""
    return isinstance(value, dict) and "edges" in value and "cfg" in value


def read(value: Mapping[str, Any], where: str, n_bytes: int) -> Found:
    """The circuit of a parsed file of so many bytes. Raises ScoreError for one that breaks the layout."""
    cfg, nodes, listed = value["cfg"], value.get("nodes", {}), value["edges"]
    for name, part in (("cfg", cfg), ("nodes", nodes), ("edges", listed)):
        if not isinstance(part, dict):
            raise ScoreError(f"{where}: {name} is no object; EAP-IG's files have one there.")
    shape = shape_of_cfg(cfg, where, n_bytes)
    if not listed:
        raise ScoreError(f"{where} has no edges; there is nothing to import.")
    try:
        table = pa.array(list(listed.values()), _EDGE)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _odd(listed, where) from error
    if table.null_count:
        raise _odd(listed, where)
    places = edges.ids(shape, list(listed), where=where)
    scores = np.full(shape.n_edges, np.nan, np.float32)
    scores[places] = finite(table.field("score").fill_null(np.nan).to_numpy(zero_copy_only=False))
    chosen = table.field("in_graph")
    members = None
    if chosen.null_count < len(chosen):
        members = np.zeros(shape.n_edges, bool)
        members[places] = chosen.fill_null(False).to_numpy(zero_copy_only=False)
    kept, inside = parted(scores, members, where=where)
    plain = any(isinstance(node, bool) for node in nodes.values())
    return Found(
        EAP_IG, "circuit-stability JSON" if plain else "JSON", shape, kept, inside, shape.n_edges - len(places),
        size(cfg.get("n_kv_heads"), "n_kv_heads", where=where), width(cfg, where),
        notes=_notes(nodes, where),
    )  # fmt: skip


def write(
    path: Path, shape: GraphShape, scores: Scores | None, members: Members | None, *, d_model: int | None
) -> None:
    """A file that EAP-IG's `Graph.from_json` loads.

    Args:
        path: the new file.
        shape: the graph.
        scores: [n_edges]; an edge of NaN is left out, which EAP-IG takes for a score of 0 outside of the circuit. None:
            every score is NaN, EAP-IG's word for none.
        members: [n_edges], the edges that are in; None for none.
        d_model: width of the model, as far as it is known; EAP-IG needs one only to load scores of neurons.
    """
    inside = np.zeros(shape.n_edges, bool) if members is None else members
    values = np.full(shape.n_edges, np.nan) if scores is None else scores.astype(np.float64)
    told = np.ones(shape.n_edges, bool) if scores is None else np.isfinite(scores)
    names = np.array(shape.edge_names, object)[told].tolist()
    rows = zip(names, values[told].tolist(), inside[told].tolist(), strict=True)
    content = {
        "cfg": config(shape, d_model),
        "nodes": {name: {"in_graph": is_in} for name, is_in in nodes_in(shape, inside).items()},
        "edges": {name: {"score": score, "in_graph": is_in} for name, score, is_in in rows},
    }
    path.write_text(json.dumps(content), encoding="utf-8")


def config(shape: GraphShape, d_model: int | None) -> dict[str, int | bool]:
    """What EAP-IG makes a graph from; an unknown width is given as 1: it sizes scores of neurons, which are none."""
    return {
        "n_layers": shape.n_layers, "n_heads": shape.n_heads, "parallel_attn_mlp": shape.parallel,
        "d_model": d_model or UNKNOWN_WIDTH,
    }  # fmt: skip


def width(cfg: Mapping[str, object], where: str) -> int | None:
    """The width of the model; None where it is not told, or unknown to the circuitdb that wrote the file."""
    found = size(cfg.get("d_model"), "d_model", where=where)
    return None if found == UNKNOWN_WIDTH else found


def nodes_in(shape: GraphShape, members: Members) -> dict[str, bool]:
    """Of each node whether it is in, as EAP-IG sees it: an edge leads out of it and, but for the input, one into it."""
    n_in = np.bincount(shape.edge_target_nodes[members], minlength=shape.n_sources + 1)[: shape.n_sources]
    n_out = np.bincount(shape.edge_sources[members], minlength=shape.n_sources)
    inside = (n_out > 0) & (n_in > 0)
    inside[0] = n_out[0] > 0
    return {**dict(zip(shape.source_names, inside.tolist(), strict=True)), "logits": True}


def shape_of_cfg(cfg: Mapping[str, object], where: str, n_bytes: int) -> GraphShape:
    """The graph of a `cfg`. Raises ScoreError where it lacks a size."""
    lacking = [name for name in ("n_layers", "n_heads") if name not in cfg]
    if lacking:
        raise ScoreError(f"{where}: cfg has no {lacking[0]}, so the graph is not known.")
    parallel = cfg.get("parallel_attn_mlp")
    return checked_shape(cfg["n_layers"], cfg["n_heads"], parallel, where=where, n_bytes=n_bytes)


def _odd(listed: Mapping[str, object], where: str) -> ScoreError:
    """What is wrong with the first edge that is not as it should be."""
    for name, edge in listed.items():
        if not isinstance(edge, dict):
            return ScoreError(f"{where}: the edge {name!r} is no object with a score.")
        score, inside = edge.get("score"), edge.get("in_graph")
        if not isinstance(score, int | float | None):
            return ScoreError(f"{where}: the score of {name!r} is {score!r}; it must be a number or null.")
        if not isinstance(inside, bool | None):
            return ScoreError(f"{where}: in_graph of {name!r} is {inside!r}; it must be true or false.")
    return ScoreError(f"{where} has a score too large to be read.")


def _notes(nodes: Mapping[str, object], where: str) -> tuple[str, ...]:
    """What of a file is not stored."""
    inner = [node for node in nodes.values() if isinstance(node, dict)]
    scored = any(isinstance(node.get("score"), int | float) and np.isfinite(node["score"]) for node in inner)
    found = [("nodes", scored), ("neurons", any("neurons" in node or "neurons_scores" in node for node in inner))]
    return tuple(f"{where} also tells of {what}, which are not stored." for what, there in found if there)
