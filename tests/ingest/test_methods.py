"""The points of each method's path, and what each method allows."""

from __future__ import annotations

import numpy as np
import pytest

from circuitdb.errors import UsageError
from circuitdb.ingest import metrics
from circuitdb.ingest.methods import ABLATIONS, METHODS, Method, Point, check_ablation, points, with_defaults

KL, DIFFERENCE = metrics.METRICS["kl"], metrics.METRICS["logit-difference"]
EAP, EAP_IG, CLEAN_CORRUPTED = METHODS["eap"], METHODS["eap-ig"], METHODS["clean-corrupted"]


def test_grids() -> None:
    assert points(EAP_IG, 4, "left", KL) == tuple(Point(k / 4, 1 / 4) for k in (0, 1, 2, 3))
    assert points(EAP_IG, 4, "right", DIFFERENCE) == tuple(Point(k / 4, 1 / 4) for k in (1, 2, 3, 4))
    assert points(EAP_IG, 4, "right", KL) == tuple(Point(k / 4, 1 / 4) for k in (1, 2, 3))  # at clean KL is flat
    assert points(EAP_IG, 4, "midpoint", KL) == tuple(Point(k / 8, 1 / 4) for k in (1, 3, 5, 7))


@pytest.mark.parametrize("grid", ["midpoint", "gauss-legendre"])
def test_symmetric_grids_integrate_polynomials(grid: str) -> None:
    found = points(EAP_IG, 4, grid, KL)
    degree = 7 if grid == "gauss-legendre" else 1  # exact up to 2m - 1, or for straight lines
    for power in range(degree + 1):
        integral = sum(p.weight * p.position**power for p in found)
        assert integral == pytest.approx(1 / (power + 1), rel=1e-12)


def test_gauss_legendre_of_two_points_by_hand() -> None:
    low, high = points(EAP_IG, 2, "gauss-legendre", KL)
    # +-1/sqrt(3) on [-1, 1]
    assert (low.position, high.position) == pytest.approx((0.5 - np.sqrt(1 / 12), 0.5 + np.sqrt(1 / 12)))
    assert (low.weight, high.weight) == pytest.approx((0.5, 0.5))


def test_methods_without_a_grid() -> None:
    assert points(EAP, None, None, DIFFERENCE) == (Point(1.0, 1.0),)
    assert points(CLEAN_CORRUPTED, None, None, DIFFERENCE) == (Point(0.0, 0.5), Point(1.0, 0.5))
    assert points(CLEAN_CORRUPTED, None, None, KL) == (Point(0.0, 0.5),)  # that at clean is zero, and still counts
    assert points(METHODS["exact"], None, None, KL) == ()


def test_eap_of_kl_is_refused_with_what_to_use() -> None:
    with pytest.raises(UsageError, match="use --method eap-ig, or --metric logit-difference"):
        points(EAP, None, None, KL)


def test_steps_and_grid_are_those_of_integrated_methods_alone() -> None:
    assert with_defaults(EAP_IG, None, None) == (5, "right")
    assert with_defaults(METHODS["eap-ig-activations"], 3, "left") == (3, "left")
    assert with_defaults(EAP, None, None) == (None, None)
    for given in ((5, None), (None, "right")):
        with pytest.raises(UsageError, match="eap follows no path, so it has neither steps nor a grid"):
            with_defaults(EAP, *given)


def test_too_many_nodes() -> None:
    with pytest.raises(UsageError, match="takes at most 100 steps, not 101"):
        points(EAP_IG, 101, "gauss-legendre", KL)


@pytest.mark.parametrize("ablation", ABLATIONS)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_which_method_allows_which_ablation(method: Method, ablation: str) -> None:
    allowed = {"eap-ig": {"patching"}, "clean-corrupted": {"patching"}}
    if ablation in allowed.get(method.name, set(ABLATIONS)):
        check_ablation(method, ablation)
        return
    with pytest.raises(UsageError, match=r"methods that allow .* are eap, eap-ig-activations, exact"):
        check_ablation(method, ablation)


def test_unknown_ablation() -> None:
    with pytest.raises(UsageError, match="There is no ablation 'noise'; choose one of patching, zero"):
        check_ablation(EAP, "noise")
