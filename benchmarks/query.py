"""How near the similarity of circuits of 123,211 edges comes to the least it can cost, all measured in one run.

The floor reads the scores by the barest SQL, ranks their rows by argsort and correlates them by one matrix product;
with folds it does the same to the scores of each fold, which reliability needs. `Database.similarity` is measured from
the file, in a running process, without its cache. Beside it stand what SciPy takes, the macro `similarity` of the file
itself, and an answer from the cache. 1,000 circuits are compared once, in a process of their own, for its memory.

    python benchmarks/query.py [repeats]
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

import circuitdb
from circuitdb.graph import GraphShape
from circuitdb.records import Circuit, Model, Subtask
from circuitdb.store import Store

SHAPE = GraphShape(n_layers=30, n_heads=9)  # SmolLM2-135M
MANY, SOME, FOLDS = 1000, 64, 2
RATIO, SPEEDUP, CACHED_MS, MEMORY_GB = 1.5, 150, 50, 4.0  # targets
Matrix = npt.NDArray[np.float64]


def build(path: Path, n: int, *, folds: bool) -> None:
    """`n` circuits of random scores, in two folds if `folds`."""
    model = Model("random", "LlamaForCausalLM", SHAPE, n_kv_heads=3, d_model=576)
    store, rng = Store(path), np.random.default_rng(0)
    for i in range(n):
        subtask = Subtask("addition", f"part {i + 1}", {"part": i + 1})
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


def judged(what: str, value: str, met: bool, target: str) -> bool:
    """Print a line; whether its target is met."""
    print(f"{what:52}{value:>22}   {'met' if met else 'missed'}: {target}")
    return met


def some(folder: Path, repeats: int) -> bool:
    """64 circuits; True if all targets are met."""
    met = True
    for folds in (False, True):
        path = folder / f"some-{folds}.duckdb"
        build(path, SOME, folds=folds)
        db = circuitdb.open(path, cache=False)
        np.testing.assert_allclose(db.similarity().matrix, floor(path, folds=False), atol=1e-3)  # the same question
        least = best(lambda path=path, folds=folds: floor(path, folds=folds), repeats)  # type: ignore[misc]
        ours = best(lambda db=db: db.similarity(), repeats)  # type: ignore[misc]
        name = f"{SOME} circuits, {'two folds' if folds else 'no folds'}: floor {least:.3f} s"
        met &= judged(name, f"{ours:.3f} s, {ours / least:.2f} x", ours <= RATIO * least, f"{RATIO} x the floor")
        if not folds:
            met &= against_others(path, ours)
    path = folder / "some-True.duckdb"
    kept = circuitdb.open(path)
    cached = 1000 * best(lambda: kept.similarity(), repeats)
    met &= judged(
        f"{SOME} circuits, two folds, from the cache", f"{cached:.0f} ms", cached <= CACHED_MS, f"{CACHED_MS} ms"
    )
    return met


def against_others(path: Path, ours: float) -> bool:
    """SciPy on the matrix and pair by pair, and the macro of the file, a pair and by that all of them."""
    scores, n_pairs = read(path, "edge_score"), SOME * (SOME - 1) // 2
    whole = best(lambda: spearmanr(scores, axis=1), 1)
    met = judged("SciPy's spearmanr on the matrix", f"{whole:.3f} s", ours < whole, "we are faster")
    pairs = [(i, i + 1) for i in range(0, 32, 2)]
    pair = best(lambda: [spearmanr(scores[i], scores[j]) for i, j in pairs], 1) / len(pairs)
    speedup = pair * n_pairs / ours
    met &= judged(
        "SciPy's spearmanr a pair, for all of them", f"{speedup:.0f} x as long", speedup >= SPEEDUP, f"{SPEEDUP} x"
    )
    with duckdb.connect(str(path), read_only=True) as connection:
        statement = "FROM similarity(?, ?)"
        macro = best(lambda: [connection.execute(statement, [i + 1, j + 1]).fetchall() for i, j in pairs], 1) / len(
            pairs
        )
    print(f"{'the macro similarity(a, b), a pair; all of them':52}{f'{macro:.3f} s; {macro * n_pairs:.0f} s':>22}")
    return met


def many(folder: Path) -> bool:
    """1,000 circuits, each way once in a process of its own; True if the targets are met."""
    path = folder / "many.duckdb"
    build(path, MANY, folds=False)
    (least, _), (ours, memory) = (alone(way, path) for way in ("floor", "similarity"))
    name = f"{MANY:,} circuits, no folds: floor {least:.1f} s"
    met = judged(name, f"{ours:.1f} s, {ours / least:.2f} x", ours <= RATIO * least, f"{RATIO} x the floor")
    return met & judged("their peak of memory", f"{memory:.2f} GB", memory <= MEMORY_GB, f"{MEMORY_GB:g} GB")


def alone(way: str, path: Path) -> tuple[float, float]:
    """(seconds, GB at the peak) of one way in a process of its own."""
    done = subprocess.run([sys.executable, __file__, way, str(path)], capture_output=True, text=True, check=True)
    seconds, peak = done.stdout.split()
    return float(seconds), float(peak)


def one(way: str, path: Path) -> None:
    """Do it once and print seconds and GB."""
    start = time.perf_counter()
    if way == "floor":
        floor(path, folds=False)
    else:
        circuitdb.open(path, cache=False).similarity()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e9 if sys.platform == "darwin" else 1e6)
    print(time.perf_counter() - start, peak)


def main(repeats: int) -> bool:
    """Measure and print; True if all targets are met."""
    print(f"{SHAPE.n_edges:,} edges a circuit, best of {repeats}\n")
    with tempfile.TemporaryDirectory() as folder:
        return some(Path(folder), repeats) & many(Path(folder))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        one(sys.argv[1], Path(sys.argv[2]))
    else:
        sys.exit(0 if main(int(sys.argv[1]) if len(sys.argv) > 1 else 7) else 1)
