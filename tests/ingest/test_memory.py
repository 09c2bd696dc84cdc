"""Memory that runs out: batches and chunks shrink, the scores stay, and what can't shrink is said in a sentence.

The passes fail as torch's do, by an error from the forward pass of more rows than a limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor

import oracle
from circuitdb.errors import ModelError
from circuitdb.ingest import EdgeScores, LoadedModel, evaluate_circuits, load_model, prefix, score_edges
from circuitdb.ingest import memory as memory_module
from circuitdb.ingest.ablation import Ablation
from circuitdb.ingest.memory import Length, Memory, free_memory

if TYPE_CHECKING:
    from pathlib import Path

    from cases import Case

ERRORS = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.\nMore lines."),
    RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: 9 bytes"),
    RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes."),
    MemoryError("out"),
]


@pytest.fixture(autouse=True)
def full_precision() -> Iterator[None]:
    with oracle.full_precision():
        yield


@pytest.fixture
def case(case_of: Callable[[str], Case]) -> Case:
    found = case_of("llama-3")
    score_edges(found.engine, found.clean, found.corrupted)  # its trial passes are behind it
    return found


def pairs(n: int = 8) -> tuple[Tensor, Tensor]:
    draws = torch.Generator().manual_seed(5)
    clean, corrupted = torch.randint(1, 64, (2, n, 6), generator=draws)
    return clean, corrupted


@contextmanager
def at_most(model: LoadedModel, n_rows: int, error: Exception) -> Iterator[list[int]]:
    """Passes of more than so many prompts fail in the last layer; gives the sizes of all passes, failed ones too."""
    sizes: list[int] = []

    def hook(_module: Any, args: Any, output: Any) -> None:
        stream = output[0] if isinstance(output, tuple) else output
        sizes.append(len(stream))
        if len(stream) > n_rows:
            raise error

    handle = model.bridge.blocks[-1].register_forward_hook(hook)
    try:
        yield sizes
    finally:
        handle.remove()


def score(model: LoadedModel, **options: Any) -> EdgeScores:
    return score_edges(model, *pairs(), **options)


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize(
    "options",
    [{"folds": 3}, {"by_example": True}, {"method": "eap-ig-activations", "steps": 2}, {"ablation": "mean",
     "method": "eap", "metric": "kl-published"}],
    ids=["folds", "by example", "activations", "mean"],
)  # fmt: skip
def test_batches_are_halved_and_the_scores_are_the_same(
    case: Case, error: Exception, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = score(case.engine, **options)
    assert plain.batch_size == 8
    # The mean's own passes are of a few prompts, as large as the first batch: they are not what is tested here.
    reference = {"reference": pairs()[1][:3]} if "ablation" in options else {}
    if reference:
        plain = score(case.engine, **options, **reference)
    with at_most(case.engine, 3, error) as sizes:
        found = score(case.engine, **options, **reference)
    assert found.batch_size == 2  # 8, then 4, then 2
    # Where a pass may take several points of the path, it takes fewer first.
    fewer_points = [] if "method" in options else [8, 8]
    assert [size for size in sizes if size > 3] == [*fewer_points, 8, 4]
    scale = np.abs(plain.scores).max()
    np.testing.assert_allclose(found.scores, plain.scores, rtol=0, atol=1e-12 * scale)
    np.testing.assert_allclose(found.folds, plain.folds, rtol=0, atol=1e-12 * scale)
    if plain.by_example is not None and found.by_example is not None:
        np.testing.assert_allclose(found.by_example, plain.by_example, rtol=0, atol=1e-12 * scale)
    assert found.metric_corrupted == pytest.approx(plain.metric_corrupted, rel=1e-12)


def test_a_batch_that_fails_half_way_is_not_counted_twice(case: Case) -> None:
    """The clean pass goes through, the corrupted one doesn't: nothing of the batch is in the sums yet."""
    eap = {"method": "eap", "metric": "kl-published"}
    plain, calls = score(case.engine, **eap), iter(range(99))
    handle = case.engine.bridge.blocks[-1].register_forward_hook(
        lambda *_: (_ for _ in ()).throw(ERRORS[0]) if next(calls) == 1 else None
    )
    seen: list[float] = []
    try:
        found = score(case.engine, progress=seen.append, **eap)
    finally:
        handle.remove()
    assert (found.batch_size, found.n_examples) == (4, 8)
    np.testing.assert_allclose(found.scores, plain.scores, rtol=0, atol=1e-12 * np.abs(plain.scores).max())
    assert seen == [0.5, 1]


@pytest.mark.parametrize("error", ERRORS[:2], ids=["CUDA", "CPU"])
def test_a_single_pair_that_does_not_fit_is_one_sentence(case: Case, error: Exception) -> None:
    with at_most(case.engine, 0, error), pytest.raises(ModelError) as caught:
        score(case.engine)
    assert str(caught.value) == (
        f"Memory ran out with a single pair on cpu ({str(error).splitlines()[0]}); "
        "use shorter prompts, fewer steps, --dtype bfloat16 or a larger device."
    )


@pytest.mark.parametrize("error", [RuntimeError("shape mismatch"), ValueError("out of range"), KeyboardInterrupt()])
def test_other_errors_pass_through(case: Case, error: Exception) -> None:
    with at_most(case.engine, 3, error), pytest.raises(type(error)) as caught:
        score(case.engine)
    assert caught.value is error


def test_copies_of_exact_shrink(case: Case) -> None:
    """Eight pairs; 226 / 82 edges a layer would be patched at once, but no more than 20 rows fit."""
    clean, corrupted = pairs(2)
    plain = score_edges(case.engine, clean, corrupted, method="exact")
    with at_most(case.engine, 20, ERRORS[0]) as sizes:
        found = score_edges(case.engine, clean, corrupted, method="exact")
    assert max(sizes) > 20  # it was tried
    np.testing.assert_allclose(found.scores, plain.scores, rtol=0, atol=1e-12 * np.abs(plain.scores).max())


def test_exact_with_a_pair_that_does_not_fit(case: Case) -> None:
    with at_most(case.engine, 0, ERRORS[0]), pytest.raises(ModelError, match="Memory ran out with a single pair"):
        score(case.engine, method="exact")


def circuits(case: Case, n: int = 9) -> Any:
    return np.random.default_rng(1).random((n, case.shape.n_edges)) < 0.7


@pytest.mark.parametrize("ablation", ["patching", "zero"])
@pytest.mark.parametrize("n_rows", [1, 3, 20])
def test_circuits_take_as_many_copies_as_fit(case: Case, n_rows: int, ablation: str) -> None:
    """Of 8 pairs and 9 circuits: with 20 rows two circuits at a time, with fewer than 8 the pairs are halved too."""
    clean, corrupted = pairs()
    plain = evaluate_circuits(case.engine, clean, corrupted, circuits(case), ablation=ablation)
    with at_most(case.engine, n_rows, ERRORS[0]) as sizes:
        found = evaluate_circuits(case.engine, clean, corrupted, circuits(case), ablation=ablation)
    assert max(sizes) > n_rows
    np.testing.assert_allclose(found.values, plain.values, rtol=0, atol=1e-12)
    assert (found.clean, found.ablated) == pytest.approx((plain.clean, plain.ablated), rel=0, abs=1e-12)


def test_circuits_are_halved_before_pairs_are(case: Case) -> None:
    """Nine circuits of 8 pairs are 72 rows, then 36 are tried, of which 32 are whole circuits, then 18, which are 16.

    Before come the clean and the corrupted run; passes of one pair are the trial on the prompts.
    """
    with at_most(case.engine, 20, ERRORS[0]) as sizes:
        evaluate_circuits(case.engine, *pairs(), circuits(case))
    assert [size for size in sizes if size > 1] == [8, 8, 72, 32, 16, 16, 16, 16, 8]


def test_circuits_of_a_pair_that_does_not_fit(case: Case) -> None:
    with at_most(case.engine, 0, ERRORS[0]), pytest.raises(ModelError, match="Memory ran out with a single pair"):
        evaluate_circuits(case.engine, *pairs(), circuits(case))


def test_circuits_let_other_errors_through(case: Case) -> None:
    with at_most(case.engine, 30, RuntimeError("shape mismatch")), pytest.raises(RuntimeError, match="shape mismatch"):
        evaluate_circuits(case.engine, *pairs(), circuits(case))


# --- the plan --------------------------------------------------------------------------------------------------------


def test_the_plan_by_hand(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B_gpt2: 2 layers of 4 heads, 32 wide, 64 tokens; prompts of 10 positions, one gradient pass."""
    model = load_model(golden / "B_gpt2")
    monkeypatch.setattr(memory_module, "free_memory", lambda _device: 4_000_000)
    plan = Memory(model, 1).plan(Length(10, 0, 2), 100, 3, by_example=True)
    # vectors a position that are kept: 11 sources, 128 targets, 2 layers of 8 + 2
    kept = 10 * 32 * 4 * (11 + 128 + 2 * 10)
    # a pass: 40 vectors in 2 layers; attention: 4 tensors, 2 layers, 4 heads, 10 x 10; 8 tensors of 64 logits at 2
    passing = 10 * 32 * 4 * 2 * 40 + 4 * 2 * 4 * 100 * 4 + 8 * 2 * 64 * 4
    per_pair = kept + passing
    # three folds of 11 sources x 27 targets in float64, a hundred examples of 110 edges in float32
    sums = 3 * 11 * 27 * 8 + 100 * 110 * 4
    # two embeddings; a layer's norms, fused and output projection, MLP of 64; the last norm
    layer = 2 * 64 + (32 * 96 + 96) + (32 * 32 + 32) + (32 * 64 + 64) + (64 * 32 + 32)
    n_parameters = 2 * 64 * 32 + 2 * layer + 64
    assert (plan.kept, plan.passing, plan.points, plan.sums) == (kept, passing, 1, sums)
    assert plan.weights == 4 * n_parameters
    assert plan.batch_size == 2_000_000 // per_pair == 6
    assert plan.peak == plan.weights + sums + 6 * per_pair
    # After 20 cached positions keys and values of 30 are put together in each layer, and attention is 10 x 30.
    cached = Memory(model, 4).plan(Length(10, 20, 2), 1, 3, by_example=True)
    assert cached.passing == passing + 2 * 2 * 30 * 32 * 4 + 4 * 2 * 4 * 200 * 4
    assert (cached.points, cached.kept) == (4, kept + 10 * 32 * 4 * 2 * 2 * 3)
    assert cached.peak == cached.weights + cached.sums + cached.kept + 4 * cached.passing


def test_the_batch_is_what_was_asked_for_at_most_all_and_at_least_one(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_module, "free_memory", lambda _device: 1)
    assert Memory(case.engine, 5).batch_size(Length(100), 16) == 1
    assert Memory(case.engine, 5, 4).batch_size(Length(100), 16) == 4
    assert Memory(case.engine, 5, 4).batch_size(Length(100), 3) == 3


def test_halving(case: Case) -> None:
    memory = Memory(case.engine, 5, 9)
    assert memory.batch_size(Length(8), 16) == 9
    memory.shrink(9, "full")
    assert memory.batch_size(Length(8), 16) == 4
    memory.shrink(4, "full")
    memory.shrink(2, "full")
    assert memory.batch_size(Length(8), 16) == 1
    with pytest.raises(ModelError, match=re.escape("with a single pair on cpu (full); use shorter prompts")):
        memory.shrink(1, "full")


def test_a_pass_takes_more_points_of_a_path_where_the_batch_is_small(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a CPU up to 512 positions: 8 positions of 16 pairs four times, of 64 pairs once; halved before the batch."""
    monkeypatch.setattr(memory_module, "free_memory", lambda _device: 10**15)
    memory = Memory(case.engine, 5)
    assert memory.points_at_once(Length(8), 64) == 1
    assert memory.points_at_once(Length(8), 10) == 5
    assert memory.points_at_once(Length(8), 16) == 4
    memory.shrink(16, "full")
    assert (memory.points_at_once(Length(8), 16), memory.batch_size(Length(8), 16)) == (2, 16)
    memory.shrink(16, "full")
    memory.shrink(16, "full")
    assert (memory.points_at_once(Length(8), 16), memory.batch_size(Length(8), 16)) == (1, 8)


def test_points_that_do_not_fit_in_memory_are_run_one_after_the_other(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, length = Memory(case.engine, 5), Length(8, 30)
    needed = 2 * memory.kept(length) + 6 * memory.passing(length)  # of two pairs, at three points
    monkeypatch.setattr(memory_module, "free_memory", lambda _device: 2 * needed)
    assert memory.points_at_once(length, 2) == 3
    monkeypatch.setattr(memory_module, "free_memory", lambda _device: 2 * needed - 2)
    assert memory.points_at_once(length, 2) == 2
    monkeypatch.setattr(memory_module, "free_memory", lambda _device: 0)
    assert memory.points_at_once(length, 2) == 1
    # The user's own limit is to the prompts in a pass.
    assert [Memory(case.engine, 5, wanted).points_at_once(length, 2) for wanted in (1, 4, 7, 16)] == [1, 2, 3, 5]


@pytest.mark.parametrize("method", ["eap-ig", "eap-ig-activations"])
@pytest.mark.parametrize(
    "ablated", [{}, {"metric": "logit-difference", "labels": torch.tensor([[i, 2 * i + 9] for i in range(1, 9)])}]
)
def test_scores_are_the_same_however_many_points_a_pass_takes(
    case: Case, method: str, ablated: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With labels and Gauss-Legendre weights, so that neither may be taken for another point's."""
    options: dict[str, Any] = {"method": method, "steps": 5, "grid": "gauss-legendre", **ablated}
    found = {}
    for most in (0, 2 * 48, 3 * 48, 512):
        monkeypatch.setattr(memory_module, "_GAINING_POSITIONS", {"cpu": most})
        with at_most(case.engine, 99, ERRORS[0]) as sizes:
            found[most] = score(case.engine, share_prefix=False, **options).scores
        assert max(sizes) == 8 * max(1, min(5, most // 48))
    for most in (2 * 48, 3 * 48, 512):
        np.testing.assert_allclose(found[most], found[0], rtol=0, atol=1e-12 * np.abs(found[0]).max())


@pytest.mark.parametrize("n_failing", [1, 2])
@pytest.mark.parametrize("where", ["mean", "prefix"])
def test_what_comes_before_a_batch_may_run_out_of_memory_too(
    case: Case, where: str, n_failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mean's own passes, or the shared beginning: tried again with a smaller batch."""
    options: dict[str, Any] = {"method": "eap", "metric": "kl-published"}
    clean, corrupted = pairs()
    clean[:, :3] = corrupted[:, :3] = 7
    if where == "mean":
        options["ablation"] = "mean"
    owner, name = (Ablation, "_sum") if where == "mean" else (prefix, "compute")
    plain, calls = getattr(owner, name), iter(range(99))
    expected = score_edges(case.engine, clean, corrupted, **options)

    def failing(*args: Any) -> Any:
        if next(calls) < n_failing:
            raise ERRORS[0]
        return plain(*args)

    monkeypatch.setattr(owner, name, failing)
    found = score_edges(case.engine, clean, corrupted, **options)
    assert next(calls) == n_failing + 1
    assert found.batch_size == 8 >> n_failing
    np.testing.assert_allclose(found.scores, expected.scores, rtol=0, atol=1e-12 * np.abs(expected.scores).max())


@pytest.mark.parametrize("shared", [True, False])
def test_the_plan_covers_what_a_pass_keeps_for_its_way_back(case: Case, shared: bool) -> None:
    """40 positions that are cached (or not) and 4 more: what autograd saves is at most what is planned."""
    clean, corrupted = torch.randint(1, 64, (2, 3, 44), generator=torch.Generator().manual_seed(0))
    clean[:, :40] = corrupted[:, :40] = 7
    passes: list[dict[int, int]] = [{}]

    def kept(tensor: Tensor) -> Tensor:
        passes[-1][tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    def given(tensor: Tensor) -> Tensor:
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(kept, given):
        score_edges(case.engine, clean, corrupted, method="eap", metric="kl-published", share_prefix=shared)
    weights = {p.untyped_storage().data_ptr() for p in case.engine.bridge.parameters()}
    saved = sum(n for pointer, n in passes[0].items() if pointer not in weights)
    length = Length(4, 40) if shared else Length(44)
    assert 0.1 * 3 * Memory(case.engine, 1).passing(length) < saved < 3 * Memory(case.engine, 1).passing(length)


def test_rows_are_halved_until_one_is_left(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """At eight positions a pass takes 16,384 / 8 rows, however much memory there is; what failed is halved."""
    monkeypatch.setattr(memory_module, "free_memory", lambda _device: 10**15)
    memory = Memory(case.engine, 0)
    assert memory.circuit_rows(8, 1) == 2048
    for i in range(11):
        assert memory.exact_rows(8, 1) == 2048 >> i
        memory.shrink(1, "full")
    assert memory.exact_rows(8, 1) == 1
    with pytest.raises(ModelError, match="Memory ran out with a single pair"):
        memory.shrink(1, "full")


def test_free_memory_is_what_the_container_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo, group = tmp_path / "meminfo", tmp_path / "cgroup"
    meminfo.write_text("MemTotal: 9000 kB\nMemAvailable:    5000 kB\n")
    group.mkdir()
    monkeypatch.setattr(memory_module, "_MEMINFO", meminfo)
    monkeypatch.setattr(memory_module, "_CGROUP", group)
    cpu = torch.device("cpu")
    assert free_memory(cpu) == 5000 * 1024
    (group / "memory.current").write_text("1000\n")
    (group / "memory.max").write_text("max\n")
    assert free_memory(cpu) == 5000 * 1024
    (group / "memory.max").write_text("31000\n")
    assert free_memory(cpu) == 30_000
    (group / "memory.max").write_text("900\n")
    assert free_memory(cpu) == 0
