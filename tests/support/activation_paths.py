"""eap-ig-activations of GPT-2 by autograd on the plain model, with one point at the ablated end of each path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

import oracle

if TYPE_CHECKING:
    from padding import Prompts


def scores(model: Any, clean: Prompts, difference: Tensor, metric: oracle.Metric) -> oracle.Scores:
    """The embedding, each layer's heads and each MLP moved by the difference [source, batch, pos, d_model], in turn."""
    shape, written = oracle.graph_shape(model), oracle.sources(model, clean)
    writers: list[tuple[Any, slice]] = [(None, slice(0, 1))]
    for layer, block in enumerate(model.transformer.h):
        first, n_heads = 1 + layer * (shape.n_heads + 1), shape.n_heads
        writers.append((block.attn.c_proj, slice(first, first + n_heads)))
        writers.append((block.mlp, slice(first + n_heads, first + n_heads + 1)))
    total = torch.zeros(shape.n_sources, shape.n_targets, dtype=torch.float64)
    for module, group in writers:
        change = difference[group].sum(0)
        entry = (written[0] + (change if module is None else 0)).requires_grad_()
        handles = (
            []
            if module is None
            else [module.register_forward_hook(lambda _m, _a, own, by=change: (own.detach() + by).requires_grad_())]
        )
        run = oracle.Pass(model, entry=entry).run(clean)
        for handle in handles:
            handle.remove()
        gradients = torch.autograd.grad(metric(run.logits).sum(), run.reads, allow_unused=True, materialize_grads=True)
        total += torch.einsum("ubpd,vbpd->uv", difference, torch.cat(gradients)) / (len(clean) * len(writers))
    return total.numpy()[shape.mask]
