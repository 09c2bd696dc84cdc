"""A tiny model of an architecture, for the oracle and for the engine, with pairs of token ids."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import architectures
import oracle
from circuitdb.graph import GraphShape
from circuitdb.ingest import LoadedModel, load_model

N_PAIRS, N_TOKENS, HEADER = 3, 8, 3


@dataclass(frozen=True)
class Case:
    """`model` is the oracle's, `engine` ours, both in float64; `clean` and `corrupted` [3, 8] begin with 3 same tokens.

    To be used within `oracle.full_precision()`.
    """

    model: Any
    engine: LoadedModel
    clean: Tensor
    corrupted: Tensor
    labels: Tensor

    @property
    def shape(self) -> GraphShape:
        return self.engine.record.shape

    def metric(self, name: str) -> oracle.Metric:
        """The oracle's metric of that name."""
        if name == "kl":
            return oracle.divergence(oracle.logits(self.model, self.clean))
        return oracle.logit_difference(self.labels)


def build(name: str, folder: Path) -> Case:
    """A case of an architecture of `architectures.CONFIGS`; its model is saved in `folder`."""
    draws = torch.Generator().manual_seed(3)
    clean, corrupted = torch.randint(1, architectures.N_VOCAB, (2, N_PAIRS, N_TOKENS), generator=draws)
    clean[:, :HEADER] = corrupted[:, :HEADER] = torch.tensor([11, 29, 7])
    with oracle.full_precision():
        saved = architectures.build(name, folder)
        model, engine = oracle.load(saved), load_model(saved, dtype="float64", device="cpu")
    return Case(model, engine, clean, corrupted, torch.tensor([[3, 5], [7, 9], [20, 40]]))
