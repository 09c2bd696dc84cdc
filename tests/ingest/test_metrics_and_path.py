"""Metrics by hand, and the points of each method's path."""

from __future__ import annotations

import math

import pytest
import torch

from circuitdb.errors import UsageError
from circuitdb.ingest import metrics
from circuitdb.ingest.path import Point, points

KL, DIFFERENCE = metrics.METRICS["kl"], metrics.METRICS["logit-difference"]


def test_kl_of_a_hand_computed_case() -> None:
    clean, run = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.9, 0.1]]).log()
    # 0.5 ln(0.5/0.9) + 0.5 ln(0.5/0.1) = 0.5108256; probabilities in the place of logarithms would give another value
    assert metrics.kl(run, clean).tolist() == pytest.approx([0.5 * math.log(0.25 / 0.09)], rel=1e-6)


def test_kl_does_not_depend_on_the_logits_offset_and_is_zero_on_itself() -> None:
    clean = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 5.0]])
    assert metrics.kl(clean + 7, clean).tolist() == pytest.approx([0, 0], abs=1e-6)


def test_kl_is_from_clean_to_run_and_its_gradient_is_run_less_clean() -> None:
    clean = torch.tensor([[1.0, 0.0, -1.0]], dtype=torch.float64)
    run = torch.tensor([[0.0, 0.5, 2.0]], dtype=torch.float64, requires_grad=True)
    metrics.kl(run, clean).sum().backward()
    assert run.grad is not None
    torch.testing.assert_close(run.grad, run.detach().softmax(-1) - clean.softmax(-1))


def test_logit_difference() -> None:
    logits = torch.tensor([[1.0, 4.0, 9.0], [2.0, 3.0, 5.0]])
    found = metrics.logit_difference(logits, logits, torch.tensor([[2, 0], [0, 1]]))
    assert found.tolist() == [8.0, -1.0]


def test_scored_logits_are_the_last_position_in_float32() -> None:
    logits = torch.arange(12.0, dtype=torch.bfloat16).reshape(1, 3, 4)
    found = metrics.scored_logits(logits)
    assert found.dtype == torch.float32
    assert found.tolist() == [[8, 9, 10, 11]]


def test_grids() -> None:
    assert points("eap-ig", 4, "left", KL) == tuple(Point(k / 4, 1 / 4) for k in (0, 1, 2, 3))
    assert points("eap-ig", 4, "right", DIFFERENCE) == tuple(Point(k / 4, 1 / 4) for k in (1, 2, 3, 4))
    assert points("eap-ig", 4, "right", KL) == tuple(Point(k / 4, 1 / 4) for k in (1, 2, 3))  # at clean KL is flat
    assert points("eap", None, None, DIFFERENCE) == (Point(1.0, 1.0),)


def test_eap_of_kl_is_refused_with_what_to_use() -> None:
    with pytest.raises(UsageError, match="use --method eap-ig, or --metric logit-difference"):
        points("eap", None, None, KL)
