from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from circuitdb.errors import UsageError
from circuitdb.queries import Database
from circuitdb.store import Store
from stores import SHAPE, addition_scores, circuit, model

COLUMNS = [
    "model", "task", "method", "metric", "on", "n_subtasks", "n_pairs", "stability", "stability_with_diagonal",
    "ceiling", "corrected", "n_pairs_corrected", "median_reliability", "examples_needed", "warning",
]  # fmt: skip


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
    assert row["corrected"] == pytest.approx((rho / ceiling).mean(), abs=1e-12)
    assert row["median_reliability"] == pytest.approx(np.median(list(reliability.values())), abs=1e-12)
    assert row["examples_needed"] == 2  # 8 examples, median 0.8865: 8 x 0.1135 / 0.8865 = 1.02
    assert row["warning"] is None
    assert db.stability(by="model").rows() == found.rows()


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
    assert found.title == "Stability of 3 groups of circuits: mean rho of distinct pairs, signed scores"


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
    assert found.notes == (f"tiny, addition: {said}",)


def test_one_circuit_has_no_stability(tmp_path: Path) -> None:
    Store(tmp_path / "c.duckdb").write(circuit(), *scores(1))
    (row,) = Database(tmp_path / "c.duckdb").stability().rows()
    assert (row["stability"], row["stability_with_diagonal"], row["corrected"], row["n_pairs"]) == (None, None, None, 0)
    assert row["warning"] == "Stability needs two circuits; this group has one."


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
    assert row["warning"] == "2 pairs of 3 left out: constant or missing scores."


def test_no_folds_at_all(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    for a in (1, 2):
        store.write(circuit(f"{a}+1"), scores(a)[0])
    (row,) = Database(tmp_path / "c.duckdb").stability().rows()
    assert (row["ceiling"], row["corrected"], row["median_reliability"], row["examples_needed"]) == (None,) * 4
    assert row["warning"] == (
        "No circuit has a reliability (scored in one piece, without folds): a low similarity may be noise alone."
    )


def test_seeds_of_one_subtask_are_circuits_too(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    for i, subtask in enumerate(("1+1", "1+1", "1+2")):
        store.write(circuit(subtask, salt=str(i)), *scores(1 if i < 2 else 2))
    found = Database(tmp_path / "c.duckdb").stability()
    assert (found.rows()[0]["n_subtasks"], found.rows()[0]["n_pairs"]) == (2, 3)
    assert [note.partition(":")[0] for note in found.notes] == [
        "Circuits 1 (1+1#1), 2 (1+1#2) have identical scores, as if the same seed was run twice", "tiny, addition",
    ]  # fmt: skip
    assert "some subtasks have several circuits (1+1); each circuit counts" in found.notes[1]


def test_other_groupings_are_refused(db: Database) -> None:
    with pytest.raises(UsageError, match="by='digits' is no grouping"):
        db.stability(by="digits")
