"""Tests of the terminal browser are coroutines."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Textual runs on asyncio."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Colour as if nobody had asked for none."""
    monkeypatch.delenv("NO_COLOR", raising=False)
