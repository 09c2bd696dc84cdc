"""From what sources wrote and how targets would feel it to a score for every edge: one matrix product a layer.

    score(u -> v) = sum over rows of <d_u, G_v>      d_u = corrupted less clean output of u

With W_h head h's projection (norm weight folded in), the gradient at a head's own input is, summed over the steps s,

    G_h = (sum_s r_s a_{h,s}) W_h  -  sum_s c_{h,s} xc_s

so a layer's targets are written out once, [targets, rows, d_model], and multiplied with all sources before it.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from circuitdb.ingest.anatomy import Anatomy
from circuitdb.ingest.gradients import TargetGradients


def contract(
    anatomy: Anatomy,
    sources: Float[Tensor, "source rows d_model"],
    targets: TargetGradients,
    parts: list[tuple[int, int]],
) -> Float[Tensor, "part source target"]:
    """Scores of all (source, target) cells, summed over the rows of each part; cells that are no edge are 0.

    `parts`: ranges of rows, one per fold. The result is float64 on the CPU.
    """
    shape = anatomy.shape
    n_heads, width = shape.n_heads, 3 * shape.n_heads + 1
    scores = torch.zeros(len(parts), shape.n_sources, shape.n_targets, dtype=torch.float64)
    n_rows, d_model = sources.shape[1:]
    for index, layer in enumerate(anatomy.layers):
        readers = torch.empty(width, n_rows, d_model, dtype=sources.dtype, device=layer.device)
        heads = readers[: 3 * n_heads]
        weights = layer.reading_weights().flatten(0, 1).to(sources.dtype)
        torch.bmm(targets.heads[index].flatten(0, 1), weights, out=heads)
        if layer.attention_norm.scaled:
            _subtract_pull(heads, targets.head_pulls[index].flatten(0, 1), targets.attention_streams[index])
        readers[-1] = targets.mlps[index]
        if layer.mlp_norm.scaled:
            _subtract_pull(readers[-1:], targets.mlp_pulls[index][None], targets.mlp_streams[index])
        before, mlp_before = shape.sources_before(index), shape.sources_before(index, mlp=True)
        column = index * width
        for part, (start, stop) in enumerate(parts):
            cells = _product(readers[:, start:stop], sources[:mlp_before, start:stop])
            scores[part, :before, column : column + width - 1] = cells[:-1, :before].T
            scores[part, :mlp_before, column + width - 1] = cells[-1]
    for part, (start, stop) in enumerate(parts):
        scores[part, :, -1] = _product(targets.logits[None, start:stop], sources[:, start:stop])[0]
    return scores


def _subtract_pull(
    readers: Float[Tensor, "target rows d_model"],
    pulls: Float[Tensor, "target step rows"],
    streams: Float[Tensor, "step rows d_model"],
) -> None:
    """Take the sum over steps of pull times stream from the readers; in place it beats a product batched over rows."""
    for step, stream in enumerate(streams):
        readers.addcmul_(pulls[:, step, :, None], stream, value=-1)


def _product(
    left: Float[Tensor, "target rows d_model"], right: Float[Tensor, "source rows d_model"]
) -> Float[Tensor, "target source"]:
    """Inner products over rows and d_model: the short side first, which is the faster way round on CPUs."""
    return (left.flatten(1) @ right.to(left.device).flatten(1).T).cpu().double()
