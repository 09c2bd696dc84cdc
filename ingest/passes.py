"""Passes of the model over the positions after a prefix: whole ones, and ones that begin at a later layer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from circuitdb.ingest.anatomy import Anatomy
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.prefix import Prefix


def run(
    model: LoadedModel, tokens: Int[Tensor, "batch pos"], prefix: Prefix, n_scored: int = 1
) -> Float[Tensor, "batch scored vocab"]:
    """One pass, with whatever hooks are on; logits of the last `n_scored` positions.

    They are float32 at least, so that half-precision models lose nothing in the softmax.
    """
    cache = prefix.cache(len(tokens))
    keywords = {} if cache is None else {"past_key_values": cache}
    logits: Tensor = model.bridge(tokens[:, prefix.length :], logits_to_keep=n_scored, **keywords)
    last = logits[:, -n_scored:]
    return last if last.dtype == torch.float64 else last.float()


@contextmanager
def starting_at(model: LoadedModel, anatomy: Anatomy, index: int) -> Iterator[None]:
    """Leave out the layers before `index`: they hand on what they get, and cost nothing.

    What enters layer `index` (or the final norm, if there is no such layer) is for the caller to replace.
    """

    def hand_on(*args: Any, **kwargs: Any) -> Any:
        states = args[0] if args else kwargs["hidden_states"]
        return (states, None) if model.layers_give_tuples else states

    with ExitStack() as undo:
        for layer in anatomy.layers[:index]:
            # Past TransformerLens, whose own setattr would put it on the model inside.
            object.__setattr__(layer.block, "forward", hand_on)
            undo.callback(object.__delattr__, layer.block, "forward")
        yield
