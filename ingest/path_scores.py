"""Scores by gradients along the straight path from the corrupted to the clean run: eap, eap-ig, clean-corrupted.

A point of the path that is the clean or the corrupted run itself shares the pass that finds what the sources write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from circuitdb.ingest.batch import Batch
from circuitdb.ingest.contract import contract
from circuitdb.ingest.hooks import hooks
from circuitdb.ingest.methods import Point


def path_scores(batch: Batch, points: Sequence[Point]) -> Float[Tensor, "part source target"]:
    """Scores summed over each part's examples: <ablated - clean output, weighted mean gradient over the points>."""
    targets = batch.new_targets(len(points))
    at = {point.position: (targets, step, point) for step, point in enumerate(points)}
    batch.run_clean(at.pop(1.0, None))
    batch.run_ablated(at.pop(0.0, None))
    for _, step, point in at.values():
        if batch.clean is None or batch.corrupted is None:
            raise AssertionError("a path between the runs needs both of them")
        between = torch.lerp(batch.corrupted.embedding, batch.clean.embedding, point.position)
        with hooks() as held:
            held.replace(batch.anatomy.stream, _always(between))
            batch.gradient_pass(held, batch.group.clean, targets, step, point, batch.clean_logits)
    return contract(batch.anatomy, batch.differences(), targets, batch.row_parts)


def _always(value: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda _own: value
