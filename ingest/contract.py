"""From what sources wrote and how targets would feel it to a score for every edge: one matrix product for some layers.

    score(u -> v) = sum over rows of <d_u, G_v>      d_u = ablated less clean output of u

With W_h head h's projection (norm weight folded in), the gradient at a head's own input is, summed over the steps s,

    G_h = (sum_s r_s a_{h,s}) W_h  -  sum_s c_{h,s} xc_s

so the targets are written out, for some layers and rows at a time, and multiplied with all sources before them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

import torch
from jaxtyping import Float
from torch import Tensor

from circuitdb.ingest.anatomy import Anatomy
from circuitdb.ingest.gradients import TargetGradients
from circuitdb.ingest.room import Room

# Gives some rows of all sources.
Rows = Callable[[slice], Float[Tensor, "source rows d_model"]]

# A product of so many targets at once is as fast as any; the sources after a layer are multiplied in vain.
_TARGETS = 128
# Numbers in the sources and targets that are written out at a time, and rows at least: the fewer, the more often are
# weights read and folded.
_WRITTEN_OUT, _LEAST_ROWS = 2**26, 128


def contract(
    anatomy: Anatomy, sources: Rows, targets: TargetGradients, parts: list[tuple[int, int]]
) -> Float[Tensor, "part source target"]:
    """Scores of all (source, target) cells, summed over the rows of each part; cells that are no edge are 0.

    `parts`: ranges of rows, one per fold. The result is float64 on the CPU.
    """
    shape, d_model = anatomy.shape, targets.logits.shape[1]
    width = 3 * shape.n_heads + 1
    together = list(_together(anatomy, max(1, _TARGETS // width)))
    most = max(_LEAST_ROWS, _WRITTEN_OUT // ((shape.n_sources + width * max(map(len, together))) * d_model))
    scores = torch.zeros(len(parts), shape.n_sources, shape.n_targets, dtype=torch.float64)
    room = Room()
    for start in range(0, targets.n_rows, most):
        rows = slice(start, min(start + most, targets.n_rows))
        n = rows.stop - start
        changes = sources(rows)
        cut = [
            (part, max(first, start) - start, min(stop, rows.stop) - start)
            for part, (first, stop) in enumerate(parts)
            if first < rows.stop and start < stop
        ]
        for indices in together:
            device = anatomy.layers[indices[0]].device
            readers = room.tensor((len(indices) * width, n, d_model), changes.dtype, device)
            for i, index in enumerate(indices):
                _write_out(anatomy, index, targets, rows, readers[i * width : (i + 1) * width])
            before, first = shape.sources_before(indices[-1], mlp=True), indices[0] * width
            for part, a, b in cut:
                found = _product(changes[:before, a:b], readers[:, a:b])
                scores[part, :before, first : first + len(readers)] += found
        for part, a, b in cut:
            scores[part, :, -1] += _product(changes[:, a:b], targets.logits[None, rows][:, a:b])[:, 0]
    return scores.masked_fill_(torch.from_numpy(~shape.mask), 0)


def _together(anatomy: Anatomy, most: int) -> Iterator[list[int]]:
    """Layers that are contracted together: neighbours on one device."""
    for _, found in groupby(range(len(anatomy.layers)), key=lambda index: anatomy.layers[index].device):
        indices = list(found)
        yield from (indices[i : i + most] for i in range(0, len(indices), most))


def _write_out(
    anatomy: Anatomy, index: int, targets: TargetGradients, rows: slice, into: Float[Tensor, "target rows d_model"]
) -> None:
    """Put some rows of a layer's targets there: each head's query, key and value, then the MLP."""
    layer, n_heads = anatomy.layers[index], anatomy.shape.n_heads
    weights = layer.reading_weights().flatten(0, 1).to(into.dtype)
    sums = targets.heads[index][:, rows].unflatten(-1, [n_heads, -1]).permute(2, 0, 1, 3)
    torch.bmm(sums.flatten(0, 1), weights, out=into[:-1])
    into[-1] = layer.mlp_norm.centre(targets.mlps[index][rows] * layer.mlp_norm.weight)
    attention, mlp = targets.attention_streams[index], targets.mlp_streams[index]
    pulls = targets.head_pulls[index][:, :, rows] * attention.second_factors(2)[:, rows, None]
    by_target = pulls.permute(3, 0, 1, 2).flatten(0, 1)
    # In place, and step by step, which beats a product batched over rows.
    for step, stream in enumerate(attention.centred[:, rows]):
        into[:-1].addcmul_(by_target[:, step, :, None], stream, value=-1)
    mlp_pulls = targets.mlp_pulls[index] * mlp.second_factors(3)
    for step, stream in enumerate(mlp.centred[:, rows]):
        into[-1].addcmul_(mlp_pulls[step, rows, None], stream, value=-1)


def _product(
    sources: Float[Tensor, "source rows d_model"], targets: Float[Tensor, "target rows d_model"]
) -> Float[Tensor, "source target"]:
    """Inner products over rows and d_model."""
    return (sources.to(targets.device).flatten(1) @ targets.flatten(1).T).cpu().double()
