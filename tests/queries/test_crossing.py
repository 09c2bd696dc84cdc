from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from circuitdb.errors import UsageError
from circuitdb.graph import GraphShape
from circuitdb.queries import Database
from circuitdb.queries.coefficients import KINDS, coefficient
from circuitdb.queries.comparison import Comparison
from circuitdb.queries.crossing import crossing
from circuitdb.store import Store
from matrices import score_matrix
from stores import SHAPE, circuit, model

RNG = np.random.default_rng(0)
SIGNALS = RNG.standard_normal((3, SHAPE.n_edges))
STYLES = ("few-shot", "chain-of-thought")


@pytest.fixture(scope="module")
def folds() -> dict[str, np.ndarray]:
    """[subtask, fold, edge] of each prompt style: subtasks 1, 2, 3 few-shot, and 1, 2 by chain of thought."""
    return {
        style: (SIGNALS[:n, None] + 0.7 * RNG.standard_normal((n, 2, SHAPE.n_edges))).astype(np.float32)
        for style, n in zip(STYLES, (3, 2), strict=True)
    }


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory, folds: dict[str, np.ndarray]) -> Database:
    path = tmp_path_factory.mktemp("styles") / "c.duckdb"
    store = Store(path)
    for style, parts in folds.items():
        for i, part in enumerate(parts):
            one = replace(circuit(f"part {i + 1}", task="sports", salt=style), prompt_style=style)
            store.write(one, part.mean(0), part)
    return Database(path)


def test_two_conditions(db: Database, folds: dict[str, np.ndarray]) -> None:
    found = db.between({"prompt_style": STYLES[0]}, {"prompt_style": STYLES[1]}, task="sports")
    few, chain = (parts.mean(1) for parts in folds.values())
    expected = np.array([[spearmanr(a, b).statistic for b in chain] for a in few])
    np.testing.assert_allclose(found.matrix, expected, atol=1e-12)
    halves = [np.array([spearmanr(*part).statistic for part in parts]) for parts in folds.values()]
    ceiling = np.sqrt(np.outer(*(2 * r / (1 + r) for r in halves)))
    np.testing.assert_allclose(found.ceiling, ceiling, atol=1e-12)
    np.testing.assert_allclose(found.corrected, expected / ceiling, atol=1e-12)
    assert found.match.tolist() == [[True, False], [False, True], [False, False]]
    rows = found.rows()
    assert [(row["a"], row["b"], row["same_subtask"]) for row in rows[:3]] == [
        ("part 1", "part 1", True), ("part 1", "part 2", False), ("part 2", "part 1", False),
    ]  # fmt: skip
    assert rows[0]["similarity"] == found.matrix[0, 0]
    assert found.title == "Similarity of 3 circuits to 2 circuits: Spearman's rho, signed scores"
    matches, others = expected[[0, 1], [0, 1]].mean(), expected[~found.match].mean()
    assert f"Circuits of the same subtask: mean similarity {matches:.3f} over 2 pairs" in found.notes[0]
    assert f"Circuits of distinct subtasks: mean similarity {others:.3f} over 4 pairs" in found.notes[1]


def test_wide_has_the_rows_reliability_and_tells_the_columns(db: Database) -> None:
    found = db.between({"prompt_style": STYLES[0]}, {"prompt_style": STYLES[1]}, corrected=True)
    wide = found.wide()
    assert wide.columns == ["label", "reliability", "part 1", "part 2"]
    assert wide.rows()[2]["part 1"] == found.corrected[2, 0]
    assert wide.title.endswith(", corrected for attenuation")
    reliability = found.column_reliability.whole
    assert wide.notes[-1] == f"Reliability of the columns: part 1 {reliability[0]:.2f}, part 2 {reliability[1]:.2f}."
    assert found.wide(corrected=False).rows()[2]["part 1"] == found.matrix[2, 0]


def test_a_circuit_may_be_in_both(db: Database) -> None:
    found = db.between({"circuits": [1, 2]}, {"circuits": [2, 3]})
    assert found.matrix[1, 0] == 1
    assert "1 circuit is in both sets, and compared with itself too." in found.notes


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_block_of_the_whole(kind: str) -> None:
    scores = RNG.standard_normal((5, 40)).astype(np.float32)
    scores[1, 3] = np.nan
    how = Comparison(kind=kind, top=7)
    found = crossing(score_matrix(scores[:2]), score_matrix(scores[2:]), np.zeros((2, 3), bool), how)
    np.testing.assert_allclose(found.matrix, coefficient(kind, scores, top=7).values[:2, 2:], atol=1e-12)
    assert found.n_edges.tolist() == [[40] * 3, [39] * 3]


def test_models_of_other_shapes_are_refused(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    other = GraphShape(3, 3)
    store.write(circuit("a"), RNG.standard_normal(SHAPE.n_edges))
    store.write(circuit("a", of=model("other", other)), RNG.standard_normal(other.n_edges))
    db = Database(tmp_path / "c.duckdb")
    with pytest.raises(UsageError, match="of different graph shapes"):
        db.between({"model": "tiny"}, {"model": "other"})
    with pytest.raises(UsageError, match="There is no model tinny; did you mean tiny"):
        db.between({"model": "tinny"}, {"model": "other"})


def test_a_constant_circuit_and_low_reliability_are_told(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    for i, scores in enumerate((np.ones(SHAPE.n_edges), *RNG.standard_normal((3, SHAPE.n_edges)))):
        store.write(circuit(f"{i}", salt=str(i)), scores, [scores, scores[::-1]])
    found = Database(tmp_path / "c.duckdb").between({"circuits": [1, 2]}, {"circuits": [3, 4]})
    assert np.isnan(found.matrix[0]).all()
    assert any(
        note.startswith("2 pairs of 4 have no similarity: one has the same score everywhere") for note in found.notes
    )
    assert any(note.startswith("The median reliability is") for note in found.notes)


def test_of_an_empty_database(tmp_path: Path) -> None:
    Store(tmp_path / "c.duckdb").create()
    found = Database(tmp_path / "c.duckdb").between({}, {})
    assert len(found) == 0
    assert len(found.wide()) == 0


def test_overlap_has_no_correction(db: Database) -> None:
    with pytest.raises(UsageError, match=r"no correction for noise for overlap .* spearman, pearson, cosine"):
        db.between({"circuits": 1}, {"circuits": 2}, kind="overlap", corrected=True)
    found = db.between({"circuits": 1}, {"circuits": 2}, kind="overlap", top=10)
    assert np.isnan(found.corrected).all()
    assert 0 < found.ceiling[0, 0] < 1
