"""EAP-IG as textbooks have it, to compare with: the residual stream copied for every head, one product per step.

For Llama-shaped models of Hugging Face, written for the comparison alone. Left grid, KL at the last position.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Textbook:
    """A model whose targets each read a copy of the stream of their own."""

    def __init__(self, model: Any) -> None:
        self.model = model.requires_grad_(False)
        config = model.config
        self.n_layers, self.n_heads = config.num_hidden_layers, config.num_attention_heads
        self.groups = self.n_heads // config.num_key_value_heads
        self.n_sources = 1 + self.n_layers * (self.n_heads + 1)
        self.n_targets = self.n_layers * (3 * self.n_heads + 1) + 1
        self.written: list[Tensor] = []
        self.changes = torch.empty(0)
        self.scores = torch.empty(0)
        self._split()

    def attribute(self, clean: Tensor, corrupted: Tensor, steps: int) -> Tensor:
        """[source, target]: the mean over examples of change times mean gradient."""
        self.scores = torch.zeros(self.n_sources, self.n_targets)
        with torch.no_grad():
            reference = self._run(self.model.model.embed_tokens(clean)).log_softmax(-1)
            before = torch.stack(self.written)
            self._run(self.model.model.embed_tokens(corrupted))
            self.changes = torch.stack(self.written) - before
        start, end = (self.model.model.embed_tokens(tokens) for tokens in (corrupted, clean))
        for k in range(steps):
            embedding = torch.lerp(start, end, k / steps).requires_grad_(True)
            run = self._run(embedding).log_softmax(-1)
            (reference.exp() * (reference - run)).sum().backward()
        return self.scores / steps / len(clean)

    def _run(self, embedding: Tensor) -> Tensor:
        self.written = [embedding.detach()]
        logits: Tensor = self.model(inputs_embeds=embedding, use_cache=False).logits[:, -1]
        return logits

    def _reader(self, stream: Tensor, n_sources: int, columns: slice) -> Tensor:
        """Copies [batch, pos, target, d_model] of the stream, whose gradients count as soon as they are known."""
        n_targets = len(range(*columns.indices(self.n_targets)))
        copies = stream[:, :, None].expand(-1, -1, n_targets, -1).clone()
        if copies.requires_grad:

            def count(gradient: Tensor) -> None:
                product = torch.einsum("sbpd,bptd->st", self.changes[:n_sources], gradient)
                self.scores[:n_sources, columns] += product

            copies.register_hook(count)
        return copies

    def _split(self) -> None:
        for index, layer in enumerate(self.model.model.layers):
            self._split_layer(index, layer)
        last = slice(self.n_targets - 1, self.n_targets)
        self.model.model.norm.register_forward_pre_hook(
            lambda _module, args: (self._reader(args[0], self.n_sources, last)[:, :, 0],)
        )

    def _split_layer(self, index: int, layer: Any) -> None:
        attention, width = layer.self_attn, 3 * self.n_heads + 1
        first, before = index * width, 1 + index * (self.n_heads + 1)
        streams: list[Tensor] = []
        layer.input_layernorm.register_forward_pre_hook(lambda _module, args: streams.append(args[0]))
        for branch, name in enumerate(("q_proj", "k_proj", "v_proj")):
            columns = slice(first + branch, first + 3 * self.n_heads, 3)
            self._split_projection(layer, getattr(attention, name), streams, before, columns, last=name == "v_proj")
        attention.num_key_value_groups = 1

        def heads(_module: object, args: tuple[Tensor]) -> None:
            by_head = args[0].detach().unflatten(-1, (self.n_heads, -1))
            weight = attention.o_proj.weight.unflatten(-1, (self.n_heads, -1))
            self.written += torch.einsum("bphk,dhk->hbpd", by_head, weight).unbind(0)

        attention.o_proj.register_forward_pre_hook(heads)
        mlp = slice(first + width - 1, first + width)
        layer.post_attention_layernorm.register_forward_pre_hook(
            lambda _module, args: (self._reader(args[0], before + self.n_heads, mlp)[:, :, 0],)
        )
        layer.mlp.register_forward_hook(lambda _module, _args, output: self.written.append(output.detach()))

    def _split_projection(
        self, layer: Any, projection: Any, streams: list[Tensor], before: int, columns: slice, *, last: bool
    ) -> None:
        d_head = layer.self_attn.head_dim
        weight = projection.weight.unflatten(0, (-1, d_head))
        per_head = weight.repeat_interleave(self.n_heads // len(weight), 0)

        def forward(_normed: Tensor) -> Tensor:
            stream = streams.pop() if last else streams[-1]
            read = layer.input_layernorm.weight * _rms(self._reader(stream, before, columns), layer.input_layernorm)
            return torch.einsum("bphd,hkd->bphk", read, per_head).flatten(2)

        projection.forward = forward


def _rms(x: Tensor, norm: Any) -> Tensor:
    scaled: Tensor = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + norm.variance_epsilon)
    return scaled
