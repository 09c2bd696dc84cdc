from __future__ import annotations

from pathlib import Path

import numpy as np

import circuitdb
from circuitdb.graph import GraphShape
from circuitdb.queries.containment import containment
from circuitdb.queries.cuts import Cut
from circuitdb.queries.order import order
from circuitdb.tui import nesting
from circuitdb.tui.nesting import How, Part
from matrices import score_matrix

SHAPE = GraphShape(1, 1)  # 8 edges


def test_sizes_grow_by_factors_up_to_the_whole_graph() -> None:
    how = How()
    assert how.sizes(75) == (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 75)
    assert how.sizes(1) == (1,)
    assert how.sizes(75)[how.usual(75)] == 15
    assert how.sizes(123_211)[how.usual(123_211)] == 200
    assert how.sizes(1)[how.usual(1)] == 1


def test_ways_of_the_cut() -> None:
    how = How(signed=True, prune=True)
    assert how.cut(7.0) == Cut.of(top=7, signed=True, prune=True)
    how = how.following()
    assert how.cut(7.0) == Cut.of(greedy=7, signed=True, prune=True)
    how = how.following()
    assert how.cut(0.5) == Cut.of(threshold=0.5, signed=True, prune=True)
    assert how.sizes(75)[how.usual(75)] == 0.001
    assert how.following() == How(signed=True, prune=True)


def test_what_is_in_several_stands_below_each_and_its_parts_once() -> None:
    # a = {0}, b = {0, 1}, c = {0, 1, 2}, d = {0, 1, 3}; e is b again; f is by itself.
    rows = np.zeros((6, 8))
    for row, edges in enumerate(([0], [0, 1], [0, 1, 2], [0, 1, 3], [0, 1], [7])):
        rows[row, edges] = 1
    found = order(containment(score_matrix(rows, labels="abcdef"), Cut.of(threshold=0.5), SHAPE))
    assert found.classes == ((0,), (1, 4), (2,), (3,), (5,))
    a = Part(0, 1.0, 2 / 8)
    assert nesting.forest(found) == (
        Part(2, None, None, (Part(1, 1.0, 3 / 8, (a,)),)),
        Part(3, None, None, (Part(1, 1.0, 3 / 8, (), again=True),)),
        Part(4, None, None),
    )
    expected = np.zeros((6, 6), bool)
    expected[[0, 0, 0, 0, 1, 1, 1, 4, 4, 4], [1, 2, 3, 4, 2, 3, 4, 1, 2, 3]] = True
    np.testing.assert_array_equal(found.inside, expected | np.eye(6, dtype=bool))


def test_several_sizes_in_one_go(shared_store: Path) -> None:
    db = circuitdb.open(shared_store)
    found = nesting.ask(db, circuits=(1, 5, 9), how=How(prune=True), sizes=(5.0, 30.0))
    assert list(found.found) == [5.0, 30.0]
    for size, one in found.found.items():
        expected = db.containment(circuits=(1, 5, 9), top=int(size), prune=True)
        np.testing.assert_array_equal(one.shared, expected.shared)
        assert one.title == expected.title
