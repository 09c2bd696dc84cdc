"""Which method should one trust, at what cost? Each against exact patching, as a Markdown table.

    python benchmarks/methods.py                    # two-digit sums on SmolLM2-135M, 2,000 edges drawn at random
    python benchmarks/methods.py --tiny             # all edges of the tiny models of the tests, random weights
    python benchmarks/methods.py --metric kl

Spearman's rho over the edges of the scores and of their magnitudes, and the share of the strongest edges by exact score
that are among the strongest by the method's: 200 of the 2,000, or 20 of a tiny model's hundred. Cost is time by that of
one forward and backward pass. Magnitudes stand beside signed scores since a divergence from the clean run only rises
when an edge is really ablated, whatever the sign to first order.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from attribution import Setting
from scipy.stats import spearmanr

from circuitdb.ingest import LoadedModel, load_model, metrics, score_edges
from circuitdb.ingest.passes import run
from circuitdb.ingest.prefix import NO_PREFIX

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
import architectures

N_SAMPLED, TOP, TOP_TINY = 2_000, 200, 20
METHODS: dict[str, dict[str, Any]] = {
    "eap": {"method": "eap"},
    "clean-corrupted": {"method": "clean-corrupted"},
    "eap-ig, 5 left": {"method": "eap-ig", "steps": 5, "grid": "left"},
    "eap-ig, 5 right": {"method": "eap-ig", "steps": 5, "grid": "right"},
    "eap-ig, 5 midpoint": {"method": "eap-ig", "steps": 5, "grid": "midpoint"},
    "eap-ig, 5 gauss-legendre": {"method": "eap-ig", "steps": 5, "grid": "gauss-legendre"},
    "eap-ig, 20 midpoint": {"method": "eap-ig", "steps": 20, "grid": "midpoint"},
    "eap-ig-activations, 5 right": {"method": "eap-ig-activations", "steps": 5, "grid": "right"},
}


@dataclass(frozen=True)
class Case:
    """A model with pairs, the edges to patch, and how many are the strongest."""

    model: LoadedModel
    clean: torch.Tensor
    corrupted: torch.Tensor
    labels: torch.Tensor
    edges: npt.NDArray[np.int64]
    top: int

    def score(self, metric: str, **options: Any) -> npt.NDArray[np.float32]:
        """Scores of the edges that are patched."""
        found = score_edges(self.model, self.clean, self.corrupted, labels=self.labels, metric=metric, **options)
        return found.scores[self.edges]

    def pass_time(self) -> float:
        """Seconds of one plain forward and backward pass."""

        def once() -> None:
            handle = self.model.bridge.embed.hook_out.register_forward_hook(
                lambda _m, _a, out: out.detach().requires_grad_(True)
            )
            logits = run(self.model, self.clean, NO_PREFIX)
            handle.remove()
            metrics.kl(logits, torch.zeros_like(logits)).sum().backward()

        return min(timed(once)[1] for _ in range(2))


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """A result and the seconds it took."""
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def smollm2() -> Case:
    """16 pairs of two-digit sums after three shots."""
    setting = Setting("cpu", "float32", 16)
    model = setting.model()
    clean, corrupted = setting.prompts(model)
    with torch.no_grad():
        answers = run(model, clean, NO_PREFIX)[:, -1].topk(2).indices
    draws = np.random.default_rng(0)
    edges = np.sort(draws.choice(123_211, N_SAMPLED, replace=False))
    return Case(model, clean, corrupted, answers, edges, TOP)


def tiny(name: str, folder: Path) -> Case:
    """16 pairs of nine random tokens, of which about half are corrupted."""
    torch.set_num_threads(1)
    model = load_model(architectures.build(name, folder / name), dtype="float64")
    draws = torch.Generator().manual_seed(0)
    clean = torch.randint(1, 64, (16, 9), generator=draws)
    other = torch.randint(1, 64, (16, 9), generator=draws)
    corrupted = torch.where(torch.rand(16, 9, generator=draws) < 0.5, clean, other)
    labels = torch.stack([clean[:, 0], (clean[:, 0] + 1) % 64], dim=1)
    edges = np.arange(model.record.shape.n_edges)
    return Case(model, clean, corrupted, labels, edges, TOP_TINY)


def agreement(case: Case, exact: npt.NDArray[np.float32], found: npt.NDArray[np.float32]) -> tuple[float, ...]:
    """Spearman's rho of scores and of magnitudes, and the share of the strongest edges in common."""
    sizes = [np.abs(scores) for scores in (exact, found)]
    strongest = [set(np.argsort(-size, kind="stable")[: case.top].tolist()) for size in sizes]
    rhos = (float(spearmanr(exact, found).statistic), float(spearmanr(*sizes).statistic))
    return *rhos, len(strongest[0] & strongest[1]) / case.top


def main() -> None:
    """Print the table of one case, or the mean over the tiny models."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--metric", default="logit-difference")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cases = [tiny(name, Path(folder)) for name in architectures.CONFIGS] if given.tiny else [smollm2()]
        methods = {n: o for n, o in METHODS.items() if n != "eap" or not metrics.find(given.metric).flat_at_clean}
        rows = dict.fromkeys(methods, np.zeros(4))
        exact_cost = 0.0
        for case in cases:
            unit = case.pass_time()
            exact, took = timed(lambda: case.score(given.metric, method="exact", edges=case.edges))  # noqa: B023
            exact_cost += took / unit * case.model.record.shape.n_edges / len(case.edges) / len(cases)
            for name, options in methods.items():
                found, took = timed(lambda: case.score(given.metric, **options))  # noqa: B023
                rows[name] = rows[name] + np.array([*agreement(case, exact, found), took / unit]) / len(cases)
    what = f"{len(cases)} tiny models" if given.tiny else "SmolLM2-135M, addition"
    sys.stdout.write(
        f"| {what}, {given.metric} | rho | rho of magnitudes | top {cases[0].top} | cost |\n|---|---|---|---|---|\n"
    )
    for name, (rho, of_sizes, shared, cost) in rows.items():
        sys.stdout.write(f"| {name} | {rho:.3f} | {of_sizes:.3f} | {shared:.0%} | {cost:.1f} |\n")
    sys.stdout.write(f"| exact, all edges | 1.000 | 1.000 | 100% | {exact_cost:,.0f} |\n")


if __name__ == "__main__":
    main()
