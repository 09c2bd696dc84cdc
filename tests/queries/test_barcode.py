from __future__ import annotations

import math
from dataclasses import replace

import gudhi
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from circuitdb.errors import UsageError
from circuitdb.queries import Database
from circuitdb.queries.barcode import band, barcode, bars
from circuitdb.queries.families import components
from circuitdb.queries.linkage import tree
from circuitdb.queries.similarity import Similarity, similarity
from matrices import score_matrix

Floats = npt.NDArray[np.float64]
# a - b 0.9, c - d 0.8, b - c 0.5, all others lower; e has no similarity at all.
CHAIN = np.array(
    [
        [1, 0.9, 0.1, 0.0, math.nan],
        [0.9, 1, 0.5, 0.2, math.nan],
        [0.1, 0.5, 1, 0.8, math.nan],
        [0.0, 0.2, 0.8, 1, math.nan],
        [math.nan] * 5,
    ]
)


def of(values: Floats) -> Similarity:
    """A similarity object with the given matrix, whatever scores there were."""
    start = similarity(score_matrix(np.zeros((len(values), 2)), labels=list("abcdefghijkl"[: len(values)])))
    fields = {name: getattr(start, name) for name in ("circuit_ids", "labels", "on", "reliability", "n_edges", "title")}
    return Similarity(matrix=values, ceiling=values, corrected=values, **fields)


def random_similarity(n: int, seed: int, step: float) -> Floats:
    values = np.random.default_rng(seed).uniform(-0.5, 1, (n, n))
    values = np.round(values / step) * step if step else values
    values = np.triu(values, 1) + np.triu(values, 1).T
    np.fill_diagonal(values, 1)
    return values


def persistence(values: Floats) -> list[float]:
    """Deaths of the H0 classes of the Vietoris-Rips filtration of 1 - similarity, by gudhi; infinity for the last."""
    complex_ = gudhi.RipsComplex(distance_matrix=1 - values)
    simplices = complex_.create_simplex_tree(max_dimension=1)
    simplices.compute_persistence(homology_coeff_field=2, min_persistence=-1)
    pairs = simplices.persistence_intervals_in_dimension(0)
    assert (pairs[:, 0] == 0).all()
    return sorted(pairs[:, 1].tolist())


@settings(deadline=None, max_examples=50)
@given(st.integers(2, 25), st.integers(0, 10_000), st.sampled_from([0.0, 0.125]))
def test_the_bars_are_those_of_persistent_homology(n: int, seed: int, step: float) -> None:
    values = random_similarity(n, seed, step)
    found = sorted(math.inf if math.isnan(bar.joins) else 1 - bar.joins for bar in bars(tree(values)))
    np.testing.assert_allclose(found, persistence(values), rtol=0, atol=1e-12)


def test_bars_by_hand() -> None:
    found = barcode(of(CHAIN))
    assert found.title == "H0 barcode of 5 circuits (similarity, signed scores): bars from alpha = 1 down"
    assert [
        (row["joins_at"], row["length"], row["size"], row["circuits"], row["into"]) for row in found.rows()
    ] == [
        (None, None, 4, "a, b, c, d", None),
        (None, None, 1, "e", None),
        (0.5, 0.5, 2, "c, d", "a, b"),
        (0.8, pytest.approx(0.2), 1, "d", "c"),
        (0.9, pytest.approx(0.1), 1, "b", "a"),
    ]  # fmt: skip
    assert "80% of the joins of families lie between alpha = 0.500 and 0.900, the narrowest such band." in found.notes


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 12), st.integers(0, 10_000), st.sampled_from([0.0, 0.125]))
def test_bars_over_alpha_are_its_families(n: int, seed: int, step: float) -> None:
    """Each by its eldest circuit, of which every bar has another one."""
    values = random_similarity(n, seed, step)
    values[0, 1:] = values[1:, 0] = math.nan  # one circuit that joins nothing
    found = bars(tree(values))
    assert sorted(bar.eldest for bar in found) == list(range(n))
    assert all(bar.eldest in bar.members for bar in found)
    for alpha in (-0.3, 0.25, 0.5, 0.9):
        there = [bar.eldest for bar in found if not bar.joins >= alpha]
        families = components(values, alpha)
        assert len(there) == len(families)
        assert all(sum(eldest in family.rows for eldest in there) == 1 for family in families)


def test_a_bar_ends_at_the_ceiling_of_the_pair_that_joins() -> None:
    found = barcode(replace(of(CHAIN), ceiling=CHAIN / 2, corrected=2 * CHAIN))
    assert found.columns == ["bar", "joins_at", "ceiling", "length", "size", "circuits", "into"]
    assert [row["ceiling"] for row in found.rows()] == [None, None, 0.25, 0.4, 0.45]
    assert not any("over 1" in note for note in found.notes)
    # Corrected, two bars end over alpha = 1, where the barcode begins; nothing is cut off.
    found = barcode(replace(of(CHAIN), ceiling=CHAIN / 2, corrected=2 * CHAIN), corrected=True)
    assert [row["joins_at"] for row in found.rows()] == [None, None, 1.0, 1.6, 1.8]
    assert [row["length"] for row in found.rows()][2:] == [0.0, pytest.approx(-0.6), pytest.approx(-0.8)]
    assert [row["ceiling"] for row in found.rows()] == [None, None, 0.25, 0.4, 0.45]
    assert "A bar that ends over 1 has a length below 0: its family is joined at alpha = 1 already." in found.notes


def test_the_smaller_family_ends() -> None:
    # b - c - d join first, then a joins them: a is earlier, but alone.
    values = np.full((4, 4), 0.1)
    for i, j, s in ((1, 2, 0.9), (2, 3, 0.8), (0, 1, 0.4)):
        values[i, j] = values[j, i] = s
    longest = bars(tree(values))[1]
    assert (longest.joins, longest.members, longest.into) == (0.4, (0,), (1, 2, 3))


@pytest.mark.parametrize(
    ("heights", "share", "expected"),
    [
        ([0.1, 0.5, 0.52, 0.55, 0.9], 0.6, (0.5, 0.55)),
        ([0.1, 0.5, 0.52, 0.55, 0.9], 0.8, (0.5, 0.9)),  # 0.40 wide; the first four are 0.45
        ([0.1, 0.5, 0.52, 0.55, 0.9], 1.0, (0.1, 0.9)),
        ([0.3, math.nan], 0.5, (0.3, 0.3)),
        ([math.nan], 0.5, None),
        ([], 0.5, None),
    ],
)
def test_the_band_is_the_narrowest(heights: list[float], share: float, expected: tuple[float, float] | None) -> None:
    assert band(np.array(heights), share) == expected


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=12), st.floats(0.01, 1))
def test_no_narrower_band_holds_the_share(heights: list[float], share: float) -> None:
    found = band(np.array(heights), share)
    assert found is not None
    low, high = found
    needed = share * len(heights) - 1e-6
    assert sum(low <= height <= high for height in heights) >= needed
    for a in heights:
        for b in heights:
            if sum(a <= height <= b for height in heights) >= needed and a <= b:
                assert high - low <= b - a + 1e-12


@pytest.mark.parametrize("share", [0, -1, 1.5, math.nan])
def test_an_impossible_share_is_refused(share: float) -> None:
    with pytest.raises(UsageError, match="share"):
        barcode(of(CHAIN), share=share)


@pytest.mark.parametrize("n", [0, 1])
def test_of_little_or_nothing(n: int) -> None:
    found = barcode(of(np.eye(n)))
    assert len(found) == n
    assert not any("joins of families" in note for note in found.notes)


def test_of_a_database(db: Database) -> None:
    found = db.barcode(share=0.5)
    assert len(found) == 9
    assert [row["joins_at"] for row in found.rows()[1:]] == [row["alpha"] for row in db.family_sweep().rows()]
    assert found.rows()[-1]["circuits"] in ("2+2", "3+3")


def test_the_ceiling_stands_beside_alphas(db: Database) -> None:
    ceiling = db.similarity().ceiling[np.triu_indices(9, 1)]
    note = f"The median ceiling of a pair is {np.median(ceiling):.3f}; alpha is to be read against it."
    for found in (db.barcode(), db.family_sweep(), db.dendrogram()):
        assert note in found.notes
    assert note not in db.barcode(corrected=True).notes
