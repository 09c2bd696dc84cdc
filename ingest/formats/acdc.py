"""ACDC's edge lists, as JSON or in a .pt file: [[child, child index, parent, parent index], effect size], one an edge.

Only edges that are in the circuit are listed, so it is a hard circuit with scores for its own edges. What ACDC's
`save_edges` writes is a pickle of its own classes, which is refused; docs/interchange.md has the lines that turn it
into JSON. The list does not tell how many heads the model has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from circuitdb.errors import ScoreError
from circuitdb.graph import GraphShape
from circuitdb.ingest.formats import edges
from circuitdb.ingest.formats.found import ACDC, Found, finite

_SOURCE = re.compile(
    r"(?P<input>blocks\.0\.hook_resid_pre|hook_embed)|blocks\.(?P<layer>\d{1,9})\.(?:attn\.hook_(?P<head>result)|hook_mlp_out)"
)
_TARGET = re.compile(
    r"blocks\.(?P<layer>\d{1,9})\.hook_(?:(?P<qkv>[qkv])_input|resid_(?P<mlp>mid)|(?P<also>mlp)_in|resid_(?P<end>post))"
)
# Within a head or an MLP: what it reads and what it computes of it are one node to circuitdb.
_INNER = re.compile(r"blocks\.\d+\.(?:attn\.hook_[qkv]|hook_mlp_out|attn\.hook_result)")


def is_list(value: object) -> bool:
    """Whether a value is such a list, by its first entry."""
    if not isinstance(value, list | tuple) or not value:
        return False
    entry = value[0]
    return isinstance(entry, list | tuple) and len(entry) == 2 and isinstance(entry[0], list | tuple)


def read(value: Sequence[object], where: str, shape: GraphShape | None) -> Found:
    """The circuit of a list, in a graph of the given shape. Raises ScoreError for one that breaks the layout."""
    if shape is None:
        raise ScoreError(
            f"{where} lists edges of a circuit by ACDC, which does not tell how many layers and heads the model has; "
            "say it with --shape, such as --shape 12x12."
        )
    parsed = [_edge(entry, where, shape) for entry in value]
    named = [(name, effect) for name, effect in parsed if name is not None]
    if not named:
        raise ScoreError(f"{where} has no edge between two nodes of the graph; there is nothing to import.")
    places = edges.ids(shape, [name for name, _ in named], where=where)
    scores = np.full(shape.n_edges, np.nan)
    scores[places] = [effect for _, effect in named]
    members = np.zeros(shape.n_edges, bool)
    members[places] = True
    found = finite(scores)
    return Found(
        ACDC, "edge list", shape, found if np.isfinite(found).any() else None, members, shape.n_edges - len(places),
        method="acdc",
    )  # fmt: skip


def _edge(entry: object, where: str, shape: GraphShape) -> tuple[str | None, float]:
    """(name of the edge, None for one within a node; its effect, NaN for none)."""
    match entry:
        case [[str() as child, list() | tuple() as into, str() as parent, list() | tuple() as out], effect]:
            pass
        case _:
            raise ScoreError(
                f"{where}: an entry is not [[child, its index, parent, its index], effect size]: {str(entry)[:80]}."
            )
    if not isinstance(effect, int | float | None) or isinstance(effect, bool):
        raise ScoreError(f"{where}: the effect size of {parent} -> {child} is {str(effect)[:40]}, no number.")
    value = np.nan if effect is None else _real(effect)
    if "hook_pos_embed" in (parent, child):
        raise ScoreError(
            f"{where} parts the input into the embeddings of tokens and of positions (use_pos_embed), which are one "
            "node in circuitdb's graph; run ACDC without it."
        )
    target, source = _TARGET.fullmatch(child), _SOURCE.fullmatch(parent)
    if target is None and _INNER.fullmatch(child):
        return None, value
    if target is None or source is None:
        odd = child if target is None else parent
        raise ScoreError(f"{where}: {odd[:80]!r} is no node that {'reads' if target is None else 'writes'}.")
    head = f".h{_head(out, parent, where)}" if source["head"] else ""
    name = "input" if source["input"] else f"{'a' if head else 'm'}{source['layer']}{head}"
    layer = target["layer"]
    if target["qkv"]:
        return f"{name}->a{layer}.h{_head(into, child, where)}<{target['qkv']}>", value
    if target["end"]:
        if int(layer) != shape.n_layers - 1:
            raise ScoreError(
                f"{where} ends in {child}, but --shape says that the model has {shape.n_layers} layers; one is wrong."
            )
        return f"{name}->logits", value
    return f"{name}->m{layer}", value


def _head(index: Sequence[object], node: str, where: str) -> int:
    """The head of an index [None, None, head]."""
    last = index[-1] if index else None
    if len(index) != 3 or index[1] is not None or not isinstance(last, int) or isinstance(last, bool) or last < 0:
        raise ScoreError(f"{where}: the index of {node} is {str(list(index))[:40]}; it must be [null, null, head].")
    return last


def _real(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return np.inf
