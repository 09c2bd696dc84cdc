"""The attribution methods by name, with what each can do: the points of its path, and which ablations it allows.

`eap`                 gradient on the clean run (Syed et al. 2023)
`eap-ig`              mean gradient over runs whose embedding lies between corrupted and clean (Hanna et al. 2024)
`clean-corrupted`     mean of the gradients on the clean and on the corrupted run
`eap-ig-activations`  mean gradient over runs in which one layer's heads, one MLP or the embedding lies between (ibid.)
`exact`               no estimate: each edge is really patched

A grid places the m points of an integrated method between corrupted (0) and clean (1): `right` k/m for k = 1..m, `left`
k/m for k = 0..m-1, `midpoint` (k - 1/2)/m, `gauss-legendre` the nodes and weights of that quadrature.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from circuitdb.errors import UsageError
from circuitdb.ingest.metrics import Metric

PATCHING, ZERO, MEAN, MEAN_POSITIONAL = "patching", "zero", "mean", "mean-positional"
ABLATIONS = (PATCHING, ZERO, MEAN, MEAN_POSITIONAL)
GRIDS = ("right", "left", "midpoint", "gauss-legendre")
MOST_STEPS = 10_000
MOST_NODES = 100  # more Gauss-Legendre nodes take longer to find than to run


@dataclass(frozen=True)
class Method:
    """A method; `integrated` ones take steps and a grid."""

    name: str
    integrated: bool
    ablations: tuple[str, ...]


METHODS = {
    method.name: method
    for method in (
        Method("eap-ig", True, (PATCHING,)),
        Method("eap", False, ABLATIONS),
        Method("clean-corrupted", False, (PATCHING,)),
        Method("eap-ig-activations", True, ABLATIONS),
        Method("exact", False, ABLATIONS),
    )
}


@dataclass(frozen=True)
class Point:
    """A run at `corrupted + position (clean - corrupted)`, counted with `weight`."""

    position: float
    weight: float


def find(name: str) -> Method:
    """The method of that name. Raises UsageError, naming those there are."""
    if not isinstance(name, str) or name not in METHODS:
        raise UsageError(f"There is no method {name!r}; choose one of {', '.join(METHODS)}.")
    return METHODS[name]


def check_ablation(method: Method, ablation: str) -> None:
    """Raises UsageError for an unknown ablation, or one that the method can't have, with the methods that can."""
    check_known(ablation)
    if ablation not in method.ablations:
        others = ", ".join(m.name for m in METHODS.values() if ablation in m.ablations)
        raise UsageError(
            f"{method.name} follows a path to the corrupted run, so its ablation is patching, not {ablation}; "
            f"methods that allow {ablation} are {others}."
        )


def with_defaults(method: Method, steps: int | None, grid: str | None) -> tuple[int | None, str | None]:
    """Steps and grid of an integrated method, 5 and `right` unless given; None for any other.

    Raises UsageError where they are given to a method that has none: left out in silence, they would mislead.
    """
    if method.integrated:
        return (5 if steps is None else steps), ("right" if grid is None else grid)
    if steps is not None or grid is not None:
        raise UsageError(f"{method.name} follows no path, so it has neither steps nor a grid; leave them out.")
    return None, None


def check_known(ablation: str) -> None:
    """Raises UsageError for an unknown ablation, naming those there are."""
    if ablation not in ABLATIONS:
        raise UsageError(f"There is no ablation {ablation!r}; choose one of {', '.join(ABLATIONS)}.")


def points(method: Method, steps: int | None, grid: str | None, metric: Metric) -> tuple[Point, ...]:
    """The runs whose gradients make the estimate. None for `exact`.

    Weights add up to 1, but for a run whose gradient is zero by construction (KL on the clean run), which is left out.

    Raises:
        UsageError: an unknown grid, a number of steps under 1, or a method that is zero for the metric.
    """
    if method.name == "exact":
        return ()
    if method.name == "eap":
        path = [Point(1.0, 1.0)]
    elif method.name == "clean-corrupted":
        path = [Point(0.0, 0.5), Point(1.0, 0.5)]
    else:
        path = _grid(method, steps, grid)
    kept = tuple(p for p in path if not (metric.flat_at_clean and p.position == 1.0))
    if kept:
        return kept
    if method.name == "eap":
        raise UsageError(
            f"The gradient of {metric.name} on the clean run is zero by construction, so eap would score every "
            "edge 0; use --method eap-ig, or --metric logit-difference."
        )
    raise UsageError(
        f"{method.name} with one step on the right grid is the clean run alone, where the gradient of {metric.name} "
        "is zero by construction; use more steps."
    )


def _grid(method: Method, steps: int | None, grid: str | None) -> list[Point]:
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= MOST_STEPS:
        raise UsageError(f"{method.name} takes a whole number of steps from one to {MOST_STEPS:,}, not {steps!r}.")
    if grid not in GRIDS:
        raise UsageError(f"There is no grid {grid!r}; choose one of {', '.join(GRIDS)}.")
    if grid == "gauss-legendre" and steps > MOST_NODES:
        raise UsageError(f"The grid gauss-legendre takes at most {MOST_NODES} steps, not {steps:,}.")
    if grid == "gauss-legendre":
        nodes, weights = np.polynomial.legendre.leggauss(steps)
        return [Point(float(1 + x) / 2, float(w) / 2) for x, w in zip(nodes, weights, strict=True)]
    first = {"right": 1.0, "left": 0.0, "midpoint": 0.5}[grid]
    return [Point((first + k) / steps, 1 / steps) for k in range(steps)]
