"""The norm before each reader of the residual stream, and the gradient through it.

With `xc` the stream (centred, for LayerNorm), `r = 1/sqrt(mean(xc^2) + eps)` and `y = w * xc * r + b`, a gradient `g`
at `y` becomes at the stream

    r * P(w * g)  -  (r^3 / d_model) <w * g, xc> * xc            P: centring for LayerNorm, identity for RMSNorm

which is linear in `g` with coefficients that depend on the run alone. Where a reader takes the stream as it is
(OLMo-2), `r` is 1 and the second term is absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from circuitdb.errors import ModelError


@dataclass(frozen=True)
class Norm:
    """A LayerNorm (`centred`), an RMSNorm, or none at all (not `scaled`); `weight` is all ones where there is none."""

    weight: Float[Tensor, " d_model"]
    bias: Float[Tensor, " d_model"] | None
    eps: float
    centred: bool
    scaled: bool = True

    def centre(self, x: Float[Tensor, "*rows d_model"]) -> Float[Tensor, "*rows d_model"]:
        """`xc`: the stream less its mean for LayerNorm, as it is otherwise; also the projection P."""
        return x - x.mean(-1, keepdim=True) if self.centred else x

    def inverse_scale(self, centred: Float[Tensor, "*rows d_model"]) -> Float[Tensor, "*rows"]:
        """`r` of a centred stream."""
        if not self.scaled:
            return torch.ones_like(centred[..., 0])
        norm: Tensor = torch.linalg.vector_norm(centred, dim=-1)
        return (norm.square() / centred.shape[-1] + self.eps).rsqrt()

    def scale(self, x: Float[Tensor, "*rows d_model"]) -> Float[Tensor, "*rows d_model"]:
        """`xc * r`: the stream normed, with neither weight nor bias."""
        centred = self.centre(x)
        return centred * self.inverse_scale(centred)[..., None]

    def apply(self, x: Float[Tensor, "*rows d_model"]) -> Float[Tensor, "*rows d_model"]:
        """`y`, what the reader gets of a stream."""
        found = self.scale(x) * self.weight
        return found if self.bias is None else found + self.bias


def no_norm(d_model: int, device: torch.device, dtype: torch.dtype) -> Norm:
    """The norm of a reader that takes the stream as it is."""
    return Norm(torch.ones(d_model, device=device, dtype=dtype), None, 0.0, centred=False, scaled=False)


def read_norm(component: Any, d_model: int, device: torch.device, dtype: torch.dtype) -> Norm:
    """The norm that a TransformerLens normalisation component wraps. Raises ModelError for other kinds."""
    original = component.original_component
    weight = getattr(original, "weight", None)
    bias = getattr(original, "bias", None)
    kind = type(original).__name__
    is_layer_norm = isinstance(original, torch.nn.LayerNorm) or "LayerNorm" in kind
    if not is_layer_norm and "RMSNorm" not in kind:
        raise ModelError(f"The norm {kind} is neither a LayerNorm nor an RMSNorm; its gradient is not known here.")
    eps = next((getattr(original, key) for key in ("eps", "variance_epsilon") if hasattr(original, key)), None)
    if eps is None:
        eps = component.config.eps
    scale = torch.ones(d_model, device=device, dtype=dtype) if weight is None else weight.detach().to(dtype)
    if weight is not None and component.uses_weight_offset:
        scale = 1 + scale
    return Norm(scale, None if bias is None else bias.detach().to(dtype), float(eps), is_layer_norm)
