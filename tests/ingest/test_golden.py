"""Edge scores against those of another implementation, EAP-IG; see tests/golden/README.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from circuitdb.ingest import load_model, score_edges

# Largest difference allowed, as a share of the largest score. The Llama differs a little more in float64, because
# Hugging Face computes RMS norms in float32 even then.
TOLERANCE = {("B_gpt2", "float64"): 1e-6, ("C_llama_gqa", "float64"): 2e-5, ("D_neox", "float64"): 1e-6}
CASES = [
    ("kl", "eap-ig", "EAP_IG_inputs"),
    ("ld", "eap-ig", "EAP_IG_inputs"),
    ("ld", "eap", "EAP"),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", ["B_gpt2", "C_llama_gqa", "D_neox"])
@pytest.mark.parametrize(("metric", "method", "reference"), CASES, ids=lambda value: str(value))
def test_every_edge_equals_the_reference(
    golden: Path, shape: str, dtype: str, metric: str, method: str, reference: str
) -> None:
    model = load_model(golden / shape, dtype=dtype)
    with np.load(golden / f"{shape}.npz") as file:
        clean, corrupted = torch.tensor(file["clean"]), torch.tensor(file["corrupt"])
        labels = torch.tensor(file["ld_labels"])
        key = f"f{dtype[-2:]}_{metric}_{reference}"
        wanted = dict(zip(file["edges"].tolist(), (file[key] * len(clean)).tolist(), strict=True))
    name = {"kl": "kl", "ld": "logit-difference"}[metric]
    found = score_edges(model, clean, corrupted, method=method, steps=5, grid="left", metric=name, labels=labels)
    assert set(found.names) == set(wanted)
    expected = np.array([wanted[edge] for edge in found.names])
    allowed = TOLERANCE.get((shape, dtype), 1e-4) * np.abs(expected).max()
    np.testing.assert_allclose(found.scores, expected, rtol=0, atol=allowed)


@pytest.mark.parametrize("shape", ["B_gpt2", "C_llama_gqa", "D_neox"])
def test_mean_metrics_equal_the_reference(golden: Path, shape: str) -> None:
    model = load_model(golden / shape)
    with np.load(golden / f"{shape}.npz") as file:
        clean, corrupted = torch.tensor(file["clean"]), torch.tensor(file["corrupt"])
        labels = torch.tensor(file["ld_labels"])
        kl, before, after = (
            float(file[key]) for key in ("f64_kl_metric_corrupted", "f64_ld_baseline_clean", "f64_ld_metric_corrupted")
        )
    found = score_edges(model, clean, corrupted, metric="kl")
    assert found.metric_clean == 0
    assert found.metric_corrupted == pytest.approx(kl, rel=1e-5)
    found = score_edges(model, clean, corrupted, metric="logit-difference", labels=labels)
    assert found.metric_clean == pytest.approx(before, rel=1e-5)
    assert found.metric_corrupted == pytest.approx(after, rel=1e-5)
