"""Scores by gradients along paths of activations: eap-ig-activations.

One after the other, the embedding, each layer's heads together and each MLP are set between what they write when
ablated and what they write in the clean run, all else being computed from the clean prompt. As in the published method,
the gradients of all targets count in every such run: a score is <ablated - clean output, mean gradient over all runs>.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import Module

from circuitdb.ingest.batch import Batch, Gradients
from circuitdb.ingest.contract import contract
from circuitdb.ingest.hooks import hooks
from circuitdb.ingest.methods import Point
from circuitdb.ingest.sources import Written


def activation_scores(
    batch: Batch, points: Sequence[Point], progress: Callable[[float], None]
) -> Float[Tensor, "part source target"]:
    """Scores summed over each part's examples. `progress` is told the share that is done."""
    batch.run_clean()
    batch.run_ablated()
    sources = batch.changes().all()
    batch.forget_sources()
    writers = _writers(batch, sources)
    targets = batch.new_targets(len(points))
    shape = batch.anatomy.shape
    total = torch.zeros(len(batch.parts), shape.n_sources, shape.n_targets, dtype=torch.float64)
    for done, (point_of_writing, change) in enumerate(writers):
        targets.clear()
        for first in range(0, len(points), batch.at_once):
            _run_between(batch, (targets, first, points[first : first + batch.at_once]), point_of_writing, change)
        total += contract(batch.anatomy, lambda rows: sources[:, rows], targets, batch.row_parts)
        progress((done + 1) / len(writers))
    return total / len(writers)


def _writers(batch: Batch, sources: Written) -> list[tuple[Module, Tensor]]:
    """Where each group of sources writes, and by how much it changes when all of the group are ablated."""
    n_heads = batch.anatomy.shape.n_heads
    found = [(batch.anatomy.stream, sources[0])]
    for index, layer in enumerate(batch.anatomy.layers):
        first = 1 + index * (n_heads + 1)
        found.append((layer.attention_out, sources[first : first + n_heads].sum(0)))
        found.append((layer.mlp_out, sources[first + n_heads]))
    return found


def _run_between(batch: Batch, gradients: Gradients, where: Module, change: Tensor) -> None:
    def between(own: Tensor) -> Tensor:
        one = change.reshape(-1, *own.shape[1:]).to(own)
        return (own.detach() + torch.cat([(1 - point.position) * one for point in gradients[2]])).requires_grad_(True)

    with hooks() as held:
        held.replace(where, between)
        batch.gradient_pass(held, batch.group.clean, gradients)
