"""The order of many numbers, against a sort of pairs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from circuitdb.cuts import by_strength, strongest
from circuitdb.sorting import ascending

FLOATS = st.floats(width=32, allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, -1.0])
GAPS = st.floats(width=32) | st.sampled_from([0.0, -0.0, 1.0, float("nan")])


@given(arrays(np.float32, st.integers(0, 12), elements=FLOATS))
def test_ascending_sorts_by_value_then_place(values: npt.NDArray[np.float32]) -> None:
    order, keys = ascending(values)
    assert order.tolist() == sorted(range(len(values)), key=lambda i: (values[i], i))
    ordered = values[order]
    np.testing.assert_array_equal(keys[1:] == keys[:-1], ordered[1:] == ordered[:-1])


@given(arrays(np.float32, st.integers(0, 12), elements=GAPS), st.data())
def test_by_strength_begins_with_the_strongest_whatever_the_type(
    strength: npt.NDArray[np.float32], data: st.DataObject
) -> None:
    n = data.draw(st.integers(0, len(strength)))
    order = by_strength(strength)
    assert sorted(order.tolist()) == list(range(len(strength)))
    assert sorted(order[:n].tolist()) == np.flatnonzero(strongest(strength, n).kept).tolist()
    np.testing.assert_array_equal(by_strength(strength.astype(np.float64)), order)
