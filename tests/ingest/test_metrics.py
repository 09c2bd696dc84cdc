"""Metrics by hand, and those of a user's own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from circuitdb.errors import UsageError
from circuitdb.ingest import LoadedModel, load_model, metrics, register_metric, score_edges


def position(*probabilities: float) -> Tensor:
    """Logits [1, 1, vocab] of one example at one position."""
    return torch.tensor([[probabilities]], dtype=torch.float64).log()


def test_kl_of_a_hand_computed_case() -> None:
    clean, run = position(0.5, 0.5), position(0.9, 0.1)
    # 0.5 ln(0.5/0.9) + 0.5 ln(0.5/0.1) = 0.5108256; probabilities in the place of logarithms would give another value
    assert metrics.kl(run, clean).tolist() == pytest.approx([0.5 * math.log(0.25 / 0.09)], rel=1e-12)


def test_kl_published_of_a_hand_computed_case_is_no_divergence() -> None:
    clean, run = position(0.5, 0.5), position(0.9, 0.1)
    # exp(0.5) (0.5 - ln 0.9) + exp(0.5) (0.5 - ln 0.1); of a distribution with itself it is not 0
    wanted = math.exp(0.5) * (1 - math.log(0.09))
    assert metrics.kl_published(run, clean).tolist() == pytest.approx([wanted], rel=1e-12)
    assert metrics.kl_published(clean, clean).tolist() == pytest.approx(
        [math.exp(0.5) * (1 - math.log(0.25))], rel=1e-12
    )


def test_kl_does_not_depend_on_the_logits_offset_and_is_zero_on_itself() -> None:
    clean = torch.tensor([[[1.0, 2.0, 3.0]], [[0.0, 0.0, 5.0]]])
    assert metrics.kl(clean + 7, clean).tolist() == pytest.approx([0, 0], abs=1e-6)


def test_kl_is_from_clean_to_run_and_its_gradient_is_run_less_clean() -> None:
    clean = torch.tensor([[[1.0, 0.0, -1.0]]], dtype=torch.float64)
    run = torch.tensor([[[0.0, 0.5, 2.0]]], dtype=torch.float64, requires_grad=True)
    metrics.kl(run, clean).sum().backward()
    assert run.grad is not None
    torch.testing.assert_close(run.grad, run.detach().softmax(-1) - clean.softmax(-1))


LOGITS = torch.tensor([[[1.0, 4.0, 9.0]], [[2.0, 3.0, 5.0]]])


def value(name: str, labels: list[list[list[int]]], logits: Tensor = LOGITS) -> list[float]:
    """A built-in metric of some labels."""
    found: list[float] = metrics.METRICS[name].value(logits, logits, torch.tensor(labels)).tolist()
    return found


def test_logit_difference_is_to_the_other_label_or_to_the_mean_of_a_set() -> None:
    assert value("logit-difference", [[[2, 0]], [[0, 1]]]) == [8.0, -1.0]
    assert value("logit-difference", [[[2, 0, 1]], [[0, 1, -1]]]) == [9 - 2.5, -1.0]  # -1 is no token


def test_prob_difference_is_to_the_sum_of_a_set() -> None:
    logits = torch.cat([position(0.7, 0.2, 0.1), position(0.1, 0.3, 0.6)])
    assert value("prob-difference", [[[0, 1]], [[0, 2]]], logits) == pytest.approx([0.5, -0.5])
    assert value("prob-difference", [[[0, 1, 2]], [[0, 2, -1]]], logits) == pytest.approx([0.4, -0.5])


def test_differences_count_only_positions_that_compare_something() -> None:
    logits = LOGITS.reshape(1, 2, 3)
    assert value("logit-difference", [[[2, -1], [0, 1]]], logits) == [-1.0]
    assert value("prob-difference", [[[2, -1], [0, -1]]], logits) == [0.0]


def test_nll_is_summed_over_the_answers_tokens() -> None:
    logits = torch.cat([position(0.7, 0.2, 0.1), position(0.1, 0.3, 0.6)], dim=1)
    assert value("nll", [[[0, 1], [2, 1]]], logits) == pytest.approx([-math.log(0.7 * 0.6)])


def test_metrics_are_summed_over_positions() -> None:
    clean, run = position(0.5, 0.5), position(0.9, 0.1)
    twice = metrics.kl(torch.cat([run, run], dim=1), torch.cat([clean, clean], dim=1))
    assert twice.tolist() == pytest.approx([2 * 0.5 * math.log(0.25 / 0.09)], rel=1e-12)


@pytest.fixture
def registered() -> Iterator[None]:
    """Forget metrics that a test registers."""
    before = dict(metrics.METRICS)
    yield
    metrics.METRICS.clear()
    metrics.METRICS.update(before)


CLEAN = torch.arange(24).reshape(3, 8)
CORRUPTED = CLEAN.roll(1, 0)
LABELS = torch.tensor([[3, 9], [9, 3], [5, 6]])


def test_own_metric_scores_as_the_built_in_one_of_the_same_formula(gqa: LoadedModel, registered: None) -> None:
    def margin(logits: Tensor, clean_logits: Tensor, labels: Tensor | None) -> Tensor:
        assert labels is not None
        picked = logits.gather(-1, labels)
        return (picked[..., 0] - picked[..., 1]).sum(-1)

    found = register_metric("margin", margin, needs_answer=True, needs_contrast=True, higher_is_better=True)
    assert found.source is not None
    own, built_in = (
        score_edges(gqa, CLEAN, CORRUPTED, method="eap", metric=name, labels=LABELS)
        for name in ("margin", "logit-difference")
    )
    np.testing.assert_array_equal(own.scores, built_in.scores)
    assert own.metric_clean == built_in.metric_clean


def test_own_metric_of_other_code_has_another_source(registered: None) -> None:
    first = register_metric("sum", lambda logits, clean, labels: logits.sum((1, 2)))
    second = register_metric("sum", lambda logits, clean, labels: 2 * logits.sum((1, 2)))
    assert first.source != second.source
    assert metrics.find("sum") is second


def test_what_a_metric_closes_over_and_how_it_is_flagged_tell_it_from_others(registered: None) -> None:
    def scaled(by: float) -> metrics.Value:
        return lambda logits, clean, labels: by * logits.sum((1, 2))

    sources = {register_metric("scaled", scaled(by)).source for by in (1.0, -5.0, 1.0)}
    assert len(sources) == 2
    value = scaled(1.0)
    flagged = [
        register_metric("scaled", value),
        register_metric("scaled", value, flat_at_clean=True),
        register_metric("scaled", value, higher_is_better=True),
        register_metric("scaled", value, needs_answer=True),
    ]
    assert len({metric.source for metric in flagged}) == 4


def test_a_callable_object_needs_a_version(registered: None) -> None:
    class Sum:
        def __call__(self, logits: Tensor, clean_logits: Tensor, labels: Tensor | None) -> Tensor:
            return logits.sum((1, 2))

    with pytest.raises(UsageError, match="no plain function; say which it is with version="):
        register_metric("sum", Sum())
    first, again, other = (register_metric("sum", Sum(), version=v).source for v in ("1", "1", "2"))
    assert first == again != other


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("kl", metrics.kl, "A metric can't be called 'kl'"),
        (" ", metrics.kl, "A metric can't be called ' '"),
    ],
)
def test_bad_registrations(name: str, given: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        register_metric(name, given)  # type: ignore[arg-type]


def test_own_metric_must_give_one_differentiable_number_an_example(gqa: LoadedModel, registered: None) -> None:
    register_metric("mean", lambda logits, clean, labels: logits.mean())
    with pytest.raises(UsageError, match=r"metric mean gave torch.float64 of shape \(\); it must give one real number"):
        score_edges(gqa, CLEAN, CORRUPTED, metric="mean")
    register_metric("constant", lambda logits, clean, labels: logits.detach().sum((1, 2)))
    with pytest.raises(UsageError, match="constant does not depend on the logits"):
        score_edges(gqa, CLEAN, CORRUPTED, metric="constant")


def test_half_precision_logits_are_scored_in_float32(golden: Path) -> None:
    half = load_model(golden / "B_gpt2", dtype="bfloat16")
    with pytest.MonkeyPatch.context() as patch:
        seen: list[torch.dtype] = []
        kl = metrics.METRICS["kl"]

        def watched(logits: Tensor, clean: Tensor, labels: Tensor | None) -> Tensor:
            seen.append(logits.dtype)
            return metrics.kl(logits, clean, labels)

        patch.setitem(metrics.METRICS, "kl", metrics.Metric("kl", watched, flat_at_clean=kl.flat_at_clean))
        score_edges(half, CLEAN, CORRUPTED)
    assert set(seen) == {torch.float32}


def test_a_metric_that_is_not_finite_is_refused(gqa: LoadedModel, registered: None) -> None:
    def holed(logits: Tensor, clean_logits: Tensor, labels: Tensor | None) -> Tensor:
        value = logits.sum((1, 2))
        return torch.where(torch.arange(len(value)) == 1, torch.nan, value)

    register_metric("holed", holed)
    for method in ("eap", "exact"):
        with pytest.raises(UsageError, match="holed is not finite on every example"):
            score_edges(gqa, CLEAN, CORRUPTED, method=method, metric="holed")


def test_a_metric_that_changes_what_it_is_given_changes_nothing(gqa: LoadedModel, registered: None) -> None:
    def rude(logits: Tensor, clean_logits: Tensor, labels: Tensor | None) -> Tensor:
        clean_logits.mul_(0)
        return logits.mul_(2).sum((1, 2))

    register_metric("rude", rude)
    register_metric("plain", lambda logits, clean_logits, labels: 2 * logits.sum((1, 2)))
    rough, plain = (score_edges(gqa, CLEAN, CORRUPTED, method="eap", metric=name) for name in ("rude", "plain"))
    np.testing.assert_allclose(rough.scores, plain.scores, rtol=0, atol=1e-6 * np.abs(plain.scores).max())
    assert rough.metric_clean == pytest.approx(plain.metric_clean, rel=1e-9)


def test_a_token_named_twice_is_refused(gqa: LoadedModel) -> None:
    labels = torch.tensor([[3, 9, 9]] * 3)
    with pytest.raises(UsageError, match="name one token twice"):
        score_edges(gqa, CLEAN, CORRUPTED, metric="prob-difference", labels=labels)
