from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from circuitdb.errors import UsageError
from circuitdb.graph import GraphShape
from circuitdb.queries import Database
from circuitdb.queries.comparison import Comparison
from circuitdb.queries.features import Ends, Features
from circuitdb.store import Store
from stores import circuit, model

GROUPED = GraphShape(n_layers=3, n_heads=4)
RNG = np.random.default_rng(0)
SCORES = RNG.standard_normal((3, GROUPED.n_edges)).astype(np.float32)
SCORES[0, 5] = np.nan
SCORES[1, :40] = 0


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """Three circuits of a model whose four query heads share two key-value heads; one score missing, some zero."""
    path = tmp_path_factory.mktemp("grouped") / "c.duckdb"
    store = Store(path)
    for i, row in enumerate(SCORES):
        store.write(circuit(f"{i}", of=model(shape=GROUPED, n_kv_heads=2)), row, [row, -row, row])
    return Database(path)


def by_sql(db: Database, statement: str) -> np.ndarray:
    """[circuit, column] of a statement that gives circuit_id, column, score."""
    rows = db.sql(statement).rows()
    columns = {name: i for i, name in enumerate(dict.fromkeys(row["name"] for row in rows))}
    out = np.full((3, len(columns)), np.nan)
    for row in rows:
        circuit_id, score = row["circuit_id"], row["score"]
        assert isinstance(circuit_id, int)
        out[circuit_id - 1, columns[row["name"]]] = np.nan if score is None else score
    return out


@pytest.mark.parametrize(
    ("asked", "condition"),
    [
        ({"source": "head"}, "source_kind = 'head'"),
        ({"source": ["input", "mlp"]}, "source_kind IN ('input', 'mlp')"),
        ({"target": "mlp"}, "target_kind = 'mlp'"),
        ({"target": ["logits", "head"]}, "target_kind IN ('logits', 'head')"),
        ({"qkv": "k"}, "qkv = 'k'"),
        ({"qkv": ["q", "v"], "source": "head"}, "qkv IN ('q', 'v') AND source_kind = 'head'"),
        ({"layers": (1, 1)}, "coalesce(source_layer, 1) = 1 AND coalesce(target_layer, 1) = 1"),
        ({"layers": (1, 2), "target": "head"},
         "coalesce(source_layer, 1) BETWEEN 1 AND 2 AND target_layer BETWEEN 1 AND 2 AND target_kind = 'head'"),
    ],
    ids=str,
)  # fmt: skip
def test_filters_are_those_of_the_edge_table(db: Database, asked: dict[str, object], condition: str) -> None:
    ids = [
        int(str(row["edge_id"]))
        for row in db.sql(f"SELECT edge_id FROM edge WHERE {condition} ORDER BY edge_id").rows()
    ]
    found = Features.of(Comparison.of(asked), GROUPED, 2)
    assert found.edges.tolist() == ids
    np.testing.assert_array_equal(found.take(SCORES), SCORES[:, ids])


def test_nodes_are_the_view_of_node_scores(db: Database) -> None:
    expected = by_sql(db, "SELECT circuit_id, node AS name, score FROM node_scores ORDER BY circuit_id, node")
    found = Features.of(Comparison(level="node"), GROUPED, 2).take(SCORES)
    names = sorted(GROUPED.source_names)
    order = [names.index(name) for name in GROUPED.source_names]
    np.testing.assert_allclose(found, expected[:, order], atol=1e-5)


def test_shared_projections_are_the_view_of_shared_scores(db: Database) -> None:
    expected = by_sql(
        db, "SELECT circuit_id, source || '->' || target AS name, score FROM shared_scores ORDER BY circuit_id, name"
    )
    found = Features.of(Comparison(shared=True, qkv=("k", "v")), GROUPED, 2).take(SCORES)
    assert found.shape == expected.shape == (3, expected.shape[1])
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.sort(mine), np.sort(theirs), atol=1e-5)


def test_what_is_not_shared_stays_as_it_is() -> None:
    q_only = Features.of(Comparison(shared=True, qkv=("q",)), GROUPED, 2)
    np.testing.assert_array_equal(q_only.take(SCORES), Features.of(Comparison(qkv=("q",)), GROUPED, 2).take(SCORES))
    # As many key-value heads as query heads: nothing is shared.
    every = Features.of(Comparison(shared=True), GROUPED, 4)
    np.testing.assert_array_equal(every.take(SCORES), SCORES)
    # 4 query heads and 2 pairs of shared k, v: 8 targets of 12 are left.
    to_heads = int(np.count_nonzero(Ends.of(GROUPED).target_kind == 0))
    assert Features.of(Comparison(shared=True), GROUPED, 2).n_columns == GROUPED.n_edges - to_heads // 3


def test_a_missing_score_adds_nothing_and_all_missing_is_missing() -> None:
    scores = np.full((1, GROUPED.n_edges), np.nan, np.float32)
    features = Features.of(Comparison(level="node"), GROUPED, 2)
    assert np.isnan(features.take(scores)).all()
    scores[0, 7] = 3
    assert features.take(scores)[0, 0] == 3  # edge 7 leaves the input


def test_nodes_without_an_edge_left_are_missing() -> None:
    found = Features.of(Comparison(level="node", target=("head",)), GROUPED, 2).take(SCORES)
    assert found.shape == (3, GROUPED.n_sources)
    last = [GROUPED.source_names.index(name) for name in ("a2.h0", "a2.h3", "m2")]  # nothing after them but m2, logits
    assert np.isnan(found[:, last]).all()
    assert not np.isnan(found[1, : last[0]]).any()


def test_the_parallel_graph_has_its_own_ends() -> None:
    shape = GraphShape(n_layers=2, n_heads=2, parallel=True)
    ends = Ends.of(shape)
    assert len(ends.source) == shape.n_edges
    names = [f"{shape.source_names[s]}->{shape.target_names[t]}" for s, t in zip(ends.source, ends.target, strict=True)]
    assert names == shape.edge_names


def test_strata_are_kinds_and_layers(db: Database) -> None:
    rows = db.sql(
        "SELECT edge_id, dense_rank() OVER (ORDER BY source_kind, source_layer, target_kind, target_layer, qkv) AS s "
        "FROM edge ORDER BY edge_id"
    ).arrow()
    theirs, mine = rows["s"].to_numpy(), Ends.of(GROUPED).strata()
    assert len(np.unique(mine)) == len(np.unique(theirs)) == len({*zip(mine.tolist(), theirs.tolist(), strict=True)})


def test_the_database_compares_what_is_asked(db: Database) -> None:
    ends = Ends.of(GROUPED)
    found = db.similarity(source="head", target="mlp", circuits=[2, 3])
    kept = (ends.source_kind == 1) & (ends.target_kind == 1)
    assert found.matrix[0, 1] == pytest.approx(spearmanr(SCORES[1, kept], SCORES[2, kept]).statistic, abs=1e-12)
    assert found.n_edges[0, 1] == kept.sum()
    assert found.title == "Similarity of 2 circuits: Spearman's rho (from head; to mlp), signed scores"
    nodes = Features.of(Comparison(level="node"), GROUPED, 2).take(SCORES)
    magnitude = db.similarity(level="node", kind="pearson", on="magnitude", circuits=[1, 2])
    assert magnitude.matrix[0, 1] == pytest.approx(np.corrcoef(np.abs(nodes[:2]))[0, 1], abs=1e-12)
    assert magnitude.title == "Similarity of 2 circuits: Pearson's r over nodes, magnitude scores"
    nonzero = db.similarity(nonzero=True)
    assert nonzero.n_edges.tolist() == [
        [GROUPED.n_edges - 1] * 3,
        [GROUPED.n_edges - 1, GROUPED.n_edges - 40, GROUPED.n_edges],
        [GROUPED.n_edges - 1, GROUPED.n_edges, GROUPED.n_edges],
    ]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"kind": "rho"}, "kind='rho' is not one of spearman, pearson"),
        ({"level": "layer"}, "level='layer' is not one of edge, node"),
        ({"source": "logits"}, "source='logits' is not one of input, head, mlp"),
        ({"target": ["mlp", "input"]}, "target='input' is not one of head, mlp, logits"),
        ({"qkv": "o"}, "qkv='o' is not one of q, k, v"),
        ({"layers": 3}, r"layers is the first and the last of a range, such as \(0, 5\), not 3"),
        ({"layers": (2, 1)}, "layers 2 to 1 are no range"),
        ({"layers": (0, 1.5)}, "A layer is a whole number"),
        ({"top": 0}, "n=0 is too few"),
        ({"shared": "no"}, "shared is True or False, not 'no'"),
        ({"nonzero": 1}, "nonzero is True or False, not 1"),
        ({"source": "input", "target": "mlp", "qkv": "q"}, r"No edge of this graph passes all filters"),
        ({"layers": (7, 9), "source": "head"}, r"No edge of this graph passes all filters"),
    ],
)
def test_what_there_is_not_is_refused(db: Database, asked: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        db.similarity(**asked)  # type: ignore[arg-type]


def test_shapes_that_differ_are_refused_or_compared_by_nodes(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    parallel = GraphShape(3, 4, parallel=True)
    rows = RNG.standard_normal((2, GROUPED.n_edges)).astype(np.float32)
    store.write(circuit("s", of=model("sequential", GROUPED, n_kv_heads=2)), rows[0])
    store.write(circuit("g", of=model("other", GROUPED, n_kv_heads=4)), rows[1])
    store.write(circuit("p", of=model("parallel", parallel)), rows[0, : parallel.n_edges])
    store.write(circuit("x", of=model("deeper", GraphShape(4, 4))), np.ones(GraphShape(4, 4).n_edges))
    db = Database(tmp_path / "c.duckdb")
    with pytest.raises(UsageError, match=r"do not line up; .* or compare them node by node \(level='node'\)"):
        db.similarity(circuits=[1, 3])
    with pytest.raises(UsageError, match=r"4 key-value heads \(other\); .* 2 key-value heads \(sequential\)"):
        db.similarity(circuits=[1, 2], shared=True)
    assert db.similarity(circuits=[1, 2]).n_edges[0, 1] == GROUPED.n_edges
    with pytest.raises(UsageError, match=r"4 layers x 4 heads .* 3 layers x 4 heads .* A node of one shape is no node"):
        db.similarity(circuits=[1, 4], level="node")
    found = db.similarity(circuits=[1, 3], level="node")
    # Labels sort by model: parallel before sequential.
    nodes = [
        Features.of(Comparison(level="node"), shape, 4).take(scores[None])[0]
        for shape, scores in ((parallel, rows[0, : parallel.n_edges]), (GROUPED, rows[0]))
    ]
    assert found.matrix[0, 1] == pytest.approx(spearmanr(*nodes).statistic, abs=1e-12)
    assert found.n_edges[0, 1] == GROUPED.n_sources
