"""One addition database for all tests that only read it."""

from __future__ import annotations

from pathlib import Path

import pytest

from circuitdb.queries import Database
from stores import addition_store


@pytest.fixture(scope="session")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine circuits of two-number addition, ids 1..9 for 1+1, 1+2, ..., 3+3, two folds each."""
    return addition_store(tmp_path_factory.mktemp("addition") / "circuits.duckdb")


@pytest.fixture(scope="session")
def db(path: Path) -> Database:
    return Database(path)
