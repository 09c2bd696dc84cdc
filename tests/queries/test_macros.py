"""The macros of the file: against SciPy, and the same in the bare engine and in our own connection."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from circuitdb.graph import GraphShape
from circuitdb.queries import Database, macros
from circuitdb.queries.cuts import Cut
from circuitdb.queries.selection import Group
from circuitdb.store import Store
from stores import SHAPE, circuit, model

STATEMENTS = [
    "FROM pair_similarities ORDER BY ALL",
    "FROM stability()",
    "FROM stability(task := 'addition', model := 'tiny')",
    "FROM stability('none')",
    "FROM families(0.1)",
    "FROM families(0.6, task := 'addition')",
    "FROM families(2)",
    "FROM similarity(1, 5)",
    "FROM similarity(1, 1)",
    "FROM similarity(1, 4)",
    "FROM similarity(1, 6)",
    "FROM similarity(3, 99)",
    "FROM similarity(2, 5)",
    "FROM similarity(4, 4)",
    "FROM similarity(NULL, 1)",
    "FROM reliability(1)",
    "FROM reliability(6)",
    "FROM reliability(99)",
    "SELECT c.circuit_id, r.* FROM circuit AS c, reliability(c.circuit_id) AS r ORDER BY ALL",
    "SELECT r.reliability, s.ceiling FROM reliability(3) AS r, similarity(1, 2) AS s, families(0.5) ORDER BY ALL",
    "SELECT a.circuit_id, s.* FROM circuit AS a, similarity(a.circuit_id, 2) AS s ORDER BY ALL",
    "SELECT x.similarity AS x, y.similarity AS y FROM similarity(1, 2) AS x, similarity(2, 3) AS y",
    "WITH s AS (FROM similarity(1, 2)) SELECT 'similarity(9, 9)' AS text, s.similarity FROM s",
    "SELECT family, similarity FROM families(0.3) JOIN pair_similarities ON a_id = circuit_id ORDER BY ALL",
    "FROM containment(1, 2, 20)",
    "FROM hard_circuit(2, 5)",
    "FROM top_edges(2, 5)",
]  # fmt: skip


@pytest.fixture(scope="module")
def scores() -> npt.NDArray[np.float32]:
    """Five circuits of one graph: two much alike, ties and zeros, NULLs, one constant."""
    rng = np.random.default_rng(3)
    found = rng.standard_normal((5, SHAPE.n_edges)).astype(np.float32)
    found[1] = found[0] + 0.2 * found[1]
    found[2] = np.round(found[2])
    found[3] = 2.0
    found[4, [0, 7, 9]] = np.nan
    return found


def folds_of(row: npt.NDArray[np.float32], n: int, seed: int) -> npt.NDArray[np.float32]:
    """[fold, edge]: a circuit's scores with noise; the lone NULL of one fold is missing in that fold alone."""
    noise = np.random.default_rng(seed).standard_normal((n, len(row))).astype(np.float32)
    folds = row + noise * (row.std() > 0 or np.isnan(row).any())
    folds[0, 11] = np.nan
    return np.round(folds * 2, 0 if n == 3 else 5)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, scores: npt.NDArray[np.float32]) -> Path:
    """The five as circuits 1 to 5, of 2 to 8 folds, 1+1 twice, and a sixth of another graph."""
    path = tmp_path_factory.mktemp("macros") / "circuits.duckdb"
    store = Store(path)
    for i, (name, n_folds) in enumerate((("1+1", 2), ("1+2", 8), ("2+1", 3), ("2+2", 2), ("1+1", 5))):
        store.write(circuit(name, {"digits_a": 1}, salt=str(i)), scores[i], folds_of(scores[i], n_folds, i))
    other, rng = GraphShape(1, 1), np.random.default_rng(9)
    folds = np.arange(other.n_edges) + rng.standard_normal((2, other.n_edges))
    store.write(circuit("1+1", of=model("other", other), salt="other"), np.arange(other.n_edges), folds)
    return path


@pytest.fixture(scope="module")
def bare(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The engine alone on a copy of the file, since one process can't hold a file in two ways."""
    copy = path.with_name("copy.duckdb")
    shutil.copy(path, copy)
    with duckdb.connect(str(copy), read_only=True) as connection:
        yield connection


@pytest.fixture(scope="module")
def rho(scores: npt.NDArray[np.float32]) -> dict[tuple[int, int], float]:
    """SciPy's of every pair over the edges that both have; circuit 4 is constant."""
    found = {}
    for a in range(5):
        for b in range(a + 1, 5):
            known = ~np.isnan(scores[a]) & ~np.isnan(scores[b])
            if 3 not in (a, b):
                found[a + 1, b + 1] = float(stats.spearmanr(scores[a][known], scores[b][known]).statistic)
    return found


def rows(connection: duckdb.DuckDBPyConnection, statement: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = connection.sql(statement).to_arrow_table().to_pylist()
    return found


@pytest.mark.parametrize("statement", STATEMENTS)
def test_our_connection_and_the_bare_engine_agree(statement: str, path: Path, bare: duckdb.DuckDBPyConnection) -> None:
    ours = Database(path)
    reopened = ours.sql(statement).rows()
    alone = rows(bare, statement)
    assert len(reopened) == len(alone)
    for mine, theirs in zip(reopened, alone, strict=True):
        assert mine == {
            key: pytest.approx(value, abs=1e-12) if isinstance(value, float) else value for key, value in theirs.items()
        }


def test_pairs_are_scipys(bare: duckdb.DuckDBPyConnection, rho: dict[tuple[int, int], float]) -> None:
    found = {(int(str(row["a_id"])), int(str(row["b_id"]))): row for row in rows(bare, "FROM pair_similarities")}
    assert set(found) == {(a, b) for a in range(1, 6) for b in range(a + 1, 6)}
    for pair, row in found.items():
        expected = rho.get(pair)
        assert row["similarity"] == (None if expected is None else pytest.approx(expected, abs=1e-12))
        assert row["n_edges"] == (SHAPE.n_edges - 3 if 5 in pair else SHAPE.n_edges)


def test_stability_is_the_mean_over_distinct_subtasks(
    path: Path, bare: duckdb.DuckDBPyConnection, rho: dict[tuple[int, int], float]
) -> None:
    expected = np.mean([value for pair, value in rho.items() if pair != (1, 5)])  # both are 1+1
    first, second = rows(bare, "FROM stability()")
    assert first["stability"] == pytest.approx(expected, abs=1e-12)
    assert (first["n_subtasks"], first["n_pairs"]) == (4, 5)
    assert (second["model"], second["n_subtasks"], second["n_pairs"], second["stability"]) == ("other", 1, 0, None)
    mine = Database(path).stability(model="tiny").rows()[0]
    assert (mine["stability"], mine["n_pairs"]) == (pytest.approx(expected, abs=1e-12), 5)


def test_groups_are_those_of_the_database(tmp_path: Path) -> None:
    """Two subtasks, scored in one way and then in others: a pair never mixes two ways, in SQL as in Python."""
    ways: list[dict[str, Any]] = [
        {}, {"method": "eap"}, {"steps": 7}, {"grid": "left"}, {"metric": "nll"}, {"positions": "answer"},
        {"contrast": "corrected"}, {"ablation": "zero"}, {"sign_convention": "other"}, {"prompt_style": "zero-shot"},
        {"shots": 1}, {"shots_drawn": "per-example"}, {"reasoning_tokens": 32}, {"chat": True}, {"seed": 5},
        {"n_examples": 9}, {"dtype": "float64"}, {"model": model("second")}, {"origin": "acdc"}, {"subtask": "task"},
    ]  # fmt: skip
    fields = {field for way in ways for field in way} | {"revision"}
    assert {field.name for field in dataclasses.fields(Group)} - {"model_id"} <= fields | {"task", "examples"}
    store = Store(tmp_path / "c.duckdb")
    rng = np.random.default_rng(0)
    for i, way in enumerate(ways):
        for name in ("1+1", "1+2"):
            one = circuit(name, salt=f"{i}", task="other" if "subtask" in way else "addition")
            one = dataclasses.replace(one, **{field: value for field, value in way.items() if field != "subtask"})
            store.write(one, rng.standard_normal(SHAPE.n_edges).astype(np.float32))
    db = Database(tmp_path / "c.duckdb")
    ours, served = db.stability().rows(), db.sql("FROM stability()").rows()
    with duckdb.connect(str(tmp_path / "c.duckdb"), read_only=True) as connection:
        alone = rows(connection, "FROM stability()")
    expected = sorted(float(str(row["stability"])) for row in ours)
    assert len(set(expected)) == len(ways)
    for found in (ours, served, alone):
        assert {(row["n_subtasks"], row["n_pairs"]) for row in found} == {(2, 1)}
        np.testing.assert_allclose(sorted(float(str(row["stability"])) for row in found), expected, atol=1e-12)


@pytest.mark.parametrize("alpha", [-1.0, -0.05, 0.0, 0.1, 0.6, 0.99])
def test_families_are_those_of_the_database(alpha: float, path: Path, bare: duckdb.DuckDBPyConnection) -> None:
    found = rows(bare, f"FROM families({alpha}, model := 'tiny')")
    mine = Database(path).families(alpha, model="tiny").rows()

    def parts(table: list[dict[str, object]]) -> set[tuple[object, ...]]:
        lowest = {row["family"]: row["lowest_within"] for row in table}
        return {
            (frozenset(row["circuit_id"] for row in table if row["family"] == name),
             None if low is None else round(float(str(low)), 10))
            for name, low in lowest.items()
        }  # fmt: skip

    assert parts(found) == parts(mine)
    sizes = [row["size"] for row in found]
    assert sizes == sorted(sizes, key=lambda size: -int(str(size)))


@pytest.mark.parametrize("top", [1, 10, 60, 500])
def test_containment_and_hard_circuits_are_those_of_the_database(
    top: int, path: Path, bare: duckdb.DuckDBPyConnection
) -> None:
    db = Database(path)
    for pair in db.containment(top=top, model="tiny").rows():
        (row,) = rows(bare, f"FROM containment({pair['a_id']}, {pair['b_id']}, {top})")
        for key in ("n_a", "n_b", "shared"):
            assert row[key] == pair[key]
        for key in ("share_of_a", "jaccard", "expected_share"):
            assert row[key] == pytest.approx(pair[key], abs=1e-12)
    for number in range(1, 6):
        mine = db.hard_circuit(number, top=top).rows()
        assert rows(bare, f"FROM hard_circuit({number}, {top})") == mine
    assert rows(bare, f"FROM containment(1, 6, {top})") == []  # of another graph
    assert Cut.of(top=top).size(SHAPE.n_edges) == min(top, SHAPE.n_edges)


def test_an_argument_may_be_a_column_of_any_name(bare: duckdb.DuckDBPyConnection) -> None:
    """No table within a macro hides a column of the caller's, whatever the caller calls his table."""
    expected = [rows(bare, f"FROM top_edges({number}, 1)")[0]["edge"] for number in range(1, 6)]
    for name in ("c", "x", "e", "a", "_asked"):
        statement = f"SELECT t.edge FROM circuit AS {name}, top_edges({name}.circuit_id, 1) AS t "
        found = rows(bare, f"{statement} WHERE {name}.circuit_id < 6 ORDER BY {name}.circuit_id")
        assert [row["edge"] for row in found] == expected
    unqualified = "SELECT circuit_id, shared FROM circuit AS c, containment(circuit_id, 1, 9) ORDER BY 1 LIMIT 1"
    assert rows(bare, unqualified) == [{"circuit_id": 1, "shared": 9}]


def test_ceilings_and_corrected_values_are_those_of_the_database(path: Path, bare: duckdb.DuckDBPyConnection) -> None:
    db = Database(path)
    pairs = db.similarity(model="tiny").rows()
    assert sum(pair["corrected"] is not None for pair in pairs) == 6  # circuit 4 is constant
    for pair in pairs:
        for a, b in ((pair["a_id"], pair["b_id"]), (pair["b_id"], pair["a_id"])):
            (row,) = rows(bare, f"FROM similarity({a}, {b})")
            for name in ("similarity", "ceiling", "corrected"):
                assert row[name] == (None if pair[name] is None else pytest.approx(pair[name], abs=1e-12))
    # A circuit with itself is 1, corrected too; its ceiling is its reliability.
    mine = {row["circuit_id"]: row for row in db.reliability().rows()}
    (row,) = rows(bare, "FROM similarity(1, 1)")
    assert (row["corrected"], row["ceiling"]) == (1.0, pytest.approx(mine[1]["reliability"], abs=1e-12))
    assert rows(bare, "FROM similarity(1, 6)")[0]["ceiling"] is None  # of another graph


def test_reliabilities_are_those_of_the_database(path: Path, bare: duckdb.DuckDBPyConnection) -> None:
    for expected in Database(path).reliability().rows():
        (row,) = rows(bare, f"FROM reliability({expected['circuit_id']})")
        assert row["n_folds"] == expected["n_folds"]
        for name in ("fold_correlation", "reliability"):
            assert row[name] == (None if expected[name] is None else pytest.approx(expected[name], abs=1e-12))
    assert rows(bare, "FROM reliability(4)")[0]["reliability"] is None  # constant
    assert rows(bare, "FROM reliability(99)") == []


@pytest.mark.parametrize("n", [0, 1, 4, 6, 7, 9])
def test_reliability_by_the_number_of_folds(n: int, tmp_path: Path) -> None:
    """And of halves that contradict each other, of which Spearman-Brown has no value."""
    rng = np.random.default_rng(n)
    row = rng.standard_normal(SHAPE.n_edges).astype(np.float32)
    path, store = tmp_path / "c.duckdb", Store(tmp_path / "c.duckdb")
    store.write(circuit("1+1"), row, folds_of(row, n, n) if n else None)
    store.write(circuit("1+2"), row, np.stack([row, -row]))
    (mine, against) = Database(path).reliability().rows()
    served = [Database(path).sql(f"FROM reliability({number})").rows()[0] for number in (1, 2)]
    with duckdb.connect(str(path), read_only=True) as connection:
        alone = [rows(connection, f"FROM reliability({number})")[0] for number in (1, 2)]
    assert against["reliability"] is None
    for found in (served, alone):
        assert found[1] == {"fold_correlation": pytest.approx(-1, abs=1e-12), "reliability": None, "n_folds": 2}
    for name in ("fold_correlation", "reliability"):
        expected = None if mine[name] is None else pytest.approx(mine[name], abs=1e-12)
        assert (mine[name] is None) == (n < 2)
        assert served[0][name] == expected
        assert alone[0][name] == (None if n > 8 else expected)


@pytest.mark.parametrize(
    ("statement", "served"),
    [
        ("FROM stability()", None),
        ("FROM similarity(1, 2)", {1, 2}),
        ("FROM similarity( 1 , 2 ), SIMILARITY(2,5)", {1, 2, 5}),
        ("FROM similarity(1, 1 + 1)", None),
        ("FROM circuit AS c, similarity(c.circuit_id, 1)", None),
        ("FROM reliability(3)", {3}),
        ("FROM reliability(3), similarity(1, 2)", {1, 2, 3}),
        ("FROM circuit AS c, reliability(c.circuit_id)", None),
        ("FROM similarity(1, 2), families(0.5)", None),
        ("SELECT 'families(0.1)', similarity FROM (SELECT 1 AS similarity)", "nothing"),
    ],
)
def test_only_what_is_asked_for_is_computed(
    statement: str, served: set[int] | str | None, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    compute = macros._parts

    def watched(connection: duckdb.DuckDBPyConnection, circuits: frozenset[int] | None, *, folds: bool) -> object:
        asked.append(circuits)
        assert folds == ("reliability" in statement.lower() or "similarity(" in statement.lower())
        return compute(connection, circuits, folds=folds)

    monkeypatch.setattr(macros, "_parts", watched)
    Database(path).sql(statement)
    assert asked == ([] if served == "nothing" else [served])


def test_an_empty_database_has_no_pairs(tmp_path: Path) -> None:
    Store(tmp_path / "c.duckdb").create()
    db = Database(tmp_path / "c.duckdb")
    for statement in ("FROM stability()", "FROM families(0.5)", "FROM pair_similarities", "FROM containment(1, 2, 3)"):
        assert len(db.sql(statement)) == 0
    nothing = {"similarity": None, "n_edges": 0, "ceiling": None, "corrected": None}
    assert db.sql("FROM similarity(1, 2)").rows() == [nothing]
    assert len(db.sql("FROM reliability(1)")) == 0
