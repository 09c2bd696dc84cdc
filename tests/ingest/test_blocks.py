"""Scores do not depend on how many rows and layers are written out together, nor on the memory that is used again.

In float64; scores are stored in float32, so they are compared at its rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import oracle
from circuitdb.ingest import contract as contract_module
from circuitdb.ingest import score_edges
from circuitdb.ingest.gradients import Streams
from circuitdb.ingest.norms import Norm

if TYPE_CHECKING:
    from cases import Case

OPTIONS: dict[str, dict[str, Any]] = {
    "folds": {"steps": 3, "grid": "gauss-legendre", "folds": 2},
    "by example": {"steps": 3, "grid": "left", "by_example": True},
    "mean-positional": {"method": "eap", "metric": "kl-published", "ablation": "mean-positional", "folds": 3},
    "activations": {"method": "eap-ig-activations", "steps": 2, "grid": "left", "folds": 2},
}


@pytest.fixture(autouse=True)
def full_precision() -> Iterator[None]:
    with oracle.full_precision():
        yield


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("name", ["llama-3", "gpt-j", "olmo-2"])
def test_scores_are_the_same_in_whatever_blocks(
    case_of: Callable[[str], Case], name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row, three rows or all at a time; a layer or both: 3 prompts of 8 rows, so that blocks cut through folds."""
    case = case_of(name)

    def scores() -> list[np.ndarray[Any, Any]]:
        found = score_edges(case.engine, case.clean, case.corrupted, share_prefix=False, **options)
        return [found.scores, found.folds, *([] if found.by_example is None else [found.by_example])]

    expected, blocks = scores(), []
    plain = contract_module._write_out

    def write_out(anatomy: Any, index: int, targets: Any, rows: slice, into: Any) -> None:
        blocks.append((index, rows.stop - rows.start))
        plain(anatomy, index, targets, rows, into)

    monkeypatch.setattr(contract_module, "_write_out", write_out)
    monkeypatch.setattr(contract_module, "_WRITTEN_OUT", 1)
    for n_rows, n_targets in ((1, 1), (3, 1), (5, 128), (7, 26)):
        monkeypatch.setattr(contract_module, "_LEAST_ROWS", n_rows)
        monkeypatch.setattr(contract_module, "_TARGETS", n_targets)
        blocks.clear()
        for found, wanted in zip(scores(), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=2e-7, atol=1e-12 * np.abs(wanted).max())
        assert max(n for _, n in blocks) == n_rows
        n_layers = case.shape.n_layers
        by_row = [index for index, _ in blocks[: 2 * n_layers]]
        assert by_row == [*range(n_layers), *range(n_layers)]  # every layer of a block before the next block


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_stream_in_half_precision_is_centred_in_float32(dtype: torch.dtype) -> None:
    """Far from zero, where its own type would round the mean by as much as what is left."""
    stream = (torch.randn(1, 3, 64, generator=torch.Generator().manual_seed(0)) + 100).to(dtype)
    norm = Norm(torch.ones(64), None, 1e-5, centred=True)
    kept = Streams(norm, 1, 3, torch.zeros(0, 64))
    kept.see(stream, slice(0, 1))
    wide = stream[0].double()
    centred = wide - wide.mean(-1, keepdim=True)
    assert kept.centred[0].dtype == torch.float32
    torch.testing.assert_close(kept.centred[0].double(), centred, rtol=0, atol=1e-4)
    scale = 1 / (centred.square().mean(-1) + 1e-5).sqrt()
    torch.testing.assert_close(kept.scales[0].double(), scale, rtol=1e-5, atol=0)
