from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import circuitdb
from circuitdb.tui import likeness
from circuitdb.tui.likeness import How, Linked

# a - b 0.9, c - d 0.8, b - c 0.5, all others lower; e has no similarity at all. The rows are a, c, b, d, e.
VALUES = np.array(
    [
        [1, 0.1, 0.9, 0.0, math.nan],
        [0.1, 1, 0.5, 0.8, math.nan],
        [0.9, 0.5, 1, 0.2, math.nan],
        [0.0, 0.8, 0.2, 1, math.nan],
        [math.nan] * 5,
    ]
)
CHAINS, CLASSES = Linked(VALUES, every_pair=False), Linked(VALUES, every_pair=True)


def test_the_corners_of_the_curve() -> None:
    assert CHAINS.span() == (0.45, 1.0)
    assert CHAINS.curve() == ([0.45, 0.5, 0.5, 0.8, 0.8, 0.9, 0.9, 1.0], [2, 2, 3, 3, 4, 4, 5, 5])
    # a and d are the least alike of all four, at 0.
    assert CLASSES.curve() == ([-0.05, 0.0, 0.0, 0.8, 0.8, 0.9, 0.9, 1.0], [2, 2, 3, 3, 4, 4, 5, 5])


def test_without_similarities_the_curve_is_flat() -> None:
    alone = Linked(np.full((3, 3), math.nan), every_pair=False)
    assert alone.curve() == ([0.0, 1.0], [3, 3])
    assert alone.next_alpha(0.5, 1) == 1.0
    assert alone.next_alpha(0.5, -1) == 0.5


def test_corrected_similarities_over_one_are_in_sight() -> None:
    assert Linked(VALUES * 1.3, every_pair=False).span() == (0.6, 1.2)  # 0.65 to 1.17


@pytest.mark.parametrize(
    ("alpha", "way", "expected"),
    [(0.6, 1, 0.8), (0.8, 1, 0.9), (0.9, 1, 1.0), (1.0, 1, 1.0), (0.6, -1, 0.5), (0.5, -1, 0.5)],
)
def test_the_next_alpha_with_other_families(alpha: float, way: int, expected: float) -> None:
    assert CHAINS.next_alpha(alpha, way) == expected


def test_orders() -> None:
    found = CHAINS.families(0.6)
    assert [(family.name, family.rows) for family in found] == [("A", (0, 2)), ("B", (1, 3)), ("C", (4,))]
    assert CHAINS.order("parameters", found) == [0, 1, 2, 3, 4]
    assert CHAINS.order("families", found) == [0, 2, 1, 3, 4]
    assert CHAINS.order("dendrogram", found) == [0, 2, 1, 3, 4]


def test_families_and_classes() -> None:
    assert CHAINS.useful == pytest.approx(0.65)  # the middle of 0.5 to 0.8
    assert CLASSES.useful == pytest.approx(0.4)  # of 0.0 to 0.8
    assert [family.rows for family in CHAINS.families(0.4)] == [(0, 1, 2, 3), (4,)]
    assert [family.rows for family in CLASSES.families(0.4)] == [(0, 2), (1, 3), (4,)]


def test_the_answer_of_the_database(shared_store: Path) -> None:
    db = circuitdb.open(shared_store)
    found = likeness.ask(db, circuits=(1, 5, 9), how=How("cosine", "magnitude", "node"))
    expected = db.similarity(circuits=(1, 5, 9), kind="cosine", on="magnitude", level="node")
    np.testing.assert_array_equal(found.found.matrix, expected.matrix)
    assert found.linked(corrected=True, every_pair=False) is found.linked(corrected=True, every_pair=False)
    np.testing.assert_array_equal(found.linked(corrected=True, every_pair=False).values, expected.corrected)
