"""The browser in use: beside a process that writes, and under keys that nobody would press."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from browsers import opened, press, settled, shown, until
from circuitdb.tui.screens import SCREENS, Entry
from stores import addition_store
from terminals import environment

pytestmark = pytest.mark.anyio
_SUPPORT = str(Path(__file__).parents[1] / "support")
_WRITE = """
import sys; sys.path.insert(0, sys.argv[2])
import numpy as np
from circuitdb.store import Store
from stores import SHAPE, circuit
rng = np.random.default_rng(1)
for i in range(int(sys.argv[3])):
    folds = rng.standard_normal((2, SHAPE.n_edges)).astype(np.float32)
    Store(sys.argv[1]).write(circuit(f"new {i}"), folds.mean(0), folds)
"""
_N = 20


async def test_beside_a_process_that_writes(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "c.duckdb", digits=2)
    async with opened(path) as (browser, pilot):
        told: list[object] = []
        browser.watch(browser, "problem", lambda problem: told.append(problem), init=False)
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITE, str(path), _SUPPORT, str(_N)],
            env=environment(), stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        while writer.poll() is None:
            await pilot.press("a", "down", "space", "right_square_bracket")
            await pilot.pause(0.05)
        _, said = writer.communicate(timeout=60)
        assert (writer.returncode, said) == (0, "")
        await until(pilot, lambda: len(browser.catalogue.entries) == 4 + _N)
        await press(browser, pilot, "a")
        assert len(browser.selection.circuits) == 4 + _N
        assert f"{4 + _N} circuits chosen" in shown(browser)
        assert told == []


@pytest.mark.parametrize("entry", SCREENS, ids=lambda entry: entry.mode)
async def test_random_keys_and_sizes(
    shared_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: Entry
) -> None:
    monkeypatch.chdir(tmp_path)  # exports go there
    rng = random.Random(entry.mode)
    path = Path(shutil.copy(shared_store, tmp_path / "c.duckdb"))  # notes are written into it
    async with opened(path, entry.key) as (browser, pilot):
        for step in range(150):
            bound = sorted(browser.screen.active_bindings)
            keys = [
                *(key for key in bound if key not in ("q", "ctrl+q", "ctrl+c", "super+c")),
                "x",
                "1",
                "left",
                "enter",
            ]
            await pilot.press(rng.choice(keys))
            if step % 15 == 0:
                await pilot.resize_terminal(rng.randint(20, 160), rng.randint(5, 60))
            assert browser.is_running
        await pilot.resize_terminal(100, 30)
        await pilot.press("escape", "escape", "escape")
        await settled(browser, pilot)
        assert browser.return_code is None
