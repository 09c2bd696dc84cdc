"""The strongest edges of a circuit, by hand and against a sort of pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from circuitdb.cuts import strongest
from circuitdb.errors import UsageError

NAN = float("nan")


@pytest.mark.parametrize(
    ("strength", "n", "kept", "n_tied"),
    [
        pytest.param([1, 5, 3, 4], 2, [1, 3], 0, id="the largest"),
        pytest.param([-1, -5, -3], 2, [0, 2], 0, id="signed: the least negative"),
        pytest.param([2, 3, 2, 2], 2, [0, 1], 2, id="ties go to the lower id"),
        pytest.param([2, 2, 2, 2], 4, [0, 1, 2, 3], 0, id="all"),
        pytest.param([2, 2], 0, [], 0, id="none"),
        pytest.param([NAN, -7, NAN, 0], 2, [1, 3], 0, id="no score comes last"),
        pytest.param([NAN, -7, NAN, NAN], 2, [0, 1], 2, id="and those without one tie"),
        pytest.param([0.0, -0.0], 1, [0], 1, id="zeros of both signs tie"),
        pytest.param([NAN, -np.inf], 1, [0], 1, id="nothing is weaker than minus infinity"),
        pytest.param([], 0, [], 0, id="no edges"),
    ],
)
def test_by_hand(strength: list[float], n: int, kept: list[int], n_tied: int) -> None:
    found = strongest(np.array(strength, np.float32), n)
    assert np.flatnonzero(found.kept).tolist() == kept
    assert found.kept.dtype == np.bool_
    assert found.n_tied == n_tied


@given(st.lists(st.integers(-3, 3), max_size=12), st.data())
def test_as_a_sort_by_score_then_id(values: list[int], data: st.DataObject) -> None:
    n = data.draw(st.integers(0, len(values)))
    found = strongest(np.array(values, np.float32), n)
    order = sorted(range(len(values)), key=lambda i: (-values[i], i))
    assert np.flatnonzero(found.kept).tolist() == sorted(order[:n])
    assert found.n_tied == (sum(values[i] == values[order[n - 1]] for i in order[n:]) if n else 0)


@pytest.mark.parametrize("n", [-1, 4])
def test_more_than_all_or_fewer_than_none(n: int) -> None:
    with pytest.raises(UsageError, match=f"A circuit can keep 0 to 3 edges, not {n}"):
        strongest(np.arange(3.0), n)
