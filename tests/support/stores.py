"""Small real databases for tests: synthetic scores written through the product's own store."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import numpy.typing as npt

from circuitdb.graph import GraphShape
from circuitdb.records import Accuracy, Circuit, Example, Model, Parameters, Subtask
from circuitdb.store import Store

SHAPE = GraphShape(n_layers=2, n_heads=3)


def model(name: str = "tiny", shape: GraphShape = SHAPE, n_kv_heads: int | None = None) -> Model:
    """A model record of the given shape."""
    return Model(name, "TinyForCausalLM", shape, n_kv_heads or shape.n_heads, 12, weights_digest=f"digest of {name}")


def circuit(
    subtask: str = "1+1",
    parameters: Parameters | None = None,
    *,
    of: Model | None = None,
    task: str = "addition",
    salt: str = "",
    n_examples: int = 8,
) -> Circuit:
    """A circuit record whose spec is unique to its arguments."""
    owner = of or model()
    return Circuit(
        model=owner,
        subtask=Subtask(task, subtask, dict(parameters or {})),
        method="eap-ig",
        metric="kl",
        steps=5,
        grid="right",
        prompt_style="few-shot",
        shots=3,
        seed=0,
        n_examples=n_examples,
        n_skipped=0,
        spec={"model": owner.name, "task": task, "subtask": subtask, "salt": salt},
        wall_time_s=1.5,
    )


def addition_scores(
    shape: GraphShape = SHAPE, *, digits: int = 3, noise: float = 0.5, seed: int = 0
) -> dict[tuple[int, int], tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]:
    """(a, b) to (scores [n_edges], two folds [2, n_edges]): cells of equal digits share a signal, others do not."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal(shape.n_edges)
    cells = {}
    for a, b in itertools.product(range(1, digits + 1), repeat=2):
        signal = shared if a == b else rng.standard_normal(shape.n_edges)
        folds = signal + noise * rng.standard_normal((2, shape.n_edges))
        cells[a, b] = (folds.mean(0).astype(np.float32), folds.astype(np.float32))
    return cells


def addition_store(path: Path, shape: GraphShape = SHAPE, *, digits: int = 3, noise: float = 0.5) -> Path:
    """A database of digits x digits addition circuits on one model; returns its path."""
    store = Store(path)
    for (a, b), (scores, folds) in addition_scores(shape, digits=digits, noise=noise).items():
        examples = [Example(f"{10 ** (a - 1)} + {i} = ", answer=str(i), fold=i % 2, n_tokens=7) for i in range(8)]
        store.write(
            circuit(f"{a}+{b}", {"digits_a": a, "digits_b": b}, of=model(shape=shape)),
            scores,
            folds,
            examples=examples,
            accuracy=Accuracy(1 / (a + b), 0.1, 8),
        )
    return path
