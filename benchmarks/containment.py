"""Containment of 64 circuits x 123,211 edges at 20 sizes: cut, compared and set against chance, from arrays in memory.

Then what the other cuts cost at one size. Target: the 20 sizes together in under 2 s.

    python benchmarks/containment.py [repeats]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from circuitdb.graph import GraphShape
from circuitdb.queries import chance
from circuitdb.queries.containment import overlaps
from circuitdb.queries.cuts import Cut, hards
from circuitdb.queries.order import hasse

SHAPE = GraphShape(n_layers=30, n_heads=9)  # SmolLM2-135M
CIRCUITS, TARGET = 64, 2.0
SIZES = np.geomspace(50, SHAPE.n_edges, 20).astype(int).tolist()
OTHERS = {
    "top, pruned": Cut.of(top=2000, prune=True),
    "greedy": Cut.of(greedy=2000),
    "threshold": Cut.of(threshold=2.0),
}


def compare(scores: np.ndarray, cuts: list[Cut]) -> None:
    """Everything that `Database.containment` and `containment_order` compute of these cuts."""
    first, second = np.triu_indices(len(scores), 1)
    for found in hards(scores, cuts, SHAPE):
        shared = overlaps(found.members)
        n_a, n_b = found.n[first], found.n[second]
        chance.expected_jaccard(SHAPE.n_edges, n_a, n_b)
        chance.at_least(SHAPE.n_edges, n_a, n_b, shared[first, second])
        hasse(shared >= 0.95 * np.maximum(found.n, 1)[:, None])


def best(task: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of several runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


def main(repeats: int) -> bool:
    """Measure and print; True if the target is met."""
    scores = np.random.default_rng(0).standard_normal((CIRCUITS, SHAPE.n_edges), np.float32)
    print(f"{CIRCUITS} circuits x {SHAPE.n_edges:,} edges, best of {repeats}\n")
    whole = best(lambda: compare(scores, [Cut.of(top=n) for n in SIZES]), repeats)
    print(f"{f'top, {len(SIZES)} sizes':20}{whole:>8.3f} s")
    for name, cut in OTHERS.items():
        print(f"{f'{name}, 1 size':20}{best(lambda cut=cut: compare(scores, [cut]), repeats):>8.3f} s")  # type: ignore[misc]
    met = whole < TARGET
    print(f"\nTarget: {len(SIZES)} sizes in under {TARGET:g} s: {'met' if met else 'missed'}.")
    return met


if __name__ == "__main__":
    sys.exit(0 if main(int(sys.argv[1]) if len(sys.argv) > 1 else 3) else 1)
