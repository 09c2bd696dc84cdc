from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import pearsonr, spearmanr

from circuitdb.errors import UsageError
from circuitdb.queries import Database
from circuitdb.queries.coefficients import coefficient
from circuitdb.queries.comparison import Comparison
from circuitdb.queries.reliability import examples_needed, reliabilities, spearman_brown, splits
from matrices import score_matrix
from stores import addition_scores

EQUAL = "the scores of a fold are all equal or missing"


@pytest.mark.parametrize(
    ("r", "factor", "expected"),
    [
        # Measured at 16 examples, stepped up to 32 and 64: 2 x 0.134 / 1.134, 4 x 0.134 / 1.402, and so on.
        (0.134, 2, 0.236),
        (0.134, 4, 0.382),
        (0.185, 2, 0.312),
        (0.185, 4, 0.476),
        (0.5, 2, 2 / 3),
        (1.0, 7, 1.0),
        (0.0, 2, 0.0),
        (-0.2, 2, -0.5),
    ],
)
def test_spearman_brown(r: float, factor: int, expected: float) -> None:
    assert spearman_brown(r, factor) == pytest.approx(expected, abs=6e-4)


def test_spearman_brown_has_no_value_for_contradicting_folds() -> None:
    assert math.isnan(spearman_brown(-1.0, 2))
    assert math.isnan(spearman_brown(-1.0 + 1e-15, 2))  # but for rounding
    assert math.isnan(spearman_brown(-0.6, 3))


@pytest.mark.parametrize(
    ("r", "n", "expected"),
    [
        # 16 x (1 - 0.134) / 0.134 = 103.4
        pytest.param(0.134, 16, 104, id="facts"),
        pytest.param(0.5, 16, 16, id="just-enough"),
        pytest.param(0.8, 16, 4, id="more-than-enough"),
        pytest.param(1.0, 16, 1, id="perfect"),
        pytest.param(0.0, 16, None, id="none"),
        pytest.param(-0.1, 16, None, id="negative"),
        pytest.param(math.nan, 16, None, id="unknown"),
        pytest.param(0.5, None, None, id="n-unknown"),
    ],
)
def test_examples_needed(r: float, n: int | None, expected: int | None) -> None:
    assert examples_needed(r, n) == expected


def test_examples_needed_is_the_inverse_of_spearman_brown() -> None:
    needed = examples_needed(0.2, 1_000_000, wanted=0.7)
    assert needed is not None
    assert spearman_brown(0.2, needed / 1_000_000) == pytest.approx(0.7, abs=1e-6)


@pytest.mark.parametrize("wanted", [0.0, 1.0, -1.0])
def test_impossible_wishes_are_refused(wanted: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        examples_needed(0.5, 16, wanted)


def all_splits(n_folds: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every pair of disjoint halves, by trying all."""
    half = list(combinations(range(n_folds), n_folds // 2))
    return [(a, b) for a, b in combinations(half, 2) if not set(a) & set(b)]


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_reliability_is_over_all_splits_into_halves_stepped_up(k: int) -> None:
    rng = np.random.default_rng(k)
    folds = [np.round(rng.standard_normal(200) + rng.standard_normal((k, 200)), 1) for _ in range(3)]
    found = reliabilities(score_matrix([part.mean(0) for part in folds], folds))
    factor = k / (k // 2)
    for i, part in enumerate(np.asarray(folds, np.float32)):
        r = np.mean([spearmanr(part[list(a)].mean(0), part[list(b)].mean(0)).statistic for a, b in all_splits(k)])
        assert found.folds[i] == pytest.approx(r, abs=1e-12)
        assert found.whole[i] == pytest.approx(factor * r / (1 + (factor - 1) * r), abs=1e-12)
    assert found.reasons == (None, None, None)
    assert found.median == pytest.approx(float(np.median(found.whole)))


@pytest.mark.parametrize(("k", "n"), [(0, 0), (1, 0), (2, 1), (3, 3), (4, 3), (5, 15), (6, 10), (7, 70), (8, 35)])
def test_splits_are_all_there_are(k: int, n: int) -> None:
    found = {frozenset((tuple(sorted(a)), tuple(sorted(b)))) for a, b in splits(k)}
    assert len(found) == len(splits(k)) == n
    assert found == {frozenset(pair) for pair in all_splits(k)}


def test_of_very_many_splits_a_fixed_sample_is_taken() -> None:
    found = splits(16)  # 6,435 in all
    assert found == splits(16)
    assert len(found) == 100
    assert all(len(a) == len(b) == 8 and not set(a) & set(b) for a, b in found)


def test_pearson_reliability_of_simulated_noise_is_the_true_one() -> None:
    # Scores are signal of variance 1 and, over all four folds, noise of variance 2.25 / 4: 1 / 1.5625 = 0.64.
    rng = np.random.default_rng(0)
    folds = rng.standard_normal(200_000) + 1.5 * rng.standard_normal((4, 200_000))
    found = reliabilities(score_matrix([folds.mean(0)], [folds]), Comparison(kind="pearson"))
    assert found.whole[0] == pytest.approx(0.64, abs=0.005)


@pytest.mark.parametrize("kind", ["kendall", "overlap", "kappa"])
def test_what_has_no_step_up_is_the_halves_agreement(kind: str) -> None:
    rng = np.random.default_rng(1)
    folds = (rng.standard_normal(60) + rng.standard_normal((2, 60))).astype(np.float32)
    found = reliabilities(score_matrix([folds.mean(0)], [folds]), Comparison(kind=kind, top=10))
    expected = coefficient(kind, folds[:1], folds[1:], top=10).values[0, 0]
    assert found.whole[0] == found.folds[0] == expected
    assert not found.correctable


@pytest.mark.parametrize(
    ("folds", "value", "reason"),
    [
        pytest.param(np.empty((0, 4)), None, "scored in one piece, without folds", id="none"),
        pytest.param([[1, 2, 3, 4]], None, "only one fold", id="one"),
        pytest.param([[1, 2, 3, 4], [0, 0, 0, 0]], None, EQUAL, id="constant"),
        pytest.param([[1, 2, 3, 4], [np.nan] * 4], None, EQUAL, id="missing"),
        pytest.param([[1, 2, 3, 4], [4, 3, 2, 1]], None, "the folds contradict each other (correlation -1.000): "
                     "Spearman-Brown has no value", id="contrary"),
        # Ranks 1 2 3 4 and 2 4 1 3 do not correlate at all; 1 2 3 4 and 3 4 1 2 do at -0.6, so -1.2 / 0.4.
        pytest.param([[1, 2, 3, 4], [2, 4, 1, 3]], 0.0, None, id="zero"),
        pytest.param([[1, 2, 3, 4], [3, 4, 1, 2]], -3.0, None, id="negative"),
        # Over the three edges that both folds have: rho = 0.5, so 1 / 1.5.
        pytest.param([[1, 2, 3, np.nan], [1, 3, 2, 9]], 2 / 3, None, id="null-scores"),
    ],
)  # fmt: skip
def test_reliability_or_the_reason_why_not(folds: npt.ArrayLike, value: float | None, reason: str | None) -> None:
    found = reliabilities(score_matrix([[1, 2, 3, 4]], [folds]))
    assert found.reasons == (reason,)
    assert (None if math.isnan(found.whole[0]) else pytest.approx(found.whole[0])) == value


def test_table(db: Database) -> None:
    folds = addition_scores()[1, 2][1]
    r = float(spearmanr(folds[0], folds[1]).statistic)
    whole = 2 * r / (1 + r)
    row = db.reliability().rows()[1]
    assert {key: row[key] for key in ("circuit_id", "model", "task", "subtask", "method", "metric", "on")} == {
        "circuit_id": 2, "model": "tiny", "task": "addition", "subtask": "1+2", "method": "eap-ig", "metric": "kl",
        "on": "signed",
    }  # fmt: skip
    assert (row["n_examples"], row["n_folds"], row["reason"]) == (8, 2, None)
    assert row["fold_correlation"] == pytest.approx(r, abs=1e-12)
    assert row["reliability"] == pytest.approx(whole, abs=1e-12)
    assert row["examples_needed"] == math.ceil(8 * (1 - whole) / whole)


def test_magnitudes_have_a_reliability_of_their_own(db: Database) -> None:
    folds = np.abs(addition_scores()[1, 2][1])
    r = float(spearmanr(folds[0], folds[1]).statistic)
    assert db.reliability(on="magnitude", circuits=2).rows()[0]["fold_correlation"] == pytest.approx(r, abs=1e-12)


def test_other_kinds_edges_and_wishes(db: Database) -> None:
    folds = addition_scores()[1, 2][1]
    r = float(pearsonr(folds[0], folds[1]).statistic)
    whole = 2 * r / (1 + r)
    found = db.reliability(kind="pearson", wanted=0.95, circuits=2)
    (row,) = found.rows()
    assert row["reliability"] == pytest.approx(whole, abs=1e-6)
    assert row["examples_needed"] == math.ceil(8 * 0.95 * (1 - whole) / (whole * 0.05))
    assert found.title == (
        "Reliability of 1 circuit, Pearson's r, signed scores; examples_needed for a reliability of 0.95"
    )
    overlap = db.reliability(kind="overlap", top=10, circuits=2)
    assert overlap.rows()[0]["examples_needed"] is None
    assert overlap.notes[-1].startswith("For overlap (Jaccard) there is no correction for noise")
    with pytest.raises(UsageError, match="between 0 and 1"):
        db.reliability(wanted=1.0)
