"""Gradients at all targets, summed over the steps of a path.

For each layer, as the backward pass reaches it:
1. the gradient `a_h` at head h's query, key or value output (before the rotation) is scaled by `r` of the norm and
   added into head space: the first term of `norms`;
2. `<a_h, pre_h - bias_h>` is kept as one number per head, step and row; times `r^2 / d_model` it is the second term,
   whose direction is the stream itself, kept once per layer and step;
3. the MLP's gradient is taken at its own input, behind the norm, in model space.
No gradient tensor outlives its hook.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import Module

from circuitdb.ingest.anatomy import Anatomy, Layer
from circuitdb.ingest.hooks import Hooks
from circuitdb.ingest.models import accumulation_dtype
from circuitdb.ingest.norms import Norm


class Streams:
    """What stands before a norm at each step: `centred` [step, rows, d_model], `scales` (`r`) [step, rows].

    `weights` [step, 1] are those of the steps. A norm that scales nothing has no second term, and keeps no stream.
    """

    def __init__(self, norm: Norm, n_steps: int, n_rows: int, like: Tensor) -> None:
        self.norm, self.n_rows = norm, n_rows
        self.centred = like.new_empty(n_steps if norm.scaled else 0, n_rows, like.shape[-1])
        self.scales = like.new_ones(n_steps, n_rows)
        self.weights = like.new_zeros(n_steps, 1)

    def see(self, output: Tensor, steps: slice) -> None:
        """Keep a pass's stream."""
        found = output.detach().reshape(-1, self.n_rows, output.shape[-1])
        # Centred in the type that is kept: in half precision the mean would be rounded with all that hangs on it.
        self.centred[steps] = self.norm.centre(found.to(self.centred.dtype))
        self.scales[steps] = self.norm.inverse_scale(self.centred[steps])

    def first_factors(self, steps: slice) -> Float[Tensor, "step rows 1"]:
        """What the gradients of some steps are multiplied with before they are added up."""
        return (self.scales[steps] * self.weights[steps])[..., None]

    def second_factors(self, power: int) -> Float[Tensor, "step rows"]:
        """`weight r^power / d_model` of all steps."""
        return self.scales**power * self.weights / self.centred.shape[-1]


class TargetGradients:
    """Gradients at all targets, summed over the steps of a path; rows are (example, position) after the prefix.

    `heads[layer]` is [3, rows, head * d_head] (query, key, value), `head_pulls[layer]` [3, step, rows, head],
    `mlps[layer]` [rows, d_model], `mlp_pulls[layer]` [step, rows], `logits` [rows, d_model].
    """

    def __init__(self, anatomy: Anatomy, n_rows: int, n_steps: int, like: Tensor) -> None:
        """`like` [0, d_model] gives the width of the stream and the model's dtype."""
        shape, layers, d_model = anatomy.shape, anatomy.layers, like.shape[-1]
        kind = accumulation_dtype(like.dtype)
        self.anatomy, self.n_rows, self.n_heads = anatomy, n_rows, shape.n_heads
        self.biases = [layer.reading_biases().transpose(0, 1) if layer.has_reading_biases else None for layer in layers]

        def zeros(layer: Layer, *size: int) -> Tensor:
            return torch.zeros(size, device=layer.device, dtype=kind)

        self.heads = [zeros(layer, 3, n_rows, layer.reading_width) for layer in layers]
        self.head_pulls = [zeros(layer, 3, n_steps, n_rows, shape.n_heads) for layer in layers]
        self.mlps = [zeros(layer, n_rows, d_model) for layer in layers]
        self.mlp_pulls = [zeros(layer, n_steps, n_rows) for layer in layers]
        self.logits = zeros(layers[-1], n_rows, d_model)
        self.attention_streams = [
            Streams(layer.attention_norm, n_steps, n_rows, zeros(layer, 0, d_model)) for layer in layers
        ]
        self.mlp_streams = [
            self.attention_streams[i]
            if layer.mlp_stream is None
            else Streams(layer.mlp_norm, n_steps, n_rows, zeros(layer, 0, d_model))
            for i, layer in enumerate(layers)
        ]

    def clear(self) -> None:
        """Start again from nothing."""
        for held in (self.heads, self.head_pulls, self.mlps, self.mlp_pulls, [self.logits]):
            for tensor in held:
                tensor.zero_()

    def watch(self, held: Hooks, first: int, weights: Sequence[float]) -> None:
        """Add the gradients of the next pass, of as many steps as there are weights, from step `first` on.

        The pass's batch has the rows of one step after those of another.
        """
        steps = slice(first, first + len(weights))
        for streams in (*self.attention_streams, *self.mlp_streams):
            streams.weights[steps, 0] = streams.weights.new_tensor(weights)
        for index, layer in enumerate(self.anatomy.layers):
            self._watch_layer(held, index, layer, steps)

        def final(gradient: Tensor) -> None:
            for weight, found in zip(weights, self._by_step(gradient), strict=True):
                self.logits.add_(found.to(self.logits), alpha=weight)

        held.gradient(self.anatomy.final_stream, final)

    def _by_step(self, tensor: Tensor) -> Float[Tensor, "step rows width"]:
        return tensor.detach().reshape(-1, self.n_rows, tensor.numel() // tensor.shape[0] // tensor.shape[1])

    def _watch_layer(self, held: Hooks, index: int, layer: Layer, steps: slice) -> None:
        attention, mlp = self.attention_streams[index], self.mlp_streams[index]
        if layer.attention_norm.scaled:
            held.see(layer.attention_stream, lambda output: attention.see(output, steps))
        if layer.mlp_stream is not None and layer.mlp_norm.scaled:
            held.see(layer.mlp_stream, lambda output: mlp.see(output, steps))
        for which, point in enumerate(layer.projections):
            self._watch_projection(held, point, index, which, steps)

        def at_mlp(gradient: Tensor) -> None:
            found = self._by_step(gradient).to(self.mlps[index].dtype)
            _add(self.mlps[index], found, mlp.first_factors(steps))
            if layer.mlp_norm.scaled:
                self.mlp_pulls[index][steps] = (found * layer.mlp_norm.weight).mul_(mlp.centred[steps]).sum(-1)

        held.gradient(layer.mlp_in, at_mlp)

    def _watch_projection(self, held: Hooks, point: Module, index: int, which: int, steps: slice) -> None:
        total, pulls, streams = self.heads[index][which], self.head_pulls[index][which], self.attention_streams[index]
        biases, outputs = self.biases[index], list[Tensor]()

        def at_projection(gradient: Tensor) -> None:
            found = self._by_step(gradient).to(total.dtype)
            _add(total, found, streams.first_factors(steps))
            if outputs:
                pre = self._by_step(outputs.pop()).to(total.dtype)
                if biases is not None:
                    pre = pre - biases[which].reshape(-1)
                torch.sum((found * pre).unflatten(-1, [self.n_heads, -1]), -1, out=pulls[steps])

        if streams.norm.scaled:
            held.see(point, lambda output: outputs.append(output.detach()))
        held.gradient(point, at_projection)


def _add(
    total: Float[Tensor, "rows width"], found: Float[Tensor, "step rows width"], factors: Float[Tensor, "step rows 1"]
) -> None:
    """Add up over steps, with factors."""
    for one, factor in zip(found, factors, strict=True):
        total.addcmul_(one, factor)
