from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from circuitdb.queries import Database, Result
from circuitdb.queries.reliability import spearman_brown
from circuitdb.queries.similarity import similarity
from matrices import score_matrix
from stores import addition_scores

A, B = [1.0, 2, 2, 3, 4], [2.0, 2, 5, 1, 7]
UP, DOWN = [1.0, 2, 3, 4, 5], [5.0, 4, 3, 2, 1]
# Folds with rho = 0.9 and 0.5 (squared rank differences 2 and 10, n = 5: 1 - 6 x 2 / 120, 1 - 6 x 10 / 120).
GOOD, FAIR = [UP, [1.0, 2, 3, 5, 4]], [UP, [3.0, 2, 1, 5, 4]]
POOR, CONTRARY = [UP, [2.0, 5, 1, 3, 4]], [UP, [5.0, 3, 4, 1, 2]]  # 1 - 6 x 16 / 120 = 0.2; 1 - 6 x 36 / 120 = -0.8


def test_plain_ceiling_and_corrected() -> None:
    found = similarity(score_matrix([A, B], [GOOD, FAIR], labels=["a", "b"]))
    first, second = spearman_brown(0.9, 2), spearman_brown(0.5, 2)
    ceiling = (first * second) ** 0.5
    np.testing.assert_allclose(found.reliabilities, [first, second], atol=1e-12)
    assert found.result().rows() == [
        {
            "a_id": 1, "a": "a", "b_id": 2, "b": "b",
            "similarity": pytest.approx(11 / 38, abs=1e-12),
            "ceiling": pytest.approx(ceiling, abs=1e-12),
            "corrected": pytest.approx(11 / 38 / ceiling, abs=1e-12),
            "n_edges": 5, "reason": None,
        }
    ]  # fmt: skip
    np.testing.assert_array_equal(np.diag(found.corrected), 1)
    np.testing.assert_array_equal(found.corrected, found.corrected.T)
    assert found.notes == ()
    assert found.reasons == {}


def test_wide_is_the_matrix() -> None:
    found = similarity(score_matrix([A, B], [GOOD, FAIR], labels=["a", "b"]))
    plain, corrected = found.wide(), found.wide(corrected=True)
    assert plain.columns == corrected.columns == ["label", "reliability", "a", "b"]
    assert [row["label"] for row in plain.rows()] == ["a", "b"]
    assert plain.rows()[0]["b"] == plain.rows()[1]["a"] == pytest.approx(11 / 38)
    assert corrected.rows()[0]["b"] == found.corrected[0, 1]
    assert corrected.title == "Similarity of 2 circuits: Spearman's rho, signed scores, corrected for attenuation"
    assert similarity(score_matrix([A, B], [GOOD, FAIR]), corrected=True).wide().title == corrected.title


def test_a_correction_over_1_is_shown_and_explained() -> None:
    found = similarity(score_matrix([UP, UP], [FAIR, FAIR]))
    assert found.corrected[0, 1] == pytest.approx(1 / spearman_brown(0.5, 2))
    assert found.notes[-1].startswith("1 corrected similarity is over 1: a reliability is an estimate too")


@pytest.mark.parametrize(
    ("scores", "folds", "reason"),
    [
        ([UP, [3] * 5], [GOOD, GOOD], "the scores of b are all equal"),
        ([[2] * 5, [3] * 5], [GOOD, GOOD], "the scores of a and of b are all equal"),
        ([[1, 2, np.nan, np.nan, np.nan], [np.nan, 2, 3, 4, 5]], [GOOD, GOOD],
         "fewer than two edges have a score in both"),
        ([[1, 2, 2, 2, 2], [np.nan, 2, 3, 4, 5]], [GOOD, GOOD],
         "the scores of one of them, over the edges that both have, are all equal"),
        ([UP, DOWN], [GOOD, [UP]], "no corrected value: b has no reliability (only one fold)"),
        ([UP, DOWN], [np.empty((0, 5)), GOOD],
         "no corrected value: a has no reliability (scored in one piece, without folds)"),
        ([UP, DOWN], [GOOD, CONTRARY], "no corrected value: the folds of b do not agree (reliability -8.000)"),
    ],
    ids=["constant", "two-constants", "no-common-edge", "constant-in-common", "one-fold", "no-folds", "contrary-folds"],
)  # fmt: skip
def test_null_with_a_reason(scores: list[list[float]], folds: list[list[list[float]]], reason: str) -> None:
    found = similarity(score_matrix(scores, folds, labels=["a", "b"]))
    (row,) = found.rows()
    assert row["reason"] == reason
    assert row["corrected"] is None
    assert (row["similarity"] is None) == (not reason.startswith("no corrected value"))


def test_low_reliability_is_said_with_the_cure() -> None:
    found = similarity(score_matrix([UP, DOWN], [POOR, POOR], n_examples=16))
    # 0.2 stepped up is 1/3; 16 examples x 2 make 0.5.
    assert found.notes == (
        "The median reliability is 0.33, so most of what differs between circuits is noise; about 32 examples a "
        "circuit would bring the median to 0.5.",
    )


def test_it_answers_like_any_result() -> None:
    found = similarity(score_matrix([A, B], [GOOD, FAIR]))
    assert isinstance(found.result(), Result)
    assert found.arrow() is found.table
    assert len(found) == 1
    assert found.columns == ["a_id", "a", "b_id", "b", "similarity", "ceiling", "corrected", "n_edges", "reason"]
    assert found.df().shape == (1, 9)
    assert repr(found).startswith("Similarity of 2 circuits")


@pytest.mark.parametrize("n", [0, 1])
def test_little_or_nothing_to_compare(n: int) -> None:
    found = similarity(score_matrix(np.ones((n, 5)) * UP, [GOOD] * n))
    assert len(found) == 0
    assert len(found.wide()) == n
    assert found.notes == ()


def test_of_a_database(db: Database) -> None:
    cells = [scores for scores, _ in addition_scores().values()]
    found = db.similarity(subtask=["1+1", "2+2", "3+3", "1+2"])
    assert found.labels == ("1+1", "1+2", "2+2", "3+3")
    chosen = [cells[i] for i in (0, 1, 4, 8)]
    np.testing.assert_allclose(
        found.matrix, [[spearmanr(a, b).statistic for b in chosen] for a in chosen], rtol=0, atol=1e-12
    )
    magnitudes = db.similarity(circuits=[1, 2], on="magnitude")
    expected = spearmanr(np.abs(cells[0]), np.abs(cells[1])).statistic
    assert magnitudes.matrix[0, 1] == pytest.approx(expected, abs=1e-12)
    assert magnitudes.title == "Similarity of 2 circuits: Spearman's rho, magnitude scores"
