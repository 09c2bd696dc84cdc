"""Gradient methods as points on the straight path from the corrupted to the clean embedding.

`eap` (edge attribution patching) takes the gradient on the clean run. `eap-ig` (Hanna et al. 2024, after integrated
gradients) takes its mean over m runs whose embedding is `corrupted + a (clean - corrupted)`, with a on a grid:
`right` a = k/m for k = 1..m, `left` a = k/m for k = 0..m-1.
"""

from __future__ import annotations

from dataclasses import dataclass

from circuitdb.errors import UsageError
from circuitdb.ingest.metrics import Metric

METHODS = ("eap-ig", "eap")
GRIDS = ("right", "left")
MOST_STEPS = 10_000


@dataclass(frozen=True)
class Point:
    """A run whose embedding is `corrupted + position (clean - corrupted)`, counted with `weight`."""

    position: float
    weight: float


def points(method: str, steps: int | None, grid: str | None, metric: Metric) -> tuple[Point, ...]:
    """The runs whose gradients make the estimate; weights add up to 1.

    A run whose gradient is zero by construction (KL on the clean run) is left out.

    Raises:
        UsageError: an unknown method or grid, a number of steps under 1, or a method that is zero for the metric.
    """
    if method not in METHODS:
        raise UsageError(f"There is no method {method!r}; choose one of {', '.join(METHODS)}.")
    if method == "eap":
        if metric.flat_at_clean:
            raise UsageError(
                f"The gradient of {metric.name} on the clean run is zero by construction, so eap would score every "
                "edge 0; use --method eap-ig, or --metric logit-difference."
            )
        return (Point(1.0, 1.0),)
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= MOST_STEPS:
        raise UsageError(f"eap-ig takes a whole number of steps from one to {MOST_STEPS:,}, not {steps!r}.")
    if grid not in GRIDS:
        raise UsageError(f"There is no grid {grid!r}; choose one of {', '.join(GRIDS)}.")
    first = 1 if grid == "right" else 0
    path = [Point((first + k) / steps, 1 / steps) for k in range(steps)]
    kept = tuple(p for p in path if not (metric.flat_at_clean and p.position == 1.0))
    if not kept:
        raise UsageError(
            f"eap-ig with one step on the right grid is the clean run alone, where the gradient of {metric.name} "
            "is zero by construction; use more steps."
        )
    return kept
