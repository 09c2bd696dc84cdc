"""Fixtures that tests of several folders share."""

from __future__ import annotations

from pathlib import Path

import pytest

from stores import addition_store

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="session")
def golden() -> Path:
    """Folder of the golden models and scores."""
    return GOLDEN


@pytest.fixture(scope="session")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A 3 x 3 addition database, not to be written to."""
    return addition_store(tmp_path_factory.mktemp("shared") / "circuits.duckdb")
