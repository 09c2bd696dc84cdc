"""auto-circuit's prune scores in a .pt file: a tensor for each module that reads, [head, source] or [source].

The file has no names: a source is its number in the order of the forward pass, which is ours too. How many layers and
heads there are, and whether attention and MLP are parallel, follows from the modules and the shapes of their tensors.
Scores of several tasks and algorithms may be nested: {task: {algorithm: scores}}.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from circuitdb.errors import ScoreError
from circuitdb.graph import QKV, GraphShape
from circuitdb.ingest.formats import torch_file
from circuitdb.ingest.formats.found import AUTO_CIRCUIT, Found, checked_shape, finite, parted

_MODULE = re.compile(
    r"blocks\.(?P<layer>\d{1,9})\.(?:hook_(?P<qkv>[qkv])_input|hook_(?P<mlp>mlp)_in|hook_(?P<end>resid)_post)"
)
_MERGED = re.compile(r"blocks\.\d+\.hook_attn_in")


def is_scores(value: object) -> bool:
    """Whether what a .pt file holds is prune scores, perhaps nested."""
    if not isinstance(value, dict) or not value:
        return False
    key, inner = next(iter(value.items()))
    return (isinstance(key, str) and key.startswith("blocks.")) or is_scores(inner)


def read(value: Mapping[Any, Any], where: str, n_bytes: int) -> list[Found]:
    """The circuits of a loaded file of so many bytes. Raises ScoreError for one that breaks the layout."""
    return [_one(scores, keys, where, n_bytes) for keys, scores in _leaves(value, (), where)]


def _leaves(
    value: Mapping[Any, Any], keys: tuple[str, ...], where: str
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Each set of prune scores, with the keys that lead to it."""
    if all(isinstance(key, str) and key.startswith("blocks.") for key in value):
        yield keys, value
        return
    for key, inner in value.items():
        if len(keys) == 2 or not isinstance(inner, dict) or not inner:
            raise ScoreError(f"{where}: {str(key)[:60]!r} is no module of prune scores, such as blocks.0.hook_q_input.")
        yield from _leaves(inner, (*keys, str(key)), where)


def _one(scores: Mapping[str, Any], keys: tuple[str, ...], where: str, n_bytes: int) -> Found:
    shape = _shape(scores, where, n_bytes)
    matrix = np.full((shape.n_sources, shape.n_targets), np.nan)
    width = 3 * shape.n_heads + 1
    n_mlp = shape.sources_before(0, mlp=True)
    for name, tensor in scores.items():
        module = _module(name, where)
        layer = int(module["layer"])
        before = layer * (shape.n_heads + 1)
        if module["qkv"]:
            block = torch_file.numbers(tensor, (shape.n_heads, 1 + before), name, where)
            first = layer * width + QKV.index(module["qkv"])
            matrix[: 1 + before, first : first + 3 * shape.n_heads : 3] = block.T
        elif module["mlp"]:
            matrix[: n_mlp + before, (layer + 1) * width - 1] = torch_file.numbers(
                tensor, (n_mlp + before,), name, where
            )
        else:
            matrix[:, -1] = torch_file.numbers(tensor, (shape.n_sources,), name, where)
    found, _ = parted(finite(matrix[shape.edge_sources, shape.edge_targets]), None, where=where)
    return Found(
        AUTO_CIRCUIT, "prune scores", shape, found, None,
        task=keys[0] if len(keys) == 2 else None,
        method=keys[-1] if keys else None,
        part="/".join(keys) or None,
    )  # fmt: skip


def _shape(scores: Mapping[str, Any], where: str, n_bytes: int) -> GraphShape:
    """The graph, from the modules that there are. Raises ScoreError where one is lacking."""
    modules = {name: _module(name, where) for name in scores}
    n_layers = 1 + max(int(module["layer"]) for module in modules.values())
    if n_layers > len(modules):
        raise ScoreError(f"{where} has {len(modules)} modules, too few for its {n_layers:,} layers; it is cut short.")
    wanted = [f"blocks.{layer}.hook_{q}_input" for layer in range(n_layers) for q in QKV]
    wanted += [f"blocks.{layer}.hook_mlp_in" for layer in range(n_layers)]
    lacking = [name for name in [*wanted, f"blocks.{n_layers - 1}.hook_resid_post"] if name not in scores]
    if lacking:
        raise ScoreError(f"{where} has no scores for {lacking[0]}, which every transformer of its layers has.")
    if len(modules) > len(wanted) + 1:
        odd = next(name for name, module in modules.items() if module["end"] and int(module["layer"]) < n_layers - 1)
        raise ScoreError(f"{where} has scores for {odd}, which is no target of the factorized graph.")
    heads: tuple[int, ...] = tuple(getattr(scores["blocks.0.hook_q_input"], "shape", ()))
    mlp: tuple[int, ...] = tuple(getattr(scores["blocks.0.hook_mlp_in"], "shape", ()))
    if len(heads) == 3 or len(mlp) == 2:
        raise ScoreError(
            f"{where} has a score for each position of an edge; circuitdb has one an edge: sum them over the positions "
            "if the algorithm's scores add up."
        )
    if len(heads) != 2 or heads[1] != 1 or len(mlp) != 1 or mlp[0] not in (1, 1 + heads[0]):
        raise ScoreError(
            f"{where}: the shapes of blocks.0.hook_q_input, {list(heads)}, and blocks.0.hook_mlp_in, {list(mlp)}, are "
            "not [heads, 1] and [1 + heads] or [1]."
        )
    return checked_shape(n_layers, int(heads[0]), mlp[0] == 1, where=where, n_bytes=n_bytes)


def _module(name: str, where: str) -> re.Match[str]:
    if _MERGED.fullmatch(name):
        raise ScoreError(
            f"{where} has {name}: one score for q, k and v together, which circuitdb's edges keep apart; make the "
            "scores with separate_qkv=True."
        )
    found = _MODULE.fullmatch(name)
    if found is None:
        raise ScoreError(f"{where}: {name[:60]!r} is no module that reads from the residual stream.")
    return found
