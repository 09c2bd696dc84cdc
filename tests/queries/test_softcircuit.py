from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from circuitdb.errors import UsageError
from circuitdb.graph import GraphShape
from circuitdb.queries import Database
from circuitdb.queries.comparison import Comparison
from circuitdb.queries.cuts import Cut
from circuitdb.queries.softcircuit import ORDERS, SoftCircuit
from circuitdb.store import Store
from stores import SHAPE, circuit

# One layer of one head: input->a0.h0<q>, <k>, <v>, input->m0, input->logits, a0.h0->m0, a0.h0->logits, m0->logits
SMALL = GraphShape(1, 1)
SCORES = [3.0, np.nan, -2.0, 0.0, 0.5, -4.0, 2.0, np.nan]


def small(scores: list[float] = SCORES) -> SoftCircuit:
    return SoftCircuit(1, "1+1", SMALL, np.array(scores, np.float32))


@pytest.fixture
def gaps(tmp_path: Path) -> Database:
    """One circuit with missing scores, all of those that leave a0.h1 among them."""
    scores = np.random.default_rng(3).standard_normal(SHAPE.n_edges).astype(np.float32)
    scores[::7] = np.nan
    scores[SHAPE.edge_sources == SHAPE.source_names.index("a0.h1")] = np.nan
    path = tmp_path / "c.duckdb"
    Store(path).write(circuit(), scores)
    return Database(path)


def names(found: SoftCircuit, **asked: object) -> list[str]:
    edges = found.edges(Comparison.of({k: v for k, v in asked.items() if k not in ("sign", "name", "order")}), **{
        k: v for k, v in asked.items() if k in ("sign", "name", "order")
    })  # type: ignore[arg-type]  # fmt: skip
    return [str(name) for name in edges.page()["edge"].to_pylist()]


def test_node_scores_are_those_of_sql(gaps: Database) -> None:
    found = gaps.soft_circuit(1)
    expected = {row["node"]: row["score"] for row in gaps.node_scores(1).rows()}
    assert found.node_names[-1] == "logits"
    assert np.isnan(found.node_scores[-1])
    assert expected["a0.h1"] is None
    assert np.isnan(found.node_scores[found.node_names.index("a0.h1")])
    for name, score in zip(found.node_names[:-1], found.node_scores, strict=False):
        if name != "a0.h1":
            assert score == pytest.approx(expected[name], rel=1e-6)
    (missing,) = gaps.sql("SELECT n_nonfinite FROM circuits").rows()[0].values()
    assert found.n_missing == missing
    assert found.n_missing > 0


def test_standings_by_hand() -> None:
    """Node scores are 1.5 (3 - 2 + 0.5), -2 (-4 + 2), none, none."""
    assert small().node_scores.tolist() == pytest.approx([1.5, -2, np.nan, np.nan], nan_ok=True)
    assert small().node_standings.tolist() == pytest.approx([0, -0.5, np.nan, np.nan], nan_ok=True)
    found = small([0.0, 0, 0, 0, 0, -3, 0, 3])  # 0, -3, 3: equal strengths stand alike
    assert found.node_standings.tolist() == pytest.approx([0, -1 / 3, 1 / 3, np.nan], nan_ok=True)


@pytest.mark.parametrize(
    ("order", "edges"),
    [
        ("strength", [5, 0, 2, 6, 4, 3, 1, 7]),
        ("highest", [0, 6, 4, 3, 2, 5, 1, 7]),
        ("lowest", [5, 2, 3, 4, 6, 0, 1, 7]),
        ("edge", [0, 1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_orders_by_hand(order: str, edges: list[int]) -> None:
    assert small().edges(order=order).ids.tolist() == edges


def test_a_page_has_places_names_and_nulls() -> None:
    page = small().edges().page(4, 3).to_pylist()
    assert page == [
        {"place": 5, "edge": "input->logits", "source": "input", "target": "logits", "score": 0.5, "edge_id": 4},
        {"place": 6, "edge": "input->m0", "source": "input", "target": "m0", "score": 0.0, "edge_id": 3},
        {"place": 7, "edge": "input->a0.h0<k>", "source": "input", "target": "a0.h0<k>", "score": None, "edge_id": 1},
    ]
    assert small().edges().page(8, 3).num_rows == 0


@pytest.mark.parametrize(("sign", "edges"), [("+", {0, 4, 6}), ("-", {2, 5}), ("0", {3}), (None, set(range(8)))])
def test_signs(sign: str | None, edges: set[int]) -> None:
    assert set(small().edges(sign=sign).ids.tolist()) == edges


@pytest.mark.parametrize(
    ("asked", "condition"),
    [
        ({"source": "mlp"}, "source_kind = 'mlp'"),
        ({"target": "head", "qkv": "k"}, "target_kind = 'head' AND qkv = 'k'"),
        ({"layers": (1, 1)}, "coalesce(source_layer, 1) = 1 AND coalesce(target_layer, 1) = 1"),
        ({"sign": "-", "source": "head"}, "score < 0 AND source_kind = 'head'"),
        ({"name": "A0.H2->", "sign": "+"}, "contains(edge, 'a0.h2->') AND score > 0"),
    ],
)
def test_filters_are_those_of_sql(gaps: Database, asked: dict[str, object], condition: str) -> None:
    rows = gaps.sql(f"SELECT edge FROM scores WHERE {condition} ORDER BY abs(score) DESC NULLS LAST, edge_id").rows()
    assert rows
    assert names(gaps.soft_circuit(1), **asked) == [row["edge"] for row in rows]


def test_a_text_is_found_wherever_it_lies_in_the_name(gaps: Database) -> None:
    """Every piece of up to nine characters of every name, against a look at each name."""
    found = gaps.soft_circuit(1)
    every = SHAPE.edge_names
    pieces = {name[i : i + size] for name in every for size in range(1, 10) for i in range(len(name) - size + 1)}
    for piece in [*pieces, "->->", "-a", ">>", "no such", "%", "_", "'"]:
        expected = [name for name in every if piece in name]
        assert names(found, name=piece, order="edge") == expected, piece


def test_the_strongest_edges_of_a_node() -> None:
    found = small()
    head, mlp = found.node_names.index("a0.h0"), found.node_names.index("m0")
    assert found.incoming(head).ids.tolist() == [0, 2, 1]
    assert found.outgoing(head).ids.tolist() == [5, 6]
    assert found.incoming(mlp).ids.tolist() == [5, 3]
    assert found.outgoing(len(found.node_names) - 1).ids.tolist() == []
    assert found.incoming(0).ids.tolist() == []
    assert found.edges(node=head).ids.tolist() == [5, 0, 2, 6, 1]
    assert [found.layer(i) for i in range(4)] == [-1, 0, 0, 1]


@pytest.mark.parametrize(("top", "signed", "prune"), [(3, False, False), (20, False, True), (40, True, False)])
def test_a_hard_circuit_is_that_of_the_database(gaps: Database, top: int, signed: bool, prune: bool) -> None:
    kept = gaps.soft_circuit(1).hard(Cut.of(top=top, signed=signed, prune=prune))
    expected = gaps.hard_circuit(1, top=top, signed=signed, prune=prune).rows()
    assert sorted(kept.edges.ids.tolist()) == [row["edge_id"] for row in expected]
    strengths = np.abs(kept.edges.scores[kept.edges.ids])
    assert (np.diff(strengths) <= 0).all()
    ends = {SHAPE.source_names[i] if i < SHAPE.n_sources else "logits" for i in kept.nodes.tolist()}
    assert ends == {str(row["source"]) for row in expected} | {str(row["target"]).partition("<")[0] for row in expected}
    assert kept.n_cut == len(gaps.hard_circuit(1, top=top, signed=signed).rows())


def test_ties_of_a_cut_are_counted() -> None:
    kept = small([1.0, 1, 1, 0, 0, 0, 0, 0]).hard(Cut.of(top=2))
    assert kept.edges.ids.tolist() == [0, 1]
    assert kept.n_tied == 1


def test_every_size_of_graph_has_its_pages() -> None:
    shape = GraphShape(6, 8, parallel=True)
    scores = np.random.default_rng(0).standard_normal(shape.n_edges).astype(np.float32)
    page = SoftCircuit(1, "x", shape, scores).edges().page(100, 50)
    for row in page.to_pylist():
        assert shape.edge_names[row["edge_id"]] == row["edge"] == f"{row['source']}->{row['target']}"
        assert row["score"] == scores[row["edge_id"]]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"sign": "plus"}, "There is no sign 'plus'; choose one of +, -, 0."),
        ({"order": "x"}, f"There is no order 'x'; choose one of {', '.join(ORDERS)}."),
    ],
)
def test_what_there_is_not_is_refused(asked: dict[str, str], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        small().edges(**asked)  # type: ignore[arg-type]
    assert str(caught.value) == told


def test_no_such_circuit(gaps: Database) -> None:
    with pytest.raises(UsageError, match=r"There is no circuit 9"):
        gaps.soft_circuit(9)
