"""How near the similarity of 64 circuits x 123,211 edges comes to the least it can cost, all measured in one run.

The floor reads the scores by the barest SQL, ranks their rows by argsort and correlates them by one matrix product;
with folds it does the same to the scores of each fold, which reliability needs. `Database.similarity` is measured from
the file, in a running process. Target: at most 3 times the floor.

    python benchmarks/query.py [repeats]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt

import circuitdb
from circuitdb.graph import GraphShape
from circuitdb.records import Circuit, Model, Subtask
from circuitdb.store import Store

SHAPE = GraphShape(n_layers=30, n_heads=9)  # SmolLM2-135M
DIGITS, FOLDS, TARGET = 8, 2, 3.0
Matrix = npt.NDArray[np.float64]


def build(path: Path, *, folds: bool) -> None:
    """DIGITS x DIGITS circuits of random scores, in two folds if `folds`."""
    model = Model("random", "LlamaForCausalLM", SHAPE, n_kv_heads=3, d_model=576)
    store, rng = Store(path), np.random.default_rng(0)
    for i in range(DIGITS**2):
        a, b = divmod(i, DIGITS)
        subtask = Subtask("addition", f"{a + 1}+{b + 1}", {"digits_a": a + 1, "digits_b": b + 1})
        circuit = Circuit(model, subtask, method="eap-ig", metric="kl", spec={"seed": i}, n_examples=16)
        parts = rng.standard_normal((FOLDS, SHAPE.n_edges), np.float32)
        store.write(circuit, parts.mean(axis=0), parts if folds else None)


def read(path: Path, table: str) -> npt.NDArray[np.float32]:
    """The scores of a table, [row of the matrix, edge], by the barest SQL."""
    with duckdb.connect(str(path), read_only=True) as connection:
        scores = connection.sql(f"SELECT score FROM {table}").to_arrow_table().column("score")
    return np.asarray(scores.to_numpy(), np.float32).reshape(-1, SHAPE.n_edges)


def centred_ranks(scores: npt.NDArray[np.float32]) -> Matrix:
    """Ranks by argsort, without a thought for ties, centred and of length 1."""
    n = scores.shape[1]
    places = np.arange(n) - (n - 1) / 2
    places /= np.linalg.norm(places)
    ranks = np.empty(scores.shape)
    for row, out in zip(scores, ranks, strict=True):
        out[np.argsort(row)] = places
    return ranks


def floor(path: Path, *, folds: bool) -> Matrix:
    """The least that a similarity matrix takes."""
    ranks = centred_ranks(read(path, "edge_score"))
    rho: Matrix = ranks @ ranks.T
    if folds:
        parts = centred_ranks(read(path, "fold_score")).reshape(-1, FOLDS, SHAPE.n_edges)
        parts @ parts.transpose(0, 2, 1)
    return rho


def best(task: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of several runs, after one that warms up."""
    task()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


def main(repeats: int) -> bool:
    """Measure and print; True if the target is met."""
    met = True
    print(f"{DIGITS**2} circuits x {SHAPE.n_edges:,} edges, best of {repeats}\n")
    print(f"{'':14}{'floor':>10}{'similarity':>12}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for folds in (False, True):
            path = Path(folder) / f"folds-{folds}.duckdb"
            build(path, folds=folds)
            db = circuitdb.open(path)
            np.testing.assert_allclose(db.similarity().matrix, floor(path, folds=False), atol=1e-3)  # the same question
            least = best(lambda path=path, folds=folds: floor(path, folds=folds), repeats)  # type: ignore[misc]
            ours = best(lambda db=db: db.similarity(), repeats)  # type: ignore[misc]
            ratio = ours / least
            met = met and ratio <= TARGET
            print(f"{'two folds' if folds else 'no folds':14}{least:>8.3f} s{ours:>10.3f} s{ratio:>8.2f}")
    print(f"\nTarget: a ratio of at most {TARGET:g}: {'met' if met else 'missed'}.")
    return met


if __name__ == "__main__":
    sys.exit(0 if main(int(sys.argv[1]) if len(sys.argv) > 1 else 7) else 1)
