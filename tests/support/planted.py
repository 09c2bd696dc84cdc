"""Databases with planted structure, of which a study's answers are known."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from circuitdb.graph import GraphShape
from circuitdb.records import Accuracy, Circuit, Model, Parameters
from circuitdb.store import Store
from stores import circuit, model

SHAPE = GraphShape(n_layers=4, n_heads=4)  # edges enough that two random circuits hardly correlate
N = 20  # questions that an accuracy is of


def write(
    store: Store,
    record: Circuit,
    signal: np.ndarray,
    rng: np.random.Generator,
    *,
    noise: float = 0.3,
    folds: int = 4,
    accuracy: float | None = None,
    n: int = N,
) -> int:
    """A circuit of a signal and independent noise in every fold."""
    parts = signal + noise * rng.standard_normal((max(folds, 1), len(signal)))
    told = None if accuracy is None else Accuracy(accuracy, None, n)
    return store.write(record, parts.mean(0), parts if folds else None, accuracy=told)


def side(a: int, b: int) -> str:
    """Which operand is longer."""
    return "equal" if a == b else "first" if a > b else "second"


def arithmetic(
    path: Path,
    *,
    digits: int = 4,
    family: Callable[[int, int], object] = side,
    accuracy: Callable[[int, int], float | None] = lambda a, b: {"equal": 0.8, "first": 0.9, "second": 0.5}[side(a, b)],
    noise: float = 0.3,
    folds: int = 4,
    of: Model | None = None,
    shape: GraphShape = SHAPE,
) -> Path:
    """Addition where circuits of one family share a signal."""
    rng, store = np.random.default_rng(0), Store(path)
    signals: dict[object, np.ndarray] = {}
    for a, b in itertools.product(range(1, digits + 1), repeat=2):
        key = family(a, b)
        if key not in signals:
            signals[key] = rng.standard_normal(shape.n_edges)
        record = circuit(f"{a}+{b}", {"digits_a": a, "digits_b": b}, of=of or model(shape=shape), n_examples=N)
        write(store, record, signals[key], rng, noise=noise, folds=folds, accuracy=accuracy(a, b))
    return path


def boolean(path: Path, *, lengths: tuple[int, ...] = (7,), folds: int = 4) -> Path:
    """With `not` alone parentheses have a circuit of their own and cost 40 points; with the others nothing changes."""
    rng, store = np.random.default_rng(0), Store(path)
    of = model(shape=SHAPE)
    for operators in ("not", "not,and", "not,and,or"):
        without, other = rng.standard_normal((2, SHAPE.n_edges))
        for length in (None,) if operators == "not" else lengths:
            for parentheses in (False, True):
                changed = parentheses and operators == "not"
                name = operators + (f" {length}" if length else "") + (" parentheses" if parentheses else "")
                parameters: Parameters = {"operators": operators, "parentheses": parentheses} | (
                    {"length": length} if length else {}
                )
                record = circuit(name, parameters, of=of, task="boolean", n_examples=N)
                share = 0.55 if changed else 0.95
                write(store, record, other if changed else without, rng, folds=folds, accuracy=share)
    return path


def sports(
    path: Path, *, parts: int = 6, styles: tuple[str, ...] = ("few-shot", "chain-of-thought"), by_sport: bool = False
) -> Path:
    """Chain of thought has one circuit for all parts and is right more often; few-shot circuits scatter."""
    rng, store = np.random.default_rng(0), Store(path)
    of = model(shape=SHAPE)
    scatter = {"chain-of-thought": 0.2, "few-shot": 1.2, "zero-shot": 1.2}
    shares = {"chain-of-thought": 0.9, "few-shot": 0.6, "zero-shot": 0.5}
    for style in styles:
        shared = rng.standard_normal(SHAPE.n_edges)
        for part in range(1, parts + 1):
            parameters: Parameters = {"sport": f"sport {part}"} if by_sport else {"part": part, "parts": parts}
            name = f"sport {part}" if by_sport else f"part {part} of {parts}"
            record = circuit(name, parameters, of=of, task="sports", salt=style, n_examples=N)
            signal = shared + scatter[style] * rng.standard_normal(SHAPE.n_edges)
            write(store, replace(record, prompt_style=style), signal, rng, accuracy=shares[style])
    return path


def checkpoints(path: Path, scatters: tuple[float, ...] = (2.0, 1.0, 0.2)) -> Path:
    """One model at several steps of training: ever more one circuit for all subtasks, and ever more right answers."""
    rng, store = np.random.default_rng(0), Store(path)
    shared = rng.standard_normal(SHAPE.n_edges)
    for i, scatter in enumerate(scatters):
        step = 1000 * 8**i
        of = replace(model("pythia", SHAPE), revision=f"step{step}", weights_digest=f"{step:064d}")
        for a, b in itertools.product((1, 2, 3), repeat=2):
            record = circuit(f"{a}+{b}", {"digits_a": a, "digits_b": b}, of=of, salt=str(step), n_examples=N)
            signal = shared + scatter * rng.standard_normal(SHAPE.n_edges)
            write(store, record, signal, rng, accuracy=0.1 + 0.3 * i)
    return path
