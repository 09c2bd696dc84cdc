"""The births of families over alpha, by hand and against persistent homology."""

from __future__ import annotations

import math

import gudhi
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from circuitdb.errors import UsageError
from circuitdb.queries import Database
from circuitdb.queries.births import family_bands, family_births
from circuitdb.queries.similarity import Similarity, similarity
from matrices import score_matrix

Floats = npt.NDArray[np.float64]


def of(pairs: dict[str, float], circuits: str, others: float) -> Similarity:
    """Circuits of one letter each, of which two are as similar as `pairs` says, or as `others`."""
    n = len(circuits)
    values = np.full((n, n), others)
    np.fill_diagonal(values, 1)
    for pair, value in pairs.items():
        i, j = (circuits.index(circuit) for circuit in pair)
        values[i, j] = values[j, i] = value
    return like(values, circuits)


def like(values: Floats, circuits: str) -> Similarity:
    start = similarity(score_matrix(np.zeros((len(values), 2)), labels=list(circuits[: len(values)])))
    fields = {name: getattr(start, name) for name in ("circuit_ids", "labels", "on", "reliability", "n_edges", "title")}
    return Similarity(matrix=values, ceiling=values, corrected=values, **fields)


# Single linkage joins d-e and a-b at 0.9, b-c at 0.8, c-d at 0.3: four births, upwards at 0.3, 0.8, 0.9, 0.9.
LINE = of({"ab": 0.9, "bc": 0.8, "cd": 0.3, "de": 0.9}, "abcde", 0.1)


def test_births_by_hand() -> None:
    found = family_births(LINE)
    assert found.title == "4 births of families over alpha, of 5 circuits (similarity, signed scores)"
    assert found.rows() == [
        {"alpha": 0.3, "n_born": 1, "n_so_far": 1, "share": 0.25},
        {"alpha": 0.8, "n_born": 1, "n_so_far": 2, "share": 0.5},
        {"alpha": 0.9, "n_born": 2, "n_so_far": 4, "share": 1.0},
    ]


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        pytest.param(0.2, (1, 0.3, 0.3, 0.3), id="one, the lowest of those of no width"),
        pytest.param(0.5, (2, 0.8, 0.9, 0.9), id="two: 0.8 from below, but two are born at 0.9"),
        pytest.param(0.51, (3, 0.9, 0.8, 0.9), id="a little more is one more"),
        pytest.param(0.75, (3, 0.9, 0.8, 0.9), id="three"),
        pytest.param(1, (4, 0.9, 0.3, 0.9), id="all"),
    ],
)
def test_bands_by_hand(share: float, expected: tuple[int, float, float, float]) -> None:
    (row,) = family_bands(LINE, share).rows()
    assert (row["n_born"], row["appeared_by"], row["low"], row["high"]) == expected
    assert (row["share"], row["width"]) == (share, pytest.approx(expected[3] - expected[2], abs=1e-15))


def test_classes_are_born_where_every_pair_parts() -> None:
    # Complete linkage: a-b and d-e at 0.9; c joins no pair above 0.1 then, and all join at 0.1.
    rows = family_births(LINE, every_pair=True).rows()
    assert [(row["alpha"], row["n_born"], row["share"]) for row in rows] == [(0.1, 2, 0.5), (0.9, 2, 1.0)]
    (row,) = family_bands(LINE, [0.5], every_pair=True).rows()
    assert (row["appeared_by"], row["low"], row["high"]) == (0.1, 0.1, 0.1)


def test_what_is_always_apart_is_never_born() -> None:
    values = np.array([[1, 0.4, math.nan], [0.4, 1, math.nan], [math.nan, math.nan, 1]])
    assert family_births(like(values, "abc")).rows() == [{"alpha": 0.4, "n_born": 1, "n_so_far": 1, "share": 1.0}]


@pytest.mark.parametrize("n", [0, 1])
def test_of_little_or_nothing(n: int) -> None:
    alone = like(np.eye(n), "a")
    assert family_births(alone).rows() == []
    for row in family_bands(alone).rows():
        assert [row[name] for name in ("n_born", "appeared_by", "low", "high", "width")] == [0, None, None, None, None]


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 20), st.integers(0, 10_000), st.sampled_from([0.0, 0.125]), st.floats(0.01, 1))
def test_births_are_the_deaths_of_persistent_homology(n: int, seed: int, step: float, share: float) -> None:
    values = np.random.default_rng(seed).uniform(-0.5, 1, (n, n))
    values = np.triu(np.round(values / step) * step if step else values, 1)
    values += values.T + np.eye(n)
    simplices = gudhi.RipsComplex(distance_matrix=1 - values).create_simplex_tree(max_dimension=1)
    simplices.compute_persistence(homology_coeff_field=2, min_persistence=-1)
    deaths = simplices.persistence_intervals_in_dimension(0)[:, 1]
    born = 1 - deaths[np.isfinite(deaths)]
    whole = like(values, "abcdefghijklmnopqrstu")
    for row in family_births(whole).rows():
        assert row["share"] == pytest.approx((born <= float(str(row["alpha"])) + 1e-12).mean(), abs=1e-12)
    (band,) = family_bands(whole, share).rows()
    by = float(str(band["appeared_by"]))
    assert (born <= by + 1e-12).mean() >= share - 1e-9  # by then it has appeared,
    assert (born < by - 1e-12).mean() < share  # and not before


@pytest.mark.parametrize("shares", [0, 1.5, math.nan, [0.5, -1], "0.5", [], None])
def test_impossible_shares_are_refused(shares: float) -> None:
    with pytest.raises(UsageError, match="share"):
        family_bands(LINE, shares)


def test_of_a_database(db: Database) -> None:
    births, sweep = db.family_births().rows(), db.family_sweep().rows()
    assert [row["alpha"] for row in births] == [row["alpha"] for row in sweep]
    assert births[-1]["n_so_far"] == 8
    assert db.family_bands(0.8).notes[0] == db.family_births().notes[0] == db.family_sweep().notes[0]
    (row,) = db.family_bands(0.8).rows()
    assert f"between alpha = {row['low']:.3f} and {row['high']:.3f}" in db.barcode(share=0.8).notes[-1]
