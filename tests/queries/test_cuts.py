from __future__ import annotations

import heapq

import networkx as nx  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from circuitdb.errors import UsageError
from circuitdb.graph import GraphShape
from circuitdb.queries import Database
from circuitdb.queries.cuts import Cut, hard, hards
from circuitdb.queries.inclusion import inclusion
from circuitdb.queries.paths import pruned
from matrices import score_matrix

LINE = GraphShape(1, 1)  # input->a0.h0<q>, <k>, <v>, input->m0, input->logits, a0.h0->m0, a0.h0->logits, m0->logits
SHAPES = st.builds(GraphShape, st.integers(1, 3), st.integers(1, 2), st.booleans())
FEW = st.sampled_from([np.nan, -2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0])


def scores_of(shape: GraphShape) -> st.SearchStrategy[tuple[GraphShape, npt.NDArray[np.float32]]]:
    return st.tuples(st.just(shape), arrays(np.float32, (2, shape.n_edges), elements=FEW))


DRAWN = SHAPES.flatmap(scores_of)


def node(target: str) -> str:
    """The node of a target: its q, k and v lead to the head."""
    return target.partition("<")[0]


def grown_one_by_one(scores: npt.NDArray[np.float32], shape: GraphShape, n: int, *, signed: bool) -> list[int]:
    """Greedy growth by a heap of available edges, as one would write it for a single circuit."""
    into: dict[str, list[int]] = {}
    ends = [name.split("->") for name in shape.edge_names]
    for edge, (_, target) in enumerate(ends):
        into.setdefault(node(target), []).append(edge)
    found: list[int] = []
    inside = {"logits"}
    heap: list[tuple[float, int]] = []

    def open_up(name: str) -> None:
        for edge in into.get(name, []):
            strength = float(scores[edge] if signed else abs(scores[edge]))
            if strength > 0:
                heapq.heappush(heap, (-strength, edge))

    open_up("logits")
    while heap and len(found) < n:
        _, edge = heapq.heappop(heap)
        found.append(edge)
        if ends[edge][0] not in inside:
            inside.add(ends[edge][0])
            open_up(ends[edge][0])
    return found


@pytest.mark.parametrize(
    ("scores", "top", "edges", "tied"),
    [
        pytest.param([1, -3, 2], 2, [1, 2], 0, id="by-magnitude"),
        pytest.param([2, -2, 2, 1], 2, [0, 1], 1, id="ties-by-edge-id"),
        pytest.param([2, -2, 1, 1], 2, [0, 1], 0, id="tie-not-split"),
        pytest.param([np.nan, 1, np.nan, 2], 3, [1, 3], 0, id="null-never-in"),
        pytest.param([np.nan, 1, 5, 1], 2, [1, 2], 1, id="null-and-tie"),
        pytest.param([0, 0, 0], 1, [], 0, id="all-zero"),
        pytest.param([0, 3, -0.0, np.nan, 1], 4, [1, 4], 0, id="zero-never-in"),
        pytest.param([0, 2, 2, 0], 1, [1], 1, id="tie-before-zero"),
        pytest.param([np.nan, np.nan], 1, [], 0, id="all-null"),
        pytest.param([3, 1], 9, [0, 1], 0, id="more-than-there-are"),
    ],
)
def test_top(scores: list[float], top: int, edges: list[int], tied: int) -> None:
    row = np.zeros((1, LINE.n_edges), np.float32)
    row[0, : len(scores)] = scores
    found = hard(row, Cut.of(top=top), LINE)
    assert np.flatnonzero(found.members[0]).tolist() == edges
    assert found.n_tied.tolist() == [tied]


@settings(deadline=None)
@given(DRAWN, st.integers(1, 20), st.booleans())
def test_top_sorts_by_strength_then_edge(
    drawn: tuple[GraphShape, npt.NDArray[np.float32]], top: int, signed: bool
) -> None:
    shape, scores = drawn
    found = hard(scores, Cut.of(top=top, signed=signed), shape)
    for row, members, tied in zip(scores, found.members, found.n_tied.tolist(), strict=True):
        strong = {i: s if signed else abs(s) for i, s in enumerate(row.tolist()) if (s if signed else abs(s)) > 0}
        order = sorted(strong, key=lambda i: (-strong[i], i))
        assert np.flatnonzero(members).tolist() == sorted(order[:top])
        assert tied == sum(strong[edge] == strong[order[top - 1]] for edge in order[top:])


@settings(deadline=None)
@given(DRAWN, st.sampled_from([0.5, 1.0, 1.5]), st.booleans())
def test_threshold_keeps_all_of_at_least_that_strength(
    drawn: tuple[GraphShape, npt.NDArray[np.float32]], threshold: float, signed: bool
) -> None:
    shape, scores = drawn
    found = hard(scores, Cut.of(threshold=threshold, signed=signed), shape)
    known = np.nan_to_num(scores, nan=0)
    np.testing.assert_array_equal(found.members, (known if signed else abs(known)) >= threshold)
    assert not found.n_tied.any()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("threshold", "edges"), [(1e-46, [0, 1, 4]), (5e-324, [0, 1, 4]), (0.7, [0, 4]), (1e39, [])])
@pytest.mark.parametrize("signed", [False, True])
def test_a_threshold_that_scores_cannot_be_is_no_other_threshold(
    threshold: float, edges: list[int], signed: bool
) -> None:
    """Scores are of 32 bits: 0.7 is theirs, 1e-46 is 0 there, 1e39 is infinite; zero and NULL are never in."""
    row = np.array([[0.7, 1e-45, 0, np.nan, 3e38, 0, -0.0, np.nan]], np.float32)
    found = hard(row, Cut.of(threshold=threshold, signed=signed), LINE)
    assert np.flatnonzero(found.members[0]).tolist() == edges


@settings(deadline=None)
@given(DRAWN, st.integers(1, 30), st.booleans())
def test_greedy_is_what_a_heap_grows(drawn: tuple[GraphShape, npt.NDArray[np.float32]], n: int, signed: bool) -> None:
    shape, scores = drawn
    found = hard(scores, Cut.of(greedy=n, signed=signed), shape)
    for row, members in zip(scores, found.members, strict=True):
        assert np.flatnonzero(members).tolist() == sorted(grown_one_by_one(row, shape, n, signed=signed))


def test_greedy_ties_count_only_edges_that_could_have_come_instead() -> None:
    # m0->logits (5) opens input->m0 and a0.h0->m0, both 1; input->a0.h0<q>, also 1, opens only later.
    row = np.array([[1, 0, 0, 1, 0, 1, 0, 5]], np.float32)
    found = hard(row, Cut.of(greedy=2), LINE)
    assert np.flatnonzero(found.members[0]).tolist() == [3, 7]
    assert found.n_tied.tolist() == [1]
    assert hard(row, Cut.of(greedy=3), LINE).n_tied.tolist() == [0]


@settings(deadline=None)
@given(SHAPES.flatmap(lambda shape: st.tuples(st.just(shape), arrays(bool, (3, shape.n_edges)))))
def test_pruned_is_what_networkx_finds_on_paths(drawn: tuple[GraphShape, npt.NDArray[np.bool_]]) -> None:
    shape, members = drawn
    found = pruned(members, shape)
    for kept, row in zip(found, members, strict=True):
        graph = nx.DiGraph()
        graph.add_nodes_from(["input", "logits"])
        ends = {i: (n.split("->")[0], node(n.split("->")[1])) for i, n in enumerate(shape.edge_names) if row[i]}
        graph.add_edges_from(ends.values())
        able = ({"input"} | nx.descendants(graph, "input")) & ({"logits"} | nx.ancestors(graph, "logits"))
        assert np.flatnonzero(kept).tolist() == [i for i, (a, b) in ends.items() if a in able and b in able]
    np.testing.assert_array_equal(pruned(found, shape), found)


def test_pruning_takes_away_what_hangs_in_the_air() -> None:
    """input->a0.h0<k>, a0.h0->logits is a path by the head; input->m0 leads nowhere, m0->logits comes from nowhere."""
    members = np.zeros((2, LINE.n_edges), bool)
    members[0, [1, 3, 6]] = True
    members[1, [1, 6, 7]] = True
    assert [np.flatnonzero(row).tolist() for row in pruned(members, LINE)] == [[1, 6], [1, 6]]


def test_many_cuts_at_once_are_those_cuts_one_by_one() -> None:
    shape = GraphShape(2, 3)
    scores = np.random.default_rng(0).integers(-3, 4, (4, shape.n_edges)).astype(np.float32)
    cuts = [
        Cut.of(top=5), Cut.of(top=40), Cut.of(greedy=12), Cut.of(share=0.2, signed=True), Cut.of(threshold=2),
        Cut.of(top=30, prune=True), Cut.of(greedy=60, signed=True, prune=True),
    ]  # fmt: skip
    for together, cut in zip(hards(scores, cuts, shape), cuts, strict=True):
        alone = hard(scores, cut, shape)
        np.testing.assert_array_equal(together.members, alone.members)
        np.testing.assert_array_equal(together.n_tied, alone.n_tied)


def test_a_share_is_rounded_and_never_nothing() -> None:
    assert [Cut.of(share=s).size(75) for s in (0.001, 0.1, 0.5, 1.0)] == [1, 8, 38, 75]


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        ({"top": 0}, "top=0 is too few"),
        ({"top": 2.5}, "A number of edges .top. is a whole number, not 2.5"),
        ({"greedy": -1}, "greedy=-1 is too few"),
        ({"share": 0}, "over 0 and at most 1, not 0"),
        ({"share": 1.5}, "over 0 and at most 1, not 1.5"),
        ({"threshold": 0}, "a strength over 0, not 0"),
        ({"threshold": float("nan")}, "threshold is a strength, such as 0.001"),
        ({"threshold": 1, "greedy": 3, "top": 5}, "give top or threshold or greedy, not 3 of them"),
    ],
)
def test_an_impossible_cut_is_refused(cut: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Cut.of(**cut)  # type: ignore[arg-type]


def test_a_word_that_a_cut_does_not_have_is_refused(db: Database) -> None:
    with pytest.raises(TypeError, match="A cut has no 'tops'; it has top, share, threshold, greedy, signed, prune"):
        Cut.of(tops=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="no filter 'tops'"):
        db.containment(tops=3)  # type: ignore[call-arg]


def test_words() -> None:
    assert [
        Cut.of(**cut).describe(75)
        for cut in ({}, {"share": 0.1, "signed": True}, {"threshold": 0.5}, {"greedy": 9, "prune": True})
    ] == [
        "its 200 strongest of 75 edges",
        "its 8 most positive of 75 edges",
        "the edges of strength 0.5 or more",
        "9 of 75 edges, grown from the logits by the strongest, then pruned to paths from input to logits",
    ]


def test_inclusion_by_hand() -> None:
    """Cut to 1 and to 2 edges: a has 0, 0 1; b has 0, 0 1; c has 2, 2 0."""
    rows = [[3, 2, 1, 0, 0, 0, 0, 0], [3, 2, 1, 0, 0, 0, 0, 0], [2, 1, 3, 0, 0, 0, 0, 0]]
    found = inclusion(score_matrix(rows, labels=["a", "b", "c"]), [Cut.of(top=1), Cut.of(top=2)], LINE, consensus=0.8)
    names = LINE.edge_names
    assert found.rows() == [
        {"edge": names[0], "inclusion": 5 / 6, "n_circuits": 3, "kind": "consensus", "only_in": None, "edge_id": 0},
        {"edge": names[1], "inclusion": 2 / 6, "n_circuits": 2, "kind": "some", "only_in": None, "edge_id": 1},
        {"edge": names[2], "inclusion": 2 / 6, "n_circuits": 1, "kind": "some", "only_in": "c", "edge_id": 2},
    ]
    # By chance an edge is in both cuts of a circuit with 1/8, in the larger alone with 1/8; that makes five of six.
    everywhere, five = 8 * (1 / 8) ** 3, 8 * 3 * (1 / 8) ** 3
    assert found.title == (
        f"Edges of 3 circuits, each cut in 2 ways: 0 in all (core; {everywhere:.3g} by chance), 1 in at least 0.8 of "
        f"them (consensus; {everywhere + five:.3g} by chance), 1 in one circuit only, 3 in any"
    )


def test_inclusion_of_a_database(db: Database) -> None:
    found = db.inclusion([Cut.of(top=10)], circuits=[1, 5], least=1.0)
    both = {row["edge"] for row in db.hard_circuit(1, top=10).rows()} & {
        row["edge"] for row in db.hard_circuit(5, top=10).rows()
    }
    assert {row["edge"] for row in found.rows()} == both
    assert {row["kind"] for row in found.rows()} == {"core"}
    one = db.inclusion(top=10, circuits=[1, 5], least=1.0)
    assert (one.title, one.rows()) == (found.title, found.rows())
    with pytest.raises(UsageError, match="The cuts are given one by one; signed belongs into each of them"):
        db.inclusion([Cut.of(top=10)], signed=True)
    with pytest.raises(UsageError, match="least is a share from 0 to 1, not 2"):
        db.inclusion(least=2)
    with pytest.raises(UsageError, match="There is no cut"):
        db.inclusion([])


def test_hard_circuit_of_a_database(db: Database) -> None:
    found = db.hard_circuit(2, top=3)
    strongest = sorted(db.top_edges(2, 3).rows(), key=lambda row: int(str(row["edge_id"])))
    assert [(row["edge"], row["source"], row["target"], row["score"]) for row in found.rows()] == [
        (row["edge"], row["source"], row["target"], row["score"]) for row in strongest
    ]
    assert found.title == "3 edges of circuit 2 (1+2), cut to its 3 strongest of 75 edges"
    with pytest.raises(UsageError, match="There is no circuit 99"):
        db.hard_circuit(99)
