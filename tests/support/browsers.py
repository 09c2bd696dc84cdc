"""Opens the terminal browser on a real database, without a terminal, and reads what is on its screen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from textual.app import App
from textual.pilot import Pilot

from circuitdb.tui.app import Browser

SMALL, LARGE = (80, 24), (200, 60)
_PATIENCE_S = 20.0


@asynccontextmanager
async def opened(
    path: Path, *keys: str, size: tuple[int, int] = SMALL, timeout: float = 10.0
) -> AsyncIterator[tuple[Browser, Pilot[None]]]:
    """The browser, all its questions answered, after these keys."""
    browser = Browser(path, timeout=timeout)
    async with browser.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: browser.problem != ("Reading ...", ""))
        await settled(browser, pilot)
        for key in keys:
            await press(browser, pilot, key)
        yield browser, pilot


async def press(browser: Browser, pilot: Pilot[None], *keys: str) -> None:
    """Press keys, and wait for what they asked for."""
    await pilot.press(*keys)
    await settled(browser, pilot)


async def settled(browser: Browser, pilot: Pilot[None]) -> None:
    """Wait until no question is open: none waits for its turn, and none is put off."""
    calm = 0
    while calm < 3:
        await pilot.pause(0.02)
        open_ones = [worker for worker in browser.workers if worker.group != "watch" and not worker.is_finished]
        calm = 0 if open_ones or browser.busy else calm + 1


async def until(pilot: Pilot[None], happened: Callable[[], bool]) -> None:
    """Wait until something has happened. Raises TimeoutError."""
    async with asyncio.timeout(_PATIENCE_S):
        while not happened():
            await pilot.pause(0.02)


def lines(app: App[None]) -> list[str]:
    """The lines on the screen, every space a plain one, without what is behind their last character."""
    strips = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip).replace("\N{NO-BREAK SPACE}", " ").rstrip() for strip in strips]


def shown(app: App[None]) -> str:
    """All that is on the screen."""
    return "\n".join(lines(app))
