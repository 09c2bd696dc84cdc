from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from circuitdb.errors import MissingDatabase
from circuitdb.queries.extent import Extent, extent
from circuitdb.store import Store
from stores import SHAPE, addition_store, circuit


def test_what_an_addition_database_holds(shared_store: Path) -> None:
    assert extent(shared_store, timeout=5) == Extent(9, 9, 9, 0, 0)  # an accuracy for each circuit


def test_a_replaced_circuit_changes_it(tmp_path: Path) -> None:
    store = Store(addition_store(tmp_path / "c.duckdb", digits=1))
    store.write(circuit("1+1", {"digits_a": 1, "digits_b": 1}), np.ones(SHAPE.n_edges, np.float32), replace=True)
    assert extent(tmp_path / "c.duckdb", timeout=5) == Extent(1, 2, 0, 0, 0)


def test_an_empty_and_a_missing_one(tmp_path: Path) -> None:
    Store(tmp_path / "c.duckdb").create()
    assert extent(tmp_path / "c.duckdb", timeout=5) == Extent(0, 0, 0, 0, 0)
    with pytest.raises(MissingDatabase):
        extent(tmp_path / "none.duckdb", timeout=5)
