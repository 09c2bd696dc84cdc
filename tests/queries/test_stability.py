from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from circuitdb.errors import UsageError
from circuitdb.queries import Database
from circuitdb.queries.resampling import NOMINAL
from circuitdb.queries.stability import over_subtasks
from circuitdb.store import Store
from stores import SHAPE, addition_scores, circuit, model

COLUMNS = [
    "model", "task", "method", "metric", "on", "n_subtasks", "n_pairs", "stability", "low", "high",
    "stability_with_diagonal", "ceiling", "corrected", "corrected_low", "corrected_high", "n_pairs_corrected",
    "median_reliability", "examples_needed", "warning",
]  # fmt: skip


FEW = "An interval takes 4 subtasks or more; low and high are NULL for fewer."


def scores(seed: int, noise: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """A circuit's scores and its two folds: the more noise, the less they agree."""
    rng = np.random.default_rng(seed)
    folds = rng.standard_normal(SHAPE.n_edges) + noise * rng.standard_normal((2, SHAPE.n_edges))
    return folds.mean(0), folds


def test_one_group(db: Database) -> None:
    cells = addition_scores()
    reliability = {}
    for cell, (_, folds) in cells.items():
        r = spearmanr(folds[0], folds[1]).statistic
        reliability[cell] = 2 * r / (1 + r)
    pairs = list(combinations(cells, 2))
    rho = np.array([spearmanr(cells[a][0], cells[b][0]).statistic for a, b in pairs])
    ceiling = np.array([(reliability[a] * reliability[b]) ** 0.5 for a, b in pairs])
    found = db.stability()
    assert found.columns == COLUMNS
    (row,) = found.rows()
    assert (row["model"], row["task"], row["method"], row["metric"], row["on"]) == (
        "tiny", "addition", "eap-ig", "kl", "signed",
    )  # fmt: skip
    assert (row["n_subtasks"], row["n_pairs"], row["n_pairs_corrected"]) == (9, 36, 36)
    assert row["stability"] == pytest.approx(rho.mean(), abs=1e-12)
    assert row["stability_with_diagonal"] == pytest.approx((2 * rho.sum() + 9) / 81, abs=1e-12)
    assert row["ceiling"] == pytest.approx(ceiling.mean(), abs=1e-12)
    assert row["corrected"] == pytest.approx(rho.mean() / ceiling.mean(), abs=1e-12)
    assert row["median_reliability"] == pytest.approx(np.median(list(reliability.values())), abs=1e-12)
    assert row["examples_needed"] == 2  # 8 examples, median 0.8865: 8 x 0.1135 / 0.8865 = 1.02
    assert row["warning"] is None


def test_groups_are_rows_and_say_what_parts_them(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    for style, shots, model_name, seed in (
        ("few-shot", 3, "tiny", 0),
        ("zero-shot", 0, "tiny", 10),
        ("few-shot", 3, "big", 20),
    ):
        for a in (1, 2, 3):
            one = circuit(f"{a}+1", {"a": a}, of=model(model_name), salt=style)
            store.write(replace(one, prompt_style=style, shots=shots), *scores(seed + a))
    found = Database(tmp_path / "c.duckdb").stability()
    assert found.columns == [*COLUMNS[:4], "prompt_style", "shots", *COLUMNS[4:]]
    groups = [(row["model"], row["prompt_style"], row["shots"], row["n_pairs"]) for row in found.rows()]
    assert groups == [("big", "few-shot", 3, 3), ("tiny", "few-shot", 3, 3), ("tiny", "zero-shot", 0, 3)]
    assert found.title == "Stability of 3 groups of circuits: mean rho over pairs of distinct subtasks, signed scores"


def test_unreliable_circuits_are_called_so(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    for a in (1, 2, 3):
        store.write(circuit(f"{a}+1", n_examples=16), *scores(a, noise=1.5))
    found = Database(tmp_path / "c.duckdb").stability()
    (row,) = found.rows()
    median = row["median_reliability"]
    assert isinstance(median, float)
    assert 0 < median < 0.5
    needed = int(np.ceil(16 * (1 - median) / median))
    said = (
        f"The median reliability is {median:.2f}, so most of what differs between circuits is noise; about {needed} "
        "examples a circuit would bring the median to 0.5."
    )
    assert row["examples_needed"] == needed
    assert row["warning"] == said
    assert found.notes == (FEW,)  # the table has the rest


def test_one_circuit_has_no_stability(tmp_path: Path) -> None:
    Store(tmp_path / "c.duckdb").write(circuit(), *scores(1))
    (row,) = Database(tmp_path / "c.duckdb").stability().rows()
    assert (row["stability"], row["stability_with_diagonal"], row["corrected"], row["n_pairs"]) == (None, None, None, 0)
    assert row["warning"] == "Stability needs circuits of two subtasks; this group has one."


def test_constant_and_foldless_circuits_are_left_out_with_a_word(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    store.write(circuit("1+1"), *scores(1))
    store.write(circuit("1+2"), *scores(2))
    store.write(circuit("1+3"), np.zeros(SHAPE.n_edges))
    (row,) = Database(tmp_path / "c.duckdb").stability().rows()
    assert (row["n_pairs"], row["n_pairs_corrected"]) == (1, 1)
    assert row["stability"] == pytest.approx(
        spearmanr(scores(1)[0], scores(2)[0]).statistic, abs=1e-5
    )  # stored as float32
    assert row["warning"] == "2 of 3 pairs left out: constant or missing scores."


def test_no_folds_at_all(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    for a in (1, 2):
        store.write(circuit(f"{a}+1"), scores(a)[0])
    (row,) = Database(tmp_path / "c.duckdb").stability().rows()
    assert (row["ceiling"], row["corrected"], row["median_reliability"], row["examples_needed"]) == (None,) * 4
    assert row["n_pairs_corrected"] == 0
    assert row["warning"] == (
        "1 of 1 pair left out of ceiling and corrected for want of a positive reliability. Fewer than half of the "
        "pairs have a ceiling, so corrected is NULL. No circuit has a reliability (scored in one piece, without "
        "folds): a low similarity may be noise alone."
    )


def test_circuits_of_one_subtask_are_no_pair(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    parts = [scores(seed) for seed in (1, 1, 2, 3)]
    for i, (subtask, part) in enumerate(zip(("1+1", "1+1", "1+2", "1+3"), parts, strict=True)):
        store.write(circuit(subtask, salt=str(i)), *part)
    found = Database(tmp_path / "c.duckdb").stability()
    (row,) = found.rows()
    pairs = [(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    rho = np.array([spearmanr(parts[a][0], parts[b][0]).statistic for a, b in pairs])
    halves = np.array([spearmanr(*part[1]).statistic for part in parts])
    whole = 2 * halves / (1 + halves)
    ceiling = np.array([(whole[a] * whole[b]) ** 0.5 for a, b in pairs])
    assert (row["n_subtasks"], row["n_pairs"], row["n_pairs_corrected"]) == (3, 5, 5)
    assert row["stability"] == pytest.approx(rho.mean(), abs=1e-5)  # stored as float32
    assert row["ceiling"] == pytest.approx(ceiling.mean(), abs=1e-5)
    assert row["corrected"] == pytest.approx(rho.mean() / ceiling.mean(), abs=1e-5)
    assert row["stability_with_diagonal"] == pytest.approx((2 * rho.sum() + 4) / 14, abs=1e-5)
    said = (
        "Some subtasks have several circuits (1+1): 1 pair within a subtask left out, since stability is over distinct "
        "ones."
    )
    assert row["warning"] == said
    assert found.notes[1:] == (FEW,)
    assert found.notes[0].startswith("Circuits 1 (1+1#1), 2 (1+1#2) have identical scores")


def test_one_subtask_twice_has_no_stability(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    for i in (1, 2):
        store.write(circuit("1+1", salt=str(i)), *scores(i))
    (row,) = Database(tmp_path / "c.duckdb").stability().rows()
    assert (row["n_subtasks"], row["n_pairs"]) == (1, 0)
    assert (row["stability"], row["stability_with_diagonal"], row["ceiling"], row["corrected"]) == (None,) * 4
    assert "Stability needs circuits of two subtasks; this group has one." in str(row["warning"])


def test_other_numbers_of_examples_seeds_and_formats_are_rows(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    runs = [(16, 0, "float32"), (64, 0, "float32"), (16, 5_000_000_000, "float32"), (16, 0, "bfloat16")]
    for i, (examples, seed, dtype) in enumerate(runs):
        for a in (1, 2):
            one = circuit(f"{a}+1", salt=str(i), n_examples=examples)
            store.write(replace(one, seed=seed, dtype=dtype), *scores(10 * i + a))
    found = Database(tmp_path / "c.duckdb").stability()
    assert found.columns == [*COLUMNS[:4], "seed", "examples", "dtype", *COLUMNS[4:]]
    assert [(row["examples"], row["seed"], row["dtype"], row["n_pairs"]) for row in found.rows()] == [
        (16, 0, "bfloat16", 1), (16, 0, "float32", 1), (64, 0, "float32", 1), (16, 5_000_000_000, "float32", 1),
    ]  # fmt: skip
    assert len(Database(tmp_path / "c.duckdb").stability(examples=64)) == 1


def test_a_skipped_question_parts_no_group(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    store.write(circuit("1+1", n_examples=16), *scores(1))
    store.write(replace(circuit("1+2", n_examples=15), n_skipped=1), *scores(2))
    (row,) = Database(tmp_path / "c.duckdb").stability().rows()
    assert row["n_pairs"] == 1


# Ranks 1..75 and folds of them: a fold that is the whole has reliability 1, one that is it reversed has none.
UP = np.arange(SHAPE.n_edges, dtype=np.float32)


@pytest.mark.parametrize(
    ("lost", "n_both", "note"),
    [
        (1, 3, "3 of 6 pairs left out of ceiling and corrected for want of a positive reliability."),
        (2, 1, "5 of 6 pairs left out of ceiling and corrected for want of a positive reliability. Fewer than half of "
         "the pairs have a ceiling, so corrected is NULL."),
    ],
    ids=["half", "fewer"],
)  # fmt: skip
def test_corrected_and_ceiling_are_over_the_same_pairs(tmp_path: Path, lost: int, n_both: int, note: str) -> None:
    rng = np.random.default_rng(0)
    wholes = [UP + 20 * rng.standard_normal(UP.size).astype(np.float32) for _ in range(4)]
    noisy = [whole + 30 * rng.standard_normal(UP.size).astype(np.float32) for whole in wholes]
    store = Store(tmp_path / "c.duckdb")
    reliability = []
    for i, (whole, fold) in enumerate(zip(wholes, noisy, strict=True)):
        other = -fold if i < lost else whole
        store.write(circuit(f"{i}"), whole, [fold, other])
        r = spearmanr(fold, other).statistic
        reliability.append(2 * r / (1 + r) if r > 0 else np.nan)
    pairs = list(combinations(range(4), 2))
    rho = np.array([spearmanr(wholes[a], wholes[b]).statistic for a, b in pairs])
    ceiling = np.sqrt([reliability[a] * reliability[b] for a, b in pairs])
    has = ~np.isnan(ceiling)
    found = Database(tmp_path / "c.duckdb").stability()
    (row,) = found.rows()
    assert (row["n_pairs"], row["n_pairs_corrected"]) == (6, n_both)
    assert row["stability"] == pytest.approx(rho.mean(), abs=1e-12)
    assert row["ceiling"] == pytest.approx(ceiling[has].mean(), abs=1e-12)
    expected = rho[has].mean() / ceiling[has].mean()
    assert row["corrected"] == (pytest.approx(expected, abs=1e-12) if lost == 1 else None)
    assert row["warning"] == note
    assert found.notes == (NOMINAL,)


def test_by_a_parameter(db: Database) -> None:
    cells = {cell: whole for cell, (whole, _) in addition_scores().items()}
    found = db.stability(by="digits_a")
    assert found.columns == [*COLUMNS[:4], "digits_a", *COLUMNS[4:]]
    rows = found.rows()
    assert [(row["digits_a"], row["n_subtasks"], row["n_pairs"]) for row in rows] == [(1, 3, 3), (2, 3, 3), (3, 3, 3)]
    for row in rows:
        a = row["digits_a"]
        rho = [spearmanr(cells[a, b], cells[a, c]).statistic for b, c in combinations((1, 2, 3), 2)]  # type: ignore[index]
        assert row["stability"] == pytest.approx(np.mean(rho), abs=1e-12)
    both = db.stability(by=["digits_a", "digits_b"]).rows()
    assert [(row["digits_a"], row["digits_b"], row["n_pairs"]) for row in both][:4] == [
        (1, 1, 0), (1, 2, 0), (1, 3, 0), (2, 1, 0),
    ]  # fmt: skip
    assert [row["model"] for row in db.stability(by="model").rows()] == ["tiny"]
    with pytest.raises(UsageError, match="has a parameter 'digit_a'; did you mean digits_a"):
        db.stability(by="digit_a")


def test_parameters_that_only_some_subtasks_have(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    for i, parameters in enumerate(({"terms": 2}, {"terms": 2}, {}, {})):
        store.write(circuit(f"{i}", parameters), *scores(i))
    rows = Database(tmp_path / "c.duckdb").stability(by="terms").rows()
    assert [(row["terms"], row["n_pairs"]) for row in rows] == [(None, 1), (2, 1)]


def test_the_interval_of_resampled_subtasks(db: Database) -> None:
    (row,) = db.stability().rows()
    assert row["low"] < row["stability"] < row["high"]  # type: ignore[operator]
    assert row["corrected_low"] < row["corrected"] < row["corrected_high"]  # type: ignore[operator]
    matrix = db.similarity().matrix
    assert (row["low"], row["high"]) == pytest.approx(
        over_subtasks(matrix, None, ~np.eye(9, dtype=bool), np.arange(9)), abs=1e-12
    )
    assert db.stability().title == (
        "Stability of 1 group of circuits: mean rho over pairs of distinct subtasks, signed scores, with 95% intervals "
        "from resampled subtasks"
    )
    assert db.stability().notes == (NOMINAL,)
    few = db.stability(circuits=[1, 2, 3]).rows()[0]
    assert (few["low"], few["high"], few["corrected_low"]) == (None, None, None)


def test_the_interval_of_folds_left_out(tmp_path: Path, db: Database) -> None:
    store = Store(tmp_path / "c.duckdb")
    rng = np.random.default_rng(0)
    common = rng.standard_normal(SHAPE.n_edges)
    for a in range(3):
        folds = common + rng.standard_normal(SHAPE.n_edges) + rng.standard_normal((4, SHAPE.n_edges))
        store.write(circuit(f"{a}"), folds.mean(0), folds)
    found = Database(tmp_path / "c.duckdb").stability(over="folds")
    (row,) = found.rows()
    assert row["low"] < row["stability"] < row["high"]  # type: ignore[operator]
    assert row["low"] + row["high"] == pytest.approx(2 * row["stability"], abs=1e-12)  # type: ignore[operator]
    assert found.title.endswith("signed scores, with 95% intervals from folds left out")
    two_folds = db.stability(over="folds").rows()[0]
    assert (two_folds["low"], two_folds["corrected_high"]) == (None, None)
    assert db.stability(over="folds").notes == (
        "An interval takes three folds of every circuit's examples; low and high are NULL for fewer.",
    )
    with pytest.raises(UsageError, match="come from resampled subtasks or folds, not from 'pairs'"):
        db.stability(over="pairs")


def test_of_another_kind(db: Database) -> None:
    found = db.stability(kind="overlap", top=10, on="magnitude")
    (row,) = found.rows()
    matrix = db.similarity(kind="overlap", top=10).matrix
    assert row["stability"] == pytest.approx(matrix[np.triu_indices(9, 1)].mean(), abs=1e-12)
    assert (row["corrected"], row["corrected_low"], row["n_pairs_corrected"]) == (None, None, 0)
    assert row["ceiling"] is not None
    assert any(note.startswith("For overlap (Jaccard) there is no correction") for note in found.notes)
    assert "mean overlap (Jaccard), 10 strongest over pairs of distinct subtasks, magnitude scores" in found.title
