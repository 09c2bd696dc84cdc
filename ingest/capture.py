"""One pass of the model with hooks: what each source writes, and what the gradient is where each target reads.

Steps of a gradient pass, for each layer, as the backward pass reaches it:
1. the gradient `a_h` at head h's query, key or value output (before the rotation) is scaled by `r` of the norm and
   added into head space, [head, 3, rows, d_head]: the first term of `norms`;
2. `c_h = (r^2 / d_model) <a_h, pre_h - bias_h>` is kept as one number per head, step and row: the second term, whose
   direction is the stream itself, kept once per layer and step;
3. the MLP's gradient is taken at its own input, behind the norm, in model space.
No gradient tensor outlives its hook.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import Module

from circuitdb.ingest.anatomy import Anatomy, Layer, accumulation_dtype
from circuitdb.ingest.metrics import scored_logits
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.norms import Norm
from circuitdb.ingest.prefix import Prefix

Stream = Float[Tensor, "batch pos d_model"]


class Hooks:
    """Forward hooks on hook points, all taken off together."""

    def __init__(self) -> None:
        self._handles: list[torch.utils.hooks.RemovableHandle] = []

    def replace(self, point: Module, by: Callable[[Tensor], Tensor]) -> None:
        """Put `by(output)` in the place of the hook point's output."""
        self._handles.append(point.register_forward_hook(lambda _module, _args, output: by(output)))

    def see(self, point: Module, look: Callable[[Tensor], None]) -> None:
        """Show the hook point's output to `look`."""

        def hook(_module: Module, _args: object, output: Tensor) -> None:
            look(output)

        self._handles.append(point.register_forward_hook(hook))

    def gradient(self, point: Module, look: Callable[[Tensor], None]) -> None:
        """Show the gradient at the hook point's output, through this one reader alone, to `look`."""

        def branch(output: Tensor) -> Tensor:
            own = output.view_as(output)  # a tensor of its own, so that no other reader's gradient is added to it
            if own.requires_grad:
                own.register_hook(look)
            return own

        self.replace(point, branch)

    def remove(self) -> None:
        """Take every hook off."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()


@contextmanager
def hooks() -> Iterator[Hooks]:
    """Hooks that come off on leaving, whatever happens."""
    held = Hooks()
    try:
        yield held
    finally:
        held.remove()


@dataclass
class Sources:
    """What the sources wrote in one run, rows after the prefix only.

    `heads[layer]` is [batch, pos, head * d_head] before the output projection, `mlps[layer]` and `embedding` are
    [batch, pos, d_model].
    """

    embedding: Stream
    heads: list[Tensor]
    mlps: list[Stream]

    @classmethod
    def watch(cls, anatomy: Anatomy, held: Hooks) -> Sources:
        """Fill the returned object during the next pass."""
        found = cls(torch.empty(0, 0, 0), [], [])

        def embedding(output: Tensor) -> None:
            found.embedding = output.detach()

        held.see(anatomy.embed, embedding)
        for layer in anatomy.layers:
            held.see(layer.heads_out, lambda output: found.heads.append(output.detach()))
            held.see(layer.mlp_out, lambda output: found.mlps.append(output.detach()))
        return found


class TargetGradients:
    """Gradients at all targets, summed over the steps of a path; rows are (example, position) after the prefix."""

    def __init__(self, anatomy: Anatomy, n_rows: int, n_steps: int, biases: list[Tensor], like: Tensor) -> None:
        """`biases[layer]`: [head, 3, d_head] from `Layer.reading_biases`; `like` gives device and dtype."""
        shape, d_model = anatomy.shape, like.shape[-1]
        n_layers, n_heads, d_head = shape.n_layers, shape.n_heads, biases[0].shape[-1]
        self.anatomy, self.n_rows, self.biases = anatomy, n_rows, biases
        kind = accumulation_dtype(like.dtype)

        def zeros(*size: int) -> Tensor:
            return torch.zeros(size, device=like.device, dtype=kind)

        self.heads = [zeros(n_heads, 3, n_rows, d_head) for _ in range(n_layers)]
        self.head_pulls = [zeros(n_heads, 3, n_steps, n_rows) for _ in range(n_layers)]
        self.mlps = [zeros(n_rows, d_model) for _ in range(n_layers)]
        self.mlp_pulls = [zeros(n_steps, n_rows) for _ in range(n_layers)]
        self.logits = zeros(n_rows, d_model)
        self.attention_streams = [zeros(n_steps, n_rows, d_model) for _ in range(n_layers)]
        self.mlp_streams = [
            self.attention_streams[i] if layer.mlp_stream is None else zeros(n_steps, n_rows, d_model)
            for i, layer in enumerate(anatomy.layers)
        ]

    def watch(self, held: Hooks, step: int, weight: float) -> None:
        """Add the gradients of the next pass, times `weight`, as step `step`."""
        for index, layer in enumerate(self.anatomy.layers):
            self._watch_layer(held, index, layer, step, weight)

        kind = self.logits.dtype

        def final(gradient: Tensor) -> None:
            self.logits += weight * gradient.reshape(self.n_rows, -1).to(kind)

        held.gradient(self.anatomy.final_stream, final)

    def _watch_layer(self, held: Hooks, index: int, layer: Layer, step: int, weight: float) -> None:
        scales: dict[str, Tensor] = {}

        def stream(kind: str, norm: Norm, store: Tensor) -> Callable[[Tensor], None]:
            def look(output: Tensor) -> None:
                store[step] = norm.centre(output.detach().reshape(self.n_rows, -1).to(store.dtype))
                scales[kind] = norm.inverse_scale(store[step])

            return look

        held.see(layer.attention_stream, stream("attention", layer.attention_norm, self.attention_streams[index]))
        if layer.mlp_stream is not None:
            held.see(layer.mlp_stream, stream("mlp", layer.mlp_norm, self.mlp_streams[index]))

        for which, point in enumerate(layer.projections):
            self._watch_projection(held, point, index, which, step, weight, scales)

        def mlp(gradient: Tensor) -> None:
            scale = scales["attention" if layer.mlp_stream is None else "mlp"]
            flat = gradient.reshape(self.n_rows, -1).to(self.mlps[index].dtype) * (layer.mlp_norm.weight * weight)
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

        def gradient(found: Tensor) -> None:
            scale, at = scales["attention"], rows(found) * weight
            pre = rows(outputs.pop()) - bias[:, None]
            total.add_(at * scale[:, None])
            pulls.copy_((at * pre).sum(-1) * (scale**2 / self.logits.shape[-1]))

        held.see(point, lambda output: outputs.append(output.detach()))
        held.gradient(point, gradient)


def run(model: LoadedModel, tokens: Int[Tensor, "batch pos"], prefix: Prefix) -> Float[Tensor, "batch vocab"]:
    """One pass over the positions after the prefix, with whatever hooks are on; logits of the last position."""
    cache = prefix.cache(len(tokens))
    keywords = {} if cache is None else {"past_key_values": cache}
    logits: Tensor = model.bridge(tokens[:, prefix.length :], logits_to_keep=1, **keywords)
    return scored_logits(logits)
