from __future__ import annotations

import networkx as nx  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from circuitdb.errors import UsageError
from circuitdb.graph import GraphShape
from circuitdb.queries import Database, chance
from circuitdb.queries.containment import Containment, containment, containments, overlaps
from circuitdb.queries.cuts import Cut, hards
from circuitdb.queries.order import hasse, order
from matrices import score_matrix
from stores import SHAPE as TINY
from stores import addition_scores

SHAPE = GraphShape(1, 1)  # input->a0.h0<q>, <k>, <v>, input->m0, input->logits, a0.h0->m0, a0.h0->logits, m0->logits
# Strongest first: a takes edges 0, 1, 3; b takes 1, 3, 4.
A, B = [5.0, -4, 0, 3, 1, 0, 0, 0], [1.0, 4, 0, 3, -5, 0, 0, 0]
RELATION = st.integers(0, 7).flatmap(lambda n: arrays(bool, (n, n)))


def of(*rows: npt.ArrayLike, top: int) -> Containment:
    return containment(score_matrix(np.array(rows), labels="abcd"[: len(rows)]), Cut.of(top=top), SHAPE)


def test_overlap_by_hand() -> None:
    found = of(A, B, top=3)
    # X is hypergeometric: P(X = x) = C(3, x) C(5, 3 - x) / C(8, 3), that is 10, 30, 15, 1 in 56 for x = 0, 1, 2, 3.
    expected = {
        "n_a": 3, "n_b": 3, "n_tied": 0, "shared": 2, "share_of_a": pytest.approx(2 / 3),
        "mutual": pytest.approx(2 / 3), "jaccard": 0.5, "expected_share": 3 / 8, "expected_mutual": 3 / 8,
        "expected_jaccard": pytest.approx((30 / 5 + 15 * 2 / 4 + 1) / 56), "p_value": pytest.approx(16 / 56),
    }  # fmt: skip
    assert found.rows() == [
        {"a_id": 1, "a": "a", "b_id": 2, "b": "b", **expected},
        {"a_id": 2, "a": "b", "b_id": 1, "b": "a", **expected},
    ]
    assert found.result().title == "Containment of 2 circuits, each cut to its 3 strongest of 8 edges"
    assert found.notes == ()


def test_wide_is_the_share_of_the_row_in_the_column_beside_chance() -> None:
    wide = of(A, B, top=3).wide()
    assert wide.columns == ["label", "chance", "a", "b"]
    assert wide.rows()[0] == {"label": "a", "chance": 3 / 8, "a": 1.0, "b": pytest.approx(2 / 3)}


def test_several_cuts_in_one_go_are_each_as_if_alone() -> None:
    rows = np.stack([scores for scores, _ in addition_scores(TINY).values()])
    rows[3, 7], rows[4] = np.nan, 0
    ways = (
        {"top": 5}, {"greedy": 20}, {"top": 30, "signed": True}, {"threshold": 0.5, "prune": True}, {"top": 60},
    )  # fmt: skip
    cuts = [Cut.of(**way) for way in ways]
    matrix = score_matrix(rows, labels="abcdefghi")
    for cut, found in zip(cuts, containments(matrix, cuts, TINY), strict=True):
        alone = containment(matrix, cut, TINY)
        np.testing.assert_array_equal(found.shared, alone.shared)
        np.testing.assert_array_equal(found.n_tied, alone.n_tied)
        assert (found.title, found.notes) == (alone.title, alone.notes)


def test_a_pair_is_its_row_of_the_table() -> None:
    found = of(A, B, [0.0] * 8, [np.nan, 9.0] + [np.nan] * 6, top=3)
    rows = found.table.to_pylist()
    pairs = [(a, b) for a in range(4) for b in range(4) if a != b]
    assert [found.pair(a, b) for a, b in pairs] == [
        {**row, **{name: pytest.approx(row[name], nan_ok=True) for name in row if isinstance(row[name], float)}}
        for row in rows
    ]
    assert found.pair(0, 1)["shared"] == 2


def test_chance_is_the_mean_over_the_others() -> None:
    found = of(A, B, [0.0] * 8, [np.nan, 9.0] + [np.nan] * 6, top=3)  # of 3, 3, 0 and 1 of 8 edges
    np.testing.assert_allclose(found.chance, [4 / 24, 4 / 24, np.nan, 6 / 24])
    assert np.isnan(of(A, top=3).chance).all()  # there is no other


def test_circuits_of_unequal_size_have_shares_of_their_own() -> None:
    lone = [np.nan, 9.0] + [np.nan] * 6
    found = of(A, lone, top=3)
    there, back = found.rows()
    assert (there["n_a"], there["share_of_a"], there["expected_share"]) == (3, pytest.approx(1 / 3), 1 / 8)
    assert (back["n_a"], back["share_of_a"], back["expected_share"], back["p_value"]) == (
        1, 1.0, 3 / 8, pytest.approx(3 / 8),
    )  # fmt: skip
    assert there["jaccard"] == back["jaccard"] == there["mutual"] == back["mutual"] == pytest.approx(1 / 3)
    assert found.notes == ("Fewer than 3 edges have a score other than zero: b 1.",)


def test_an_empty_circuit_has_no_share() -> None:
    there, back = of([np.nan] * 8, A, top=2).rows()
    assert (there["share_of_a"], there["expected_share"], there["jaccard"], back["share_of_a"]) == (None, None, 0, 0)
    assert (there["p_value"], there["expected_jaccard"]) == (1.0, 0.0)


def test_split_ties_are_noted() -> None:
    found = of([1, 1, 1, 0, 0, 0, 0, 0], [1, 2, 3, 0, 0, 0, 0, 0], top=2)
    assert found.n_tied.tolist() == [1, 0]
    assert found.notes == (
        "The cut splits a tie, leaving out so many edges as strong as the weakest that is in (n_tied): a 1. Those of "
        "lower edge ids are in, and the shares depend on that choice.",
    )
    assert found.wide().notes == found.notes


def test_nothing_left_is_noted() -> None:
    found = containment(
        score_matrix([[0, 0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0, 0, 1]], labels=["a", "b"]),
        Cut.of(top=2, prune=True),
        SHAPE,
    )
    assert found.n.tolist() == [0, 2]
    assert found.notes == ("Nothing is left of a.",)


@pytest.mark.parametrize("n", [0, 1])
def test_little_or_nothing_to_compare(n: int) -> None:
    found = containment(score_matrix(np.ones((n, 8)) * np.arange(1, 9)), Cut.of(top=2), SHAPE)
    assert len(found) == 0
    assert len(found.wide()) == n
    assert len(order(found)) == n


def test_of_a_database(db: Database) -> None:
    cells = [scores for scores, _ in addition_scores().values()]
    cuts = [set(np.argsort(-np.abs(scores), kind="stable")[:20].tolist()) for scores in cells]
    found = db.containment(top=20)
    assert found.shared.tolist() == [[len(a & b) for b in cuts] for a in cuts]
    assert {row["expected_share"] for row in found.rows()} == {20 / 75}
    with pytest.raises(UsageError, match="top=0 is too few"):
        db.containment(top=0)
    with pytest.raises(UsageError, match="give top or share, not 2 of them"):
        db.containment(top=5, share=0.1)


@settings(deadline=None)
@given(arrays(bool, st.tuples(st.integers(0, 5), st.integers(0, 200))))
def test_overlaps_are_those_of_a_matrix_product(members: npt.NDArray[np.bool_]) -> None:
    counts = members.astype(np.int64)
    assert overlaps(members).tolist() == (counts @ counts.T).tolist()


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.just(n), *[st.integers(0, n)] * 3)))
def test_chance_is_scipys_hypergeometric(drawn: tuple[int, int, int, int]) -> None:
    n, a, b, shared = drawn
    ones = [np.array([value]) for value in (a, b, shared)]
    law = stats.hypergeom(n, a, b)
    assert chance.at_least(n, *ones)[0] == pytest.approx(law.sf(shared - 1), rel=1e-9, abs=1e-12)
    x = np.arange(min(a, b) + 1)
    assert chance.expected_shared(n, *ones[:2])[0] == pytest.approx((law.pmf(x) * x).sum(), rel=1e-9)
    found = chance.expected_jaccard(n, *ones[:2])[0]
    if a + b:
        assert found == pytest.approx((law.pmf(x) * x / (a + b - x)).sum(), rel=1e-9, abs=1e-12)
    else:
        assert np.isnan(found)


def test_chance_of_a_large_graph() -> None:
    law = stats.hypergeom(123_211, 2000, 3000)
    found = chance.at_least(123_211, np.array([2000]), np.array([3000]), np.array([80]))[0]
    assert found == pytest.approx(law.sf(79), rel=1e-6)


def test_chance_of_being_in_exactly_so_many_is_scipys_poisson_binomial() -> None:
    """With one cut a circuit, of these sizes."""
    found = chance.expected_by_count((np.arange(75) < np.array([[5], [20], [75]])).astype(np.int64), 1)
    expected = stats.poisson_binom([5 / 75, 20 / 75, 1.0]).pmf(range(4)) * 75
    np.testing.assert_allclose(found, expected, atol=1e-12)


CUTTINGS = {
    "nested": [Cut.of(top=10), Cut.of(top=20), Cut.of(top=40)],
    "pruned-and-grown": [Cut.of(top=30, prune=True), Cut.of(greedy=20), Cut.of(greedy=30, signed=True)],
}


def counted(scores: npt.NDArray[np.float32], cuts: list[Cut]) -> npt.NDArray[np.int64]:
    """[circuit, edge]: in how many of its cuts each edge is."""
    return np.asarray(sum(found.members.astype(np.int64) for found in hards(scores, cuts, TINY)), np.int64)


def near(found: npt.NDArray[np.float64], often: npt.NDArray[np.int64]) -> bool:
    """Whether all numbers of edges are within five standard errors of their mean over the draws, [draw, edge]."""
    drawn = np.stack([np.bincount(row, minlength=len(found)) for row in often])
    errors = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    return bool((np.abs(drawn.mean(axis=0) - found) <= 5 * errors + 0.01).all())


@pytest.mark.parametrize("cuts", CUTTINGS.values(), ids=CUTTINGS)
def test_chance_of_several_cuts_is_that_of_circuits_with_their_edges_in_random_order(cuts: list[Cut]) -> None:
    rng = np.random.default_rng(0)
    counts = counted(rng.standard_normal((3, TINY.n_edges)).astype(np.float32), cuts)
    found = chance.expected_by_count(counts, len(cuts))
    assert near(found, np.stack([rng.permuted(counts, axis=1).sum(axis=0) for _ in range(4_000)]))
    assert found.sum() == pytest.approx(TINY.n_edges, abs=1e-9)


def test_chance_of_nested_cuts_is_that_of_random_scores() -> None:
    """In all three cuts of each circuit is what is in the smallest of each: 75 (10 / 75)^3, not times the larger."""
    scores = np.random.default_rng(1).standard_normal((6_000, TINY.n_edges)).astype(np.float32)
    counts = counted(scores, CUTTINGS["nested"])
    found = chance.expected_by_count(counts[:3], 3)
    assert found[-1] == pytest.approx(75 * (10 / 75) ** 3, abs=1e-12)
    assert near(found, counts.reshape(2_000, 3, -1).sum(axis=1))


@settings(deadline=None)
@given(RELATION)
def test_hasse_is_networkx_transitive_reduction_of_the_condensation(inside: npt.NDArray[np.bool_]) -> None:
    classes, covers = hasse(inside)
    condensed = nx.condensation(nx.from_numpy_array(inside, create_using=nx.DiGraph))
    of_class = {frozenset(data["members"]): node for node, data in condensed.nodes(data=True)}
    nodes = [of_class[frozenset(rows)] for rows in classes]
    assert sorted((nodes[a], nodes[b]) for a, b in covers) == sorted(nx.transitive_reduction(condensed).edges)
    assert [rows[0] for rows in classes] == sorted(rows[0] for rows in classes)


def test_order_by_hand() -> None:
    """a = {0} in b = {0, 1} in c = {0, 1, 2}; d = {7} is alone; a in c goes without saying."""
    a, b, c, d = ([1.0] * n + [0.0] * (8 - n) for n in (1, 2, 3, 0))
    d[7] = 1.0
    found = order(of(a, b, c, d, top=8))
    assert found.rows() == [
        row | {"share": 1.0 if row["contained_in"] else None}
        for row in (
            {"circuit": "a", "contained_in": "b", "n_circuit": 1, "n_contained_in": 2, "expected_share": 0.25},
            {"circuit": "b", "contained_in": "c", "n_circuit": 2, "n_contained_in": 3, "expected_share": 0.375},
            {"circuit": "d", "contained_in": None, "n_circuit": 1, "n_contained_in": None, "expected_share": None},
        )
    ]
    assert found.levels() == [0, 1, 2, 0]
    assert found.title.endswith("2 covers of 4 classes of circuits, tolerance 0")


def test_within_a_tolerance_like_circuits_are_one_class() -> None:
    a, b, c = [1.0, 1, 1, 0, 0, 0, 0, 0], [1.0, 1, 0, 1, 0, 0, 0, 0], [1.0, 1, 1, 1, 1, 1, 0, 0]
    strict, loose = order(of(a, b, c, top=8)), order(of(a, b, c, top=8), 0.34)
    assert [(row["circuit"], row["contained_in"]) for row in strict.rows()] == [("a", "c"), ("b", "c")]
    assert [(row["circuit"], row["contained_in"], row["share"]) for row in loose.rows()] == [("a = b", "c", 1.0)]
    assert "Within the tolerance these lie in each other, and count as one: a = b." in loose.notes


def test_a_chain_that_holds_a_class_together_is_noted() -> None:
    rows = [[1.0] * 4 + [0.0] * 4, [0.0] + [1.0] * 4 + [0.0] * 3, [0.0] * 2 + [1.0] * 4 + [0.0] * 2]
    found = order(of(*rows, top=8), 0.25)  # neighbours share 3 of 4 edges, the ends 2
    assert found.classes == ((0, 1, 2),)
    assert "Held together by a chain, since some of their members are not in each other: a = b = c." in found.notes


@pytest.mark.parametrize("tolerance", [-0.1, 1.0, float("nan"), "a"])
def test_an_impossible_tolerance_is_refused(tolerance: float, db: Database) -> None:
    with pytest.raises(UsageError, match="tolerance"):
        db.containment_order(tolerance)
