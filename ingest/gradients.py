"""Gradients at all targets, summed over the steps of a path.

For each layer, as the backward pass reaches it:
1. the gradient `a_h` at head h's query, key or value output (before the rotation) is scaled by `r` of the norm and
   added into head space, [head, 3, rows, d_head]: the first term of `norms`;
2. `c_h = (r^2 / d_model) <a_h, pre_h - bias_h>` is kept as one number per head, step and row: the second term, whose
   direction is the stream itself, kept once per layer and step;
3. the MLP's gradient is taken at its own input, behind the norm, in model space.
No gradient tensor outlives its hook.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import Module

from circuitdb.ingest.anatomy import Anatomy, Layer
from circuitdb.ingest.hooks import Hooks
from circuitdb.ingest.models import accumulation_dtype
from circuitdb.ingest.norms import Norm


class TargetGradients:
    """Gradients at all targets, summed over the steps of a path; rows are (example, position) after the prefix."""

    def __init__(self, anatomy: Anatomy, n_rows: int, n_steps: int, like: Tensor) -> None:
        """`like` [rows, d_model] gives the model's device and dtype."""
        shape, d_model = anatomy.shape, like.shape[-1]
        self.biases = [layer.reading_biases() for layer in anatomy.layers]
        n_heads, d_head = shape.n_heads, self.biases[0].shape[-1]
        self.anatomy, self.n_rows = anatomy, n_rows
        kind = accumulation_dtype(like.dtype)

        def zeros(layer: Layer, *size: int) -> Tensor:
            return torch.zeros(size, device=layer.device, dtype=kind)

        layers = anatomy.layers
        self.heads = [zeros(layer, n_heads, 3, n_rows, d_head) for layer in layers]
        self.head_pulls = [zeros(layer, n_heads, 3, n_steps, n_rows) for layer in layers]
        self.mlps = [zeros(layer, n_rows, d_model) for layer in layers]
        self.mlp_pulls = [zeros(layer, n_steps, n_rows) for layer in layers]
        self.logits = zeros(layers[-1], n_rows, d_model)
        # A reader without a norm has no second term, and needs no stream.
        self.attention_streams = [
            zeros(layer, n_steps if layer.attention_norm.scaled else 0, n_rows, d_model) for layer in layers
        ]
        self.mlp_streams = [
            self.attention_streams[i]
            if layer.mlp_stream is None
            else zeros(layer, n_steps if layer.mlp_norm.scaled else 0, n_rows, d_model)
            for i, layer in enumerate(layers)
        ]

    def clear(self) -> None:
        """Start again from nothing."""
        for held in (self.heads, self.head_pulls, self.mlps, self.mlp_pulls, [self.logits]):
            for tensor in held:
                tensor.zero_()

    def watch(self, held: Hooks, step: int, weight: float) -> None:
        """Add the gradients of the next pass, times `weight`, as step `step`."""
        for index, layer in enumerate(self.anatomy.layers):
            self._watch_layer(held, index, layer, step, weight)

        def final(gradient: Tensor) -> None:
            self.logits += weight * gradient.reshape(self.n_rows, -1).to(self.logits)

        held.gradient(self.anatomy.final_stream, final)

    def _watch_layer(self, held: Hooks, index: int, layer: Layer, step: int, weight: float) -> None:
        scales: dict[str, Tensor] = {}

        def stream(kind: str, norm: Norm, store: Tensor) -> Callable[[Tensor], None]:
            def look(output: Tensor) -> None:
                store[step] = norm.centre(output.detach().reshape(self.n_rows, -1).to(store.dtype))
                scales[kind] = norm.inverse_scale(store[step])

            return look

        if layer.attention_norm.scaled:
            held.see(layer.attention_stream, stream("attention", layer.attention_norm, self.attention_streams[index]))
        if layer.mlp_stream is not None and layer.mlp_norm.scaled:
            held.see(layer.mlp_stream, stream("mlp", layer.mlp_norm, self.mlp_streams[index]))

        for which, point in enumerate(layer.projections):
            self._watch_projection(held, point, index, which, step, weight, scales)

        def mlp(gradient: Tensor) -> None:
            flat = gradient.reshape(self.n_rows, -1).to(self.mlps[index].dtype) * (layer.mlp_norm.weight * weight)
            if not layer.mlp_norm.scaled:
                self.mlps[index] += flat
                return
            scale = scales["attention" if layer.mlp_stream is None else "mlp"]
            centred = self.mlp_streams[index][step]
            self.mlp_pulls[index][step] = (flat * centred).sum(-1) * scale**3 / centred.shape[-1]
            self.mlps[index] += layer.mlp_norm.centre(flat) * scale[:, None]

        held.gradient(layer.mlp_in, mlp)

    def _watch_projection(
        self, held: Hooks, point: Module, index: int, which: int, step: int, weight: float, scales: dict[str, Tensor]
    ) -> None:
        total, pulls = self.heads[index][:, which], self.head_pulls[index][:, which, step]
        bias = self.biases[index][:, which]
        n_heads, n_rows, d_head = total.shape
        outputs: list[Tensor] = []

        def rows(tensor: Tensor) -> Tensor:
            return tensor.reshape(n_rows, n_heads, d_head).to(total.dtype).transpose(0, 1)

        def plain(found: Tensor) -> None:
            total.add_(rows(found), alpha=weight)

        def gradient(found: Tensor) -> None:
            scale, at = scales["attention"], rows(found) * weight
            pre = rows(outputs.pop()) - bias[:, None]
            total.add_(at * scale[:, None])
            pulls.copy_((at * pre).sum(-1) * (scale**2 / self.logits.shape[-1]))

        if not self.anatomy.layers[index].attention_norm.scaled:
            held.gradient(point, plain)
            return
        held.see(point, lambda output: outputs.append(output.detach()))
        held.gradient(point, gradient)
