from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from circuitdb.errors import UsageError
from circuitdb.queries import Database
from circuitdb.queries.containment import containment, strongest
from matrices import score_matrix
from stores import addition_scores

# Strongest first: a takes edges 0, 1, 3; b takes 1, 3, 4.
A, B = [5.0, -4, 0, 3, 1, 0], [1.0, 4, 0, 3, -5, 0]
SCORES = arrays(np.float32, st.integers(1, 12), elements=st.sampled_from([np.nan, -2, -1, 0, 1, 2]))


def test_overlap_by_hand() -> None:
    found = containment(score_matrix([A, B], labels=["a", "b"]), top=3)
    expected = {
        "n": 3, "n_tied": 0, "shared": 2, "share_of_a": pytest.approx(2 / 3), "jaccard": 0.5, "expected_share": 0.5,
    }  # fmt: skip
    assert found.rows() == [
        {"a_id": 1, "a": "a", "b_id": 2, "b": "b", **expected},
        {"a_id": 2, "a": "b", "b_id": 1, "b": "a", **expected},
    ]
    assert found.result().title == "Containment of 2 circuits, each cut to its 3 strongest of 6 edges"
    assert found.notes == ()


def test_wide_is_the_share_of_the_row_in_the_column() -> None:
    wide = containment(score_matrix([A, B], labels=["a", "b"]), top=3).wide()
    assert wide.columns == ["label", "a", "b"]
    assert wide.rows()[0] == {"label": "a", "a": 1.0, "b": pytest.approx(2 / 3)}


@pytest.mark.parametrize(
    ("scores", "top", "edges", "tied"),
    [
        pytest.param([1, -3, 2], 2, [1, 2], 0, id="by-magnitude"),
        pytest.param([2, -2, 2, 1], 2, [0, 1], 3, id="ties-by-edge-id"),
        pytest.param([2, -2, 1, 1], 2, [0, 1], 0, id="tie-not-split"),
        pytest.param([np.nan, 1, np.nan, 2], 3, [1, 3], 0, id="null-never-in"),
        pytest.param([np.nan, 1, 5, 1], 2, [1, 2], 2, id="null-and-tie"),
        pytest.param([0, 0, 0], 1, [], 0, id="all-zero"),
        pytest.param([0, 3, -0.0, np.nan, 1], 4, [1, 4], 0, id="zero-never-in"),
        pytest.param([0, 3, 0, 1], 2, [1, 3], 0, id="no-tie-with-zero"),
        pytest.param([0, 2, 2, 0], 1, [1], 2, id="tie-before-zero"),
        pytest.param([np.nan, np.nan], 1, [], 0, id="all-null"),
        pytest.param([3, 1], 9, [0, 1], 0, id="more-than-there-are"),
    ],
)
def test_strongest(scores: npt.ArrayLike, top: int, edges: list[int], tied: int) -> None:
    found, n_tied = strongest(np.asarray(scores, np.float32), top)
    assert found.tolist() == edges
    assert n_tied == tied


@settings(deadline=None)
@given(SCORES, st.integers(1, 14))
def test_strongest_sorts_by_magnitude_then_edge(scores: npt.NDArray[np.float32], top: int) -> None:
    known = [i for i, score in enumerate(scores.tolist()) if score == score and score != 0]
    order = sorted(known, key=lambda i: (-abs(float(scores[i])), i))
    assert strongest(scores, top)[0].tolist() == sorted(order[:top])


def test_circuits_of_unequal_size_have_shares_of_their_own() -> None:
    lone = [np.nan, 9.0, np.nan, np.nan, np.nan, np.nan]
    found = containment(score_matrix(np.array([A, lone]), labels=["a", "b"]), top=3)
    there, back = found.rows()
    assert (there["n"], there["share_of_a"], there["expected_share"]) == (3, pytest.approx(1 / 3), pytest.approx(1 / 6))
    assert (back["n"], back["share_of_a"], back["expected_share"]) == (1, 1.0, 0.5)
    assert there["jaccard"] == back["jaccard"] == pytest.approx(1 / 3)
    assert found.notes == ("Fewer than 3 edges have a score other than zero: b 1.",)


def test_an_empty_circuit_has_no_share() -> None:
    (there, back) = containment(score_matrix([[np.nan] * 3, [1.0, 2, 3]], labels=["a", "b"]), top=2).rows()
    assert (there["share_of_a"], there["jaccard"], back["share_of_a"]) == (None, 0.0, 0.0)


def test_split_ties_are_noted() -> None:
    found = containment(score_matrix([[1, 1, 1], [1, 2, 3]], labels=["a", "b"]), top=2)
    assert found.n_tied.tolist() == [3, 0]
    assert found.notes == (
        "The cut splits a tie in a 3: only the lower edge ids of so many edges of equal strength (n_tied) are in, and "
        "the shares depend on that choice.",
    )
    assert found.wide().notes == found.notes


def test_zeros_are_never_in_a_hard_circuit() -> None:
    found = containment(score_matrix([[0, 0, 7, 0], [0, 0, 0, 0], [1, 2, 3, 4]], labels=["a", "b", "c"]), top=2)
    assert found.n.tolist() == [1, 0, 2]
    assert found.shared.tolist() == [[1, 0, 1], [0, 0, 0], [1, 0, 2]]
    np.testing.assert_array_equal(found.shares, [[1, 0, 1], [np.nan] * 3, [0.5, 0, 1]])
    assert found.notes == ("Fewer than 2 edges have a score other than zero: a 1, b 0.",)


@pytest.mark.parametrize("n", [0, 1])
def test_little_or_nothing_to_compare(n: int) -> None:
    found = containment(score_matrix(np.ones((n, 4)) * [1, 2, 3, 4]), top=2)
    assert len(found) == 0
    assert len(found.wide()) == n


def test_of_a_database(db: Database) -> None:
    cells = [scores for scores, _ in addition_scores().values()]
    cuts = [set(np.argsort(-np.abs(scores), kind="stable")[:20].tolist()) for scores in cells]
    found = db.containment(top=20)
    assert found.shared.tolist() == [[len(a & b) for b in cuts] for a in cuts]
    assert {row["expected_share"] for row in found.rows()} == {20 / 75}
    with pytest.raises(UsageError, match="top=0 is too few"):
        db.containment(top=0)
