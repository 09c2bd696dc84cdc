"""How quickly the screens Circuit and Compare answer keys: 64 circuits of 123,211 edges, and one pair of 1,592,881.

Each key is timed from its press until the screen is drawn anew and no question is open; what is bound by a pause that
waits for further keys (filters, the size of the hard circuit) has that pause in it. First paint: from the answer of the
database to the drawn screen.

    python benchmarks/tui_circuit.py [folder for the databases, kept between runs]
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from textual.pilot import Pilot

from circuitdb.graph import GraphShape
from circuitdb.records import Circuit, Model, Subtask
from circuitdb.store import Store
from circuitdb.tui.app import Browser
from circuitdb.tui.screen import View

SHAPES = {"123k": (GraphShape(30, 9), 64), "1.6M": (GraphShape(32, 32), 2)}
REPEATS, KEY_MS, PAINT_MS, MEMORY_MB = 9, 100, 300, 500  # the last three are targets
KEYS = {
    "a key that does nothing": ("3", "n", ["f12"]),  # what the measuring takes, taken off the others
    "Circuit, cursor in the map": ("3", "n", ["right", "down"]),
    "Circuit, cursor in the table": ("3", "d", ["down", "pagedown"]),
    "Circuit, last and first row": ("3", "d", ["end", "home"]),
    "Circuit, filter": ("3", "d", ["s", "x"]),
    "Circuit, order": ("3", "d", ["o"]),
    "Circuit, cursor in the graph": ("3", "hr", ["down", "right"]),  # unpruned: no path is left of random scores
    "Circuit, size of the graph": ("3", "h", ["minus", "plus"]),
    "Compare, size": ("4", "o", ["minus", "plus"]),
    "Compare, cursor in the edges": ("4", "d", ["down", "pagedown"]),
}


def build(path: Path, shape: GraphShape, n: int) -> None:
    """`n` circuits that share a heavy-tailed signal."""
    rng, store = np.random.default_rng(0), Store(path)
    model = Model("random", "LlamaForCausalLM", shape, n_kv_heads=shape.n_heads, d_model=576)
    signal = rng.standard_normal(shape.n_edges)
    for i in range(n):
        circuit = Circuit(model, Subtask("addition", f"part {i + 1}", {"part": i + 1}), method="eap-ig", metric="kl",
                          spec={"seed": i}, n_examples=16)  # fmt: skip
        folds = ((signal + rng.standard_normal((2, shape.n_edges))) ** 3 * 1e-3).astype(np.float32)
        store.write(circuit, folds.mean(axis=0), folds)


async def calm(browser: Browser, pilot: Pilot[None]) -> None:
    """Wait until nothing is asked and all is drawn."""
    while browser.busy or any(w.group != "watch" and not w.is_finished for w in browser.workers):
        await asyncio.sleep(0.001)
    await pilot.pause()


async def median_ms(browser: Browser, pilot: Pilot[None], keys: list[str]) -> tuple[float, float]:
    """Medians over repeats of all the keys: by the clock, and of the processor's time alone."""
    clock, processor = [], []
    for _ in range(REPEATS):
        for key in keys:
            start, used = time.perf_counter(), time.process_time()
            await pilot.press(key)
            await calm(browser, pilot)
            clock.append(1000 * (time.perf_counter() - start))
            processor.append(1000 * (time.process_time() - used))
    return statistics.median(clock), statistics.median(processor)


def painting(screen: View[object], told: list[float]) -> None:
    """Note when the screen takes an answer."""
    answered: Callable[[object], None] = screen._answered

    def noted(answer: object) -> None:
        told.append(time.perf_counter())
        answered(answer)

    screen._answered = noted  # type: ignore[method-assign]


async def measure(path: Path) -> None:
    """Print the times of one database."""
    browser = Browser(path)
    async with browser.run_test(size=(120, 40)) as pilot:
        while browser.problem is not None:
            await asyncio.sleep(0.01)
        await pilot.press("n")
        browser.selection = browser.selection.only(browser.catalogue.ids[:2])
        await calm(browser, pilot)
        floor = 0.0
        for title, (screen, part, keys) in KEYS.items():
            await pilot.press(screen)
            await calm(browser, pilot)
            await pilot.press(*part)
            await calm(browser, pilot)
            clock, processor = await median_ms(browser, pilot, keys)
            taken = f"{clock - floor:6.0f} ms, {processor:6.0f} ms of the processor"
            print(f"  {title:<30} {taken}   (target {KEY_MS})", flush=True)
            floor = floor or clock
        for screen, other in (("3", "full_stop"), ("4", "w")):
            await pilot.press(screen)
            await calm(browser, pilot)
            told: list[float] = []
            painting(browser.screen, told)  # type: ignore[arg-type]
            await pilot.press(other)
            await calm(browser, pilot)
            name = browser.screen.MODE.capitalize()  # type: ignore[attr-defined]
            print(
                f"  {name + ', first paint':<30} {1000 * (time.perf_counter() - told[0]):6.0f} ms   (target {PAINT_MS})"
            )


def main() -> None:
    """Build what is missing, and measure."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        folder.mkdir(exist_ok=True)
        for name, (shape, n) in SHAPES.items():
            path = folder / f"{name}.duckdb"
            if not path.exists():
                build(path, shape, n)
            print(f"{n} circuits of {shape.n_edges:,} edges")
            asyncio.run(measure(path))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"  {'peak memory so far':<30} {peak:6.0f} MB   (target {MEMORY_MB} for 64 circuits of 123k)")


if __name__ == "__main__":
    main()
