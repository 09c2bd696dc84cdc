from __future__ import annotations

import pytest

from circuitdb.tui.selection import Selection

CHOSEN = Selection((1, 2), circuit=2, pair=(1, 2), alpha=0.5)


@pytest.mark.parametrize(
    ("changed", "circuits"),
    [
        pytest.param(CHOSEN.adding([2, 3]), (1, 2, 3), id="adding"),
        pytest.param(CHOSEN.dropping([2, 7]), (1,), id="dropping"),
        pytest.param(CHOSEN.toggling([2, 3]), (1, 2, 3), id="toggling some adds the rest"),
        pytest.param(CHOSEN.toggling([1, 2]), (), id="toggling all drops them"),
        pytest.param(CHOSEN.only([3, 3, 1]), (3, 1), id="only"),
        pytest.param(CHOSEN.among([2, 1, 3]), (2, 1), id="among, in their order"),
    ],
)
def test_circuits(changed: Selection, circuits: tuple[int, ...]) -> None:
    assert changed.circuits == circuits
    assert (changed.circuit, changed.pair, changed.alpha) == (2, (1, 2), 0.5)


def test_what_is_gone_is_dropped() -> None:
    assert CHOSEN.among([1, 3]) == Selection((1,), circuit=None, pair=None, alpha=0.5)
    assert CHOSEN.among([2]) == Selection((2,), circuit=2, pair=None, alpha=0.5)


def test_the_rest_stays_as_it_is() -> None:
    assert CHOSEN.looking_at(9) == Selection((1, 2), 9, (1, 2), 0.5)
    assert CHOSEN.comparing(3, 4) == Selection((1, 2), 2, (3, 4), 0.5)
    assert CHOSEN.at(None) == Selection((1, 2), 2, (1, 2), None)
