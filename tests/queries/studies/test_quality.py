"""What a reliability does not see is said beside it, and shares are not rounded to all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from circuitdb.queries import Database
from circuitdb.queries.studies.sentences import percent
from circuitdb.store import Store
from planted import SHAPE, write
from stores import circuit, model


@pytest.mark.parametrize(("drawn", "n"), [("fixed", 1), ("per-example", 0)])
def test_fixed_shots_are_said_to_be_part_of_what_differs(tmp_path: Path, drawn: str, n: int) -> None:
    store, rng = Store(tmp_path / "c.duckdb"), np.random.default_rng(0)
    for a in (1, 2):
        record = circuit(f"{a}+1", {"digits_a": a, "digits_b": 1}, of=model(shape=SHAPE))
        write(store, replace(record, shots_drawn=drawn), rng.standard_normal(SHAPE.n_edges), rng)
    one = Database(store.path).study("arithmetic").findings[1]
    assert one.question == "Are the circuits measured well enough to be compared?"
    assert sum("stand behind the same shots" in said for said in one.caveats) == n


@pytest.mark.parametrize(
    ("share", "said"), [(0.9997, "more than 99.9%"), (0.9994, "99.9%"), (1.0, "100%"), (0.0004, "less than 0.1%")]
)
def test_a_share_is_not_rounded_to_all_or_none(share: float, said: str) -> None:
    assert percent(share) == said
