"""Scores by gradients along the straight path from the corrupted to the clean run: eap, eap-ig, clean-corrupted.

A point of the path that is the clean or the corrupted run itself shares the pass that finds what the sources write. The
path of a pair of unequal length ends at another run than the corrupted one: at the clean prompt's positions, with the
corrupted prompt's embedding wherever it has one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from circuitdb.ingest.batch import Batch, Gradients
from circuitdb.ingest.contract import contract
from circuitdb.ingest.hooks import hooks
from circuitdb.ingest.methods import Point


def path_scores(batch: Batch, points: Sequence[Point]) -> Float[Tensor, "part source target"]:
    """Scores summed over each part's examples: <ablated - clean output, weighted mean gradient over the points>."""
    targets = batch.new_targets(len(points))
    runs = {1.0} if batch.group.padded else {0.0, 1.0}
    ends = [point for point in points if point.position in runs]
    at = {point.position: (targets, step, [point]) for step, point in enumerate(ends)}
    batch.run_clean(at.get(1.0))
    batch.run_ablated(at.get(0.0))
    changes = batch.changes()
    batch.forget_sources()
    between = [point for point in points if point not in ends]
    for start in range(0, len(between), batch.at_once):
        _run_between(batch, (targets, len(ends) + start, between[start : start + batch.at_once]))
    return contract(batch.anatomy, changes.rows, targets, batch.row_parts)


def _run_between(batch: Batch, gradients: Gradients) -> None:
    if batch.clean is None or batch.corrupted is None:
        raise AssertionError("a path between the runs needs both of them")
    ends = batch.corrupted.embedding, batch.clean.embedding
    streams = torch.cat([torch.lerp(*ends, point.position) for point in gradients[2]])
    with hooks() as held:
        held.replace(batch.anatomy.stream, lambda _own: streams)
        batch.gradient_pass(held, batch.group.clean, gradients)
