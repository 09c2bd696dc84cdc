"""Grouped-query attention is copied for each head only while something is scored or run; then all is as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from circuitdb.errors import UsageError
from circuitdb.ingest import CircuitRunner, LoadedModel, metrics, register_metric, score_edges
from circuitdb.ingest.anatomy import read_anatomy
from circuitdb.ingest.batch import Group
from circuitdb.ingest.grouped import ungrouped

if TYPE_CHECKING:
    from cases import Case

ARCHITECTURES = ["olmo-2", "stablelm-parallel", "phi-3", "qwen-3"]


@pytest.fixture(params=ARCHITECTURES)
def case(request: pytest.FixtureRequest, case_of: Callable[[str], Case]) -> Case:
    return case_of(request.param)


def state(model: LoadedModel) -> dict[str, Any]:
    """Everything that `ungrouped` touches, and how many hooks each module has."""
    bridge: Any = model.bridge
    found: dict[str, Any] = {
        f"{kind} {name}": (id(tensor), tuple(tensor.shape))
        for kind, tensors in (("parameter", bridge.named_parameters()), ("buffer", bridge.named_buffers()))
        for name, tensor in tensors
    }
    for name, module in bridge.named_modules():
        found[f"hooks {name}"] = (len(module._forward_hooks), len(module._forward_pre_hooks))
        found[f"forward {name}"] = "forward" in vars(module)
        for key in ("num_key_value_groups", "num_key_value_heads"):
            if hasattr(module, key):
                found[f"{key} {name}"] = getattr(module, key)
        norms = getattr(module, "norms", None)
        if norms is not None:
            found[f"norms {name}"] = [id(norm) for norm in norms]
    found["config"] = bridge.original_model.config.to_dict()
    found["heads"] = [block.attn.config.n_key_value_heads for block in bridge.blocks]
    return found


def groups(case: Case) -> list[Group]:
    return [Group(case.clean, case.corrupted, None, torch.zeros(3, dtype=torch.int64))]


def whole(case: Case) -> npt.NDArray[np.bool_]:
    return np.ones((1, case.shape.n_edges), dtype=bool)


def logits(case: Case) -> Tensor:
    with torch.no_grad():
        found: Tensor = case.engine.bridge(case.clean)
    return found


def test_while_it_lasts_each_head_has_a_key_of_its_own(case: Case) -> None:
    anatomy, plain, before = read_anatomy(case.engine), logits(case), state(case.engine)
    seen: list[int] = []
    handle = anatomy.layers[0].projections[1].register_forward_hook(lambda _m, _a, out: seen.append(out.shape[-1]))
    with ungrouped(anatomy):
        assert state(case.engine) != before
        inside = anatomy.layers[0].projections[1].register_forward_hook(lambda _m, _a, out: seen.append(out.shape[-1]))
        torch.testing.assert_close(logits(case), plain, rtol=0, atol=1e-5)
        inside.remove()
    handle.remove()
    assert seen == [16, 32]  # two heads of eight, then four
    assert state(case.engine) == before
    assert torch.equal(logits(case), plain)


def test_scoring_leaves_the_model_as_it_was(case: Case) -> None:
    plain, before = logits(case), state(case.engine)
    for method in ("eap-ig", "exact"):
        score_edges(case.engine, case.clean, case.corrupted, method=method)
    assert state(case.engine) == before
    assert torch.equal(logits(case), plain)


def test_so_does_scoring_that_breaks_off(case: Case) -> None:
    plain, before = logits(case), state(case.engine)

    def broken(logits: Tensor, clean_logits: Tensor, labels: Tensor | None) -> Tensor:
        raise ValueError("broken")

    register_metric("broken", broken)
    try:
        for method in ("eap-ig", "exact"):
            with pytest.raises(ValueError, match="broken"):
                score_edges(case.engine, case.clean, case.corrupted, method=method, metric="broken")
    finally:
        del metrics.METRICS["broken"]
    assert state(case.engine) == before
    assert torch.equal(logits(case), plain)


def test_so_does_a_pass_of_exact_that_breaks_off_in_the_middle(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers that are left out have a forward of their own for the time."""
    plain, before = logits(case), state(case.engine)

    def stop(share: float) -> None:
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_edges(case.engine, case.clean, case.corrupted, method="exact", progress=stop)
    assert state(case.engine) == before
    assert torch.equal(logits(case), plain)


def test_so_do_circuits(case: Case) -> None:
    plain, before = logits(case), state(case.engine)
    runner = CircuitRunner(case.engine, ablation="mean-positional")
    with pytest.raises(UsageError, match="has no prompt of 8 tokens"):
        runner.evaluate(groups(case), whole(case), metrics.find("kl"), references=[case.clean[:, 1:]])
    runner.evaluate(groups(case), whole(case), metrics.find("kl"))
    assert state(case.engine) == before
    assert torch.equal(logits(case), plain)
