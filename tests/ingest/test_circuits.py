"""Hard circuits that are run, against the oracle, and their two ends against plain runs of the model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

import oracle
from circuitdb.errors import ModelError, UsageError
from circuitdb.ingest import CircuitRunner, CircuitValues, evaluate_circuits, metrics
from circuitdb.ingest.batch import Group

if TYPE_CHECKING:
    from cases import Case

ARCHITECTURES = ["gpt2", "gpt-neox", "llama-3", "gemma-2", "olmo-2", "phi-3"]
DENSITIES = (0.2, 0.6, 0.95)
METRICS = ["kl", "logit-difference"]
Mask = npt.NDArray[np.bool_]


@pytest.fixture(autouse=True)
def full_precision() -> Iterator[None]:
    with oracle.full_precision():
        yield


@pytest.fixture(params=ARCHITECTURES)
def case(request: pytest.FixtureRequest, case_of: Callable[[str], Case]) -> Case:
    return case_of(request.param)


@pytest.fixture
def gpt2(case_of: Callable[[str], Case]) -> Case:
    return case_of("gpt2")


@pytest.fixture
def llama(case_of: Callable[[str], Case]) -> Case:
    return case_of("llama-3")


def masks(case: Case, densities: tuple[float, ...] = DENSITIES) -> Mask:
    """Random circuits, one of each density."""
    draws = np.random.default_rng(0).random((len(densities), case.shape.n_edges))
    return np.asarray(draws < np.array(densities)[:, None])


def whole(case: Case) -> Mask:
    """The circuit with all edges, and that with none."""
    return np.stack([np.ones(case.shape.n_edges, dtype=bool), np.zeros(case.shape.n_edges, dtype=bool)])


def evaluate(case: Case, circuits: Mask, **options: Any) -> CircuitValues:
    given = {"metric": "logit-difference", "labels": case.labels, **options}
    return evaluate_circuits(case.engine, case.clean, case.corrupted, circuits, **given)


# --- against the oracle ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
def test_circuits_of_three_densities_equal_the_oracle(case: Case, metric: str) -> None:
    kept, measure = masks(case), case.metric(metric)
    expected = [
        float(measure(oracle.circuit(case.model, case.clean, case.corrupted, circuit)).mean()) for circuit in kept
    ]
    found = evaluate(case, kept, metric=metric)
    assert len(set(expected)) == len(expected)
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("metric", METRICS)
def test_all_edges_are_the_clean_run_and_none_the_corrupted(case: Case, metric: str) -> None:
    measure = case.metric(metric)
    clean, corrupted = (
        float(measure(oracle.logits(case.model, tokens)).mean()) for tokens in (case.clean, case.corrupted)
    )
    found = evaluate(case, whole(case), metric=metric)
    assert abs(clean - corrupted) > 1e-3
    assert (found.clean, found.ablated) == pytest.approx((clean, corrupted), rel=0, abs=1e-12)
    np.testing.assert_allclose(found.values, [clean, corrupted], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.faithfulness, [1, 0], rtol=0, atol=1e-10)


def test_a_beginning_in_common_changes_nothing(case: Case) -> None:
    """The prompts of a case begin alike and share a prefix; a prompt of its own among them takes it away."""
    kept, other = masks(case), torch.arange(1, 9)[None]
    shared = evaluate(case, kept)
    alone = evaluate_circuits(
        case.engine, other, other.flip(1), kept, metric="logit-difference", labels=torch.tensor([[1, 2]])
    )
    together = evaluate_circuits(
        case.engine,
        torch.cat([case.clean, other]),
        torch.cat([case.corrupted, other.flip(1)]),
        kept,
        metric="logit-difference",
        labels=torch.cat([case.labels, torch.tensor([[1, 2]])]),
    )
    np.testing.assert_allclose(4 * together.values, 3 * shared.values + alone.values, rtol=0, atol=1e-12)


# --- batches ---------------------------------------------------------------------------------------------------------


def test_several_circuits_at_once_are_each_by_itself(llama: Case) -> None:
    kept = masks(llama)
    together = evaluate(llama, kept).values
    np.testing.assert_allclose(
        together, [float(evaluate(llama, circuit[None]).values[0]) for circuit in kept], rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("batch_size", [1, 2])
def test_batch_size_does_not_matter(llama: Case, batch_size: int) -> None:
    kept = masks(llama)
    found, plain = evaluate(llama, kept, batch_size=batch_size), evaluate(llama, kept)
    np.testing.assert_allclose(found.values, plain.values, rtol=0, atol=1e-12)
    assert (found.clean, found.ablated) == pytest.approx((plain.clean, plain.ablated), rel=0, abs=1e-12)
    assert found.n_examples == 3


def test_groups_of_several_lengths_are_weighed_by_their_examples(llama: Case) -> None:
    kept, metric = masks(llama), metrics.find("logit-difference")
    runner = CircuitRunner(llama.engine)
    fold = torch.zeros(3, dtype=torch.int64)
    long = Group(llama.clean, llama.corrupted, llama.labels, fold)
    short = Group(llama.clean[:1, :6], llama.corrupted[:1, :6], llama.labels[:1], fold[:1])
    shares: list[float] = []
    both = runner.evaluate([short, long], kept, metric, progress=shares.append)
    first, second = (runner.evaluate([group], kept, metric) for group in (short, long))
    np.testing.assert_allclose(4 * both.values, first.values + 3 * second.values, rtol=0, atol=1e-12)
    assert 4 * both.clean == pytest.approx(first.clean + 3 * second.clean, rel=0, abs=1e-12)
    assert both.n_examples == 4
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_several_scored_positions_are_summed(llama: Case) -> None:
    """Logit difference at the last two positions: that at the last, and that at the last but one of shorter prompts."""
    kept = masks(llama)
    labels = torch.stack([llama.labels.flip(1), llama.labels], dim=1)
    both = evaluate(llama, kept, labels=labels, scored=2)
    before = evaluate_circuits(
        llama.engine, llama.clean[:, :-1], llama.corrupted[:, :-1], kept, metric="logit-difference",
        labels=llama.labels.flip(1),
    )  # fmt: skip
    last = evaluate(llama, kept)
    np.testing.assert_allclose(both.values, before.values + last.values, rtol=0, atol=1e-12)


# --- other ablations -------------------------------------------------------------------------------------------------


def by_hand(case: Case, values: Tensor) -> float:
    """Mean logit difference where the last norm reads all sources' fixed values [d_model] and GPT-2's output biases."""
    blocks = case.model.transformer.h
    stream = values + sum(block.attn.c_proj.bias for block in blocks)
    logits = case.model.lm_head(case.model.transformer.ln_f(stream)).expand(3, -1)
    return float(case.metric("logit-difference")(logits).mean())


def test_nothing_but_biases_is_left_of_a_model_of_zeros(gpt2: Case) -> None:
    """No source writes; what attention's output biases add belongs to no head and stays."""
    expected = by_hand(gpt2, torch.zeros(32, dtype=torch.float64))
    found = evaluate(gpt2, whole(gpt2), ablation="zero")
    assert found.ablated == pytest.approx(expected, rel=0, abs=1e-12)
    assert found.values.tolist() == pytest.approx([found.clean, expected], rel=0, abs=1e-12)


def test_nothing_but_means_is_left_under_mean_ablation(gpt2: Case) -> None:
    reference = torch.cat([gpt2.clean, gpt2.corrupted]).flip(1)
    mean = oracle.sources(gpt2.model, reference).mean((1, 2)).sum(0)
    found = evaluate(gpt2, whole(gpt2), ablation="mean", reference=reference)
    assert found.ablated == pytest.approx(by_hand(gpt2, mean), rel=0, abs=1e-12)
    assert found.values.tolist() == pytest.approx([found.clean, found.ablated], rel=0, abs=1e-12)


def test_nothing_but_the_means_at_the_last_position_is_left_under_positional_ablation(gpt2: Case) -> None:
    reference = torch.cat([gpt2.clean, gpt2.corrupted]).flip(1)
    mean = oracle.sources(gpt2.model, reference).mean(1)[:, -1].sum(0)
    found = evaluate(gpt2, whole(gpt2), ablation="mean-positional", reference=reference)
    assert found.ablated == pytest.approx(by_hand(gpt2, mean), rel=0, abs=1e-12)
    assert found.values.tolist() == pytest.approx([found.clean, found.ablated], rel=0, abs=1e-12)


def test_means_are_over_the_corrupted_prompts_unless_others_are_given(gpt2: Case) -> None:
    kept = masks(gpt2)
    default, given = (evaluate(gpt2, kept, ablation="mean", reference=r).values for r in (None, gpt2.corrupted))
    other = evaluate(gpt2, kept, ablation="mean", reference=gpt2.clean).values
    np.testing.assert_array_equal(default, given)
    assert np.abs(default - other).max() > 1e-3


@pytest.mark.parametrize("ablation", ["zero", "mean", "mean-positional"])
def test_a_part_of_the_model_under_other_ablations_equals_brute_force(gpt2: Case, ablation: str) -> None:
    written = oracle.sources(gpt2.model, gpt2.corrupted)
    values = {
        "zero": torch.zeros_like(written),
        "mean": written.mean((1, 2), keepdim=True).expand_as(written),
        "mean-positional": written.mean(1, keepdim=True).expand_as(written),
    }[ablation]
    (kept,) = masks(gpt2, (0.6,))
    cut = torch.zeros(gpt2.shape.mask.shape, dtype=torch.float64)
    cut[torch.tensor(gpt2.shape.mask)] = torch.tensor(~kept, dtype=torch.float64)

    def change(targets: slice, present: Tensor) -> Tensor:
        n = len(present)
        return torch.einsum("uv,ubpd->vbpd", cut[:n, targets], values[:n] - present)

    with torch.no_grad():
        logits = oracle.Pass(gpt2.model, change).run(gpt2.clean).logits
    expected = float(gpt2.metric("logit-difference")(logits).mean())
    found = evaluate(gpt2, kept[None], ablation=ablation)
    assert found.values[0] == pytest.approx(expected, rel=0, abs=1e-12)


def test_faithfulness_without_a_gap_is_not_a_number(gpt2: Case) -> None:
    found = evaluate_circuits(gpt2.engine, gpt2.clean, gpt2.clean.clone(), masks(gpt2), metric="kl")
    assert found.clean == found.ablated == 0
    assert np.isnan(found.faithfulness).all()


# --- generation ------------------------------------------------------------------------------------------------------


def greedy(case: Case, prompts: Tensor, n_tokens: int, chosen_by: Tensor | None = None) -> Tensor:
    """The next token n times; with `chosen_by` it is that which follows this other text, which grows by it too."""
    written = prompts[:, :0]
    for _ in range(n_tokens):
        seen = torch.cat([prompts if chosen_by is None else chosen_by, written], dim=1)
        written = torch.cat([written, oracle.logits(case.model, seen).argmax(-1)[:, None]], dim=1)
    return written


@pytest.mark.parametrize("name", ["gpt2", "llama-3"])
def test_all_edges_write_what_the_model_writes(case_of: Callable[[str], Case], name: str) -> None:
    case = case_of(name)
    found = CircuitRunner(case.engine).generate(case.clean, case.corrupted, whole(case)[0], 4)
    assert found.tolist() == greedy(case, case.clean, 4).tolist()


@pytest.mark.parametrize("name", ["gpt2", "llama-3"])
def test_no_edge_writes_what_follows_the_corrupted_prompt(case_of: Callable[[str], Case], name: str) -> None:
    case = case_of(name)
    found = CircuitRunner(case.engine, batch_size=2).generate(case.clean, case.corrupted, whole(case)[1], 4)
    assert found.tolist() == greedy(case, case.clean, 4, chosen_by=case.corrupted).tolist()
    assert found.tolist() != greedy(case, case.clean, 4).tolist()


def test_writing_ends_with_the_context(gpt2: Case) -> None:
    prompts = torch.arange(62)[None]
    found = CircuitRunner(gpt2.engine).generate(prompts, prompts.flip(1), whole(gpt2)[0], 9)
    assert found.shape == (1, 3)  # after 62, 63 and 64 tokens of 64


# --- bad input -------------------------------------------------------------------------------------------------------


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("list", {"circuits": [[True] * 110]}, "Circuits must be a numpy array of booleans, [n_circuits, n_edges]."),
    ("numbers", {"circuits": np.ones((1, 110))}, "Circuits must be a numpy array of booleans"),
    ("one row", {"circuits": np.ones(110, dtype=bool)}, "Circuits must be a numpy array of booleans"),
    ("edges of another", {"circuits": np.ones((1, 5), dtype=bool)}, "have 5 edges; this model has 110."),
    ("no ablation", {"ablation": "noise"}, "There is no ablation 'noise'; choose one of patching, zero"),
    ("no batch", {"batch_size": 0}, "at least one pair, not 0"),
    ("no metric", {"metric": "loss"}, "There is no metric 'loss'"),
    ("no labels", {"labels": None}, "The metric logit-difference needs labels"),
    ("array of tokens", {"clean": np.ones((3, 8))}, "of type ndarray; give a torch tensor"),
    ("a single number", {"clean": torch.tensor(3)}, "they must be int64 [batch, pos]"),
    ("no pairs", {"clean": torch.ones(0, 8).long(), "corrupted": torch.ones(0, 8).long(),
                  "labels": torch.ones(0, 2).long()}, "There are no examples to run circuits on."),
    ("outside the vocabulary", {"corrupted": torch.full((3, 8), 64)}, "corrupted tokens have ids outside"),
    ("too long", {"clean": torch.ones(3, 65).long(), "corrupted": torch.ones(3, 65).long()}, "context of 64"),
    ("unequal lengths", {"corrupted": torch.ones(3, 7).long()}, "every pair must have equal length"),
    ("list of references", {"reference": [[1, 2]], "ablation": "mean"}, "The reference tokens are of type list"),
    ("needless references", {"reference": torch.ones(2, 8).long()}, "patching takes no mean; leave the reference"),
    ("no reference", {"reference": torch.ones(0, 8).long(), "ablation": "mean"}, "The reference set is empty"),
    ("none of the length", {"reference": torch.ones(2, 5).long(), "ablation": "mean-positional"},
     "has no prompt of 8 tokens to take a mean over; a mean needs at least one prompt."),
    ("too many positions", {"scored": 9}, "Of 8 positions a whole number from 1 up to all can be scored, not 9."),
    ("no model", {"model": "gpt2"}, "The model is of type str; give one from load_model."),
]  # fmt: skip


@pytest.mark.parametrize(("given", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_input_is_refused_in_a_sentence(gpt2: Case, given: dict[str, Any], message: str) -> None:
    plain = {
        "model": gpt2.engine, "clean": gpt2.clean, "corrupted": gpt2.corrupted, "circuits": whole(gpt2),
        "metric": "logit-difference", "labels": gpt2.labels,
    }  # fmt: skip
    with pytest.raises(UsageError, match=re.escape(message)):
        evaluate_circuits(**{**plain, **given})


GENERATION: list[tuple[str, dict[str, Any], str]] = [
    ("list", {"circuit": [True]}, "A circuit must be a numpy array of booleans, [n_edges]."),
    ("unequal lengths", {"corrupted": torch.ones(3, 7).long()}, "every pair must have equal length"),
    ("no prompts", {"prompts": torch.ones(0, 8).long(), "corrupted": torch.ones(0, 8).long()}, "no prompts to go on"),
    ("half a token", {"n_tokens": 1.5}, "a whole number of tokens"),
]


@pytest.mark.parametrize(("given", "message"), [case[1:] for case in GENERATION], ids=[case[0] for case in GENERATION])
def test_what_can_not_be_written_is_refused_in_a_sentence(gpt2: Case, given: dict[str, Any], message: str) -> None:
    plain = {"prompts": gpt2.clean, "corrupted": gpt2.corrupted, "circuit": whole(gpt2)[0], "n_tokens": 2}
    with pytest.raises(UsageError, match=re.escape(message)):
        CircuitRunner(gpt2.engine).generate(**{**plain, **given})


def test_no_token_that_is_written_has_a_mean_at_its_position(gpt2: Case) -> None:
    with pytest.raises(UsageError, match="A mean at each position is known for prompts alone"):
        CircuitRunner(gpt2.engine, ablation="mean-positional").generate(gpt2.clean, gpt2.corrupted, whole(gpt2)[0], 1)


def test_a_model_that_gives_nan_is_refused(gpt2: Case) -> None:
    weight = gpt2.engine.bridge.ln_final.original_component.weight
    kept = weight.data.clone()
    evaluate(gpt2, whole(gpt2))  # its trial passes are behind it
    weight.data[0] = float("nan")
    try:
        with pytest.raises(ModelError, match="logits are not finite on these prompts; in half precision, try float32"):
            evaluate(gpt2, whole(gpt2))
    finally:
        weight.data.copy_(kept)


def test_one_pair_and_pairs_that_are_the_same_twice_among_others(llama: Case) -> None:
    kept, same = masks(llama), torch.arange(8)[None]
    single = evaluate_circuits(llama.engine, llama.clean[:1], llama.corrupted[:1], kept)
    both = evaluate_circuits(
        llama.engine, torch.cat([llama.clean[:1], same]), torch.cat([llama.corrupted[:1], same]), kept
    )
    assert (single.n_examples, both.n_examples) == (1, 2)
    np.testing.assert_allclose(2 * both.values, single.values, rtol=0, atol=1e-12)  # a KL of 0 for the other
