from __future__ import annotations

import math
from dataclasses import replace

import networkx as nx  # type: ignore[import-untyped]
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.metrics import silhouette_samples

from circuitdb.errors import UsageError
from circuitdb.queries import Database
from circuitdb.queries.families import (
    classes,
    components,
    dendrogram,
    families,
    family_sweep,
    merges,
    sweep,
    useful_alpha,
)
from circuitdb.queries.silhouette import silhouettes
from circuitdb.queries.similarity import Similarity, similarity
from matrices import score_matrix

Floats = npt.NDArray[np.float64]

# a - b 0.9, c - d 0.8, b - c 0.5, all others lower: a chain a - b - c - d at 0.5.
CHAIN = np.array([[1, 0.9, 0.1, 0.0], [0.9, 1, 0.5, 0.2], [0.1, 0.5, 1, 0.8], [0.0, 0.2, 0.8, 1]])


def of(matrix: npt.ArrayLike, labels: str = "abcdefghijkl") -> Similarity:
    """A similarity object with the given matrix, whatever scores there were."""
    values = np.asarray(matrix, float)
    start = similarity(score_matrix(np.zeros((len(values), 2)), labels=list(labels[: len(values)])))
    fields = {name: getattr(start, name) for name in ("circuit_ids", "labels", "on", "reliability", "n_edges", "title")}
    return Similarity(matrix=values, ceiling=values, corrected=values / 0.5, **fields)


def oracle(values: Floats, alpha: float) -> list[set[int]]:
    """Families by networkx."""
    graph = nx.Graph()
    graph.add_nodes_from(range(len(values)))
    graph.add_edges_from((i, j) for i in range(len(values)) for j in range(i) if values[i, j] >= alpha)
    return [set(part) for part in nx.connected_components(graph)]


def random_similarity(n: int, seed: int, step: float = 0.0) -> Floats:
    """Symmetric, 1 on the diagonal; rounded to multiples of `step` so that some are equal."""
    values = np.random.default_rng(seed).uniform(-0.5, 1, (n, n))
    values = np.round(values / step) * step if step else values
    values = np.triu(values, 1) + np.triu(values, 1).T
    np.fill_diagonal(values, 1)
    return values


def test_families_are_connected_components() -> None:
    # Silhouettes: a is 0.1 from b and (0.9 + 1.0) / 2 from c and d, so (0.95 - 0.1) / 0.95; b 0.65, c 0.7, d 0.9 from
    # the other family.
    a, b, c, d = (
        {"silhouette": pytest.approx(1 - own / other, abs=1e-12), "reliability": None}
        for own, other in ((0.1, 0.95), (0.1, 0.65), (0.2, 0.7), (0.2, 0.9))
    )
    one, two = (
        {"lowest_within": lowest, "lowest_ceiling": limit, "mean_within": lowest, "mean_ceiling": limit}
        for lowest, limit in ((0.9, 0.45), (0.8, 0.4))
    )
    found = families(replace(of(CHAIN), ceiling=CHAIN / 2), 0.6)
    assert found.title == "2 families of 4 circuits at alpha = 0.6 (similarity, signed scores)"
    assert found.rows() == [
        {"family": "A", "size": 2, "circuit_id": 1, "subtask": "a", "medoid": True, **one, **a},
        {"family": "A", "size": 2, "circuit_id": 2, "subtask": "b", "medoid": False, **one, **b},
        {"family": "B", "size": 2, "circuit_id": 3, "subtask": "c", "medoid": True, **two, **c},
        {"family": "B", "size": 2, "circuit_id": 4, "subtask": "d", "medoid": False, **two, **d},
    ]


def test_similarities_within_stand_beside_their_ceilings() -> None:
    values = CHAIN.copy()
    values[0, 1] = values[1, 0] = np.nan
    ceiling = np.array([[9, 0.1, 0.2, 0.3], [0.1, 9, 0.4, np.nan], [0.2, 0.4, 9, 0.6], [0.3, np.nan, 0.6, 9]])
    rows = families(replace(of(values), ceiling=ceiling, corrected=2 * values), -1).rows()
    assert len({row["family"] for row in rows}) == 1
    # The pairs with a similarity: a-c 0.1, a-d 0 (the lowest), b-c 0.5, b-d 0.2 (without a ceiling), c-d 0.8.
    assert rows[0]["lowest_within"] == 0.0
    assert rows[0]["lowest_ceiling"] == 0.3
    assert rows[0]["mean_within"] == pytest.approx((0.1 + 0 + 0.5 + 0.2 + 0.8) / 5, abs=1e-12)
    assert rows[0]["mean_ceiling"] == pytest.approx((0.2 + 0.3 + 0.4 + 0.6) / 4, abs=1e-12)
    # Corrected the similarities are others, and the ceilings the same.
    (row, *_) = families(replace(of(values), ceiling=ceiling, corrected=2 * values), -1, corrected=True).rows()
    assert (row["mean_within"], row["mean_ceiling"]) == (pytest.approx(0.64, abs=1e-12), rows[0]["mean_ceiling"])
    # The pair that is the lowest has no ceiling, and a family of one no pair.
    (row, *_) = families(replace(of(CHAIN), ceiling=np.where(CHAIN == 0, np.nan, CHAIN)), 0).rows()
    assert (row["lowest_within"], row["lowest_ceiling"]) == (0, None)
    names = ("lowest_within", "lowest_ceiling", "mean_within", "mean_ceiling")
    assert [families(of(CHAIN), 0.95).rows()[0][name] for name in names] == [None] * 4


def test_a_value_over_1_is_never_cut_in_silence() -> None:
    said = "For silhouettes{}, a corrected similarity over 1 counts as 1."
    found = families(of(CHAIN), 1.5, corrected=True)  # a - b 1.8 and c - d 1.6
    assert [row["lowest_within"] for row in found.rows()] == [1.8, 1.8, 1.6, 1.6]
    assert said.format("") in found.notes
    assert said.format(" and the choice of alpha") in families(of(CHAIN), corrected=True).notes
    assert [row["alpha"] for row in dendrogram(of(CHAIN), corrected=True).rows()] == [1.8, 1.6, 1.0]
    assert [row["alpha"] for row in family_sweep(of(CHAIN), corrected=True).rows()] == [1.0, 1.6, 1.8]
    # Of silhouettes both distances are 0; of an alpha the range ends at 1.
    assert not any("counts as 1" in note for note in families(of(CHAIN), 0.5).notes)
    assert not any("counts as 1" in note for note in families(of(CHAIN / 2), corrected=True).notes)  # 1 at most


def test_alpha_itself_joins() -> None:
    assert len(components(CHAIN, 0.5)) == 1
    assert len(components(CHAIN, np.nextafter(0.5, 1))) == 2


def test_a_chain_is_called_one() -> None:
    found = families(of(CHAIN), 0.5)
    # Mean similarity to the others: a 1/3, b 1.6/3, c 1.4/3, d 1/3.
    assert [(row["family"], row["medoid"], row["lowest_within"]) for row in found.rows()] == [
        ("A", False, 0.0), ("A", True, 0.0), ("A", False, 0.0), ("A", False, 0.0),
    ]  # fmt: skip
    assert any(note.startswith("Family A: held together by a chain") for note in found.notes)


def test_the_largest_family_comes_first_then_the_first_label() -> None:
    values = np.eye(6)
    values[1, 4] = values[4, 1] = values[4, 5] = values[5, 4] = values[0, 2] = values[2, 0] = 0.9
    found = families(of(values), 0.8)
    assert [(row["family"], row["subtask"]) for row in found.rows()] == [
        ("A", "b"), ("A", "e"), ("A", "f"), ("B", "a"), ("B", "c"), ("C", "d"),
    ]  # fmt: skip
    assert found.rows()[-1]["lowest_within"] is None


def test_names_go_on_after_z() -> None:
    assert [family.name for family in components(np.eye(28), 0.5)][24:] == ["Y", "Z", "AA", "AB"]


def test_null_never_joins() -> None:
    values = CHAIN.copy()
    values[1, 2] = values[2, 1] = np.nan
    assert [family.rows for family in components(values, -1.0)] == [(0, 1, 2, 3)]  # a - c and b - d still do
    values[:2, 2:] = values[2:, :2] = np.nan
    assert [family.rows for family in components(values, -1.0)] == [(0, 1), (2, 3)]
    alone = np.full((3, 3), np.nan)
    alone[:2, :2] = 1
    found = families(of(alone), 0.5)
    assert [(row["family"], row["size"]) for row in found.rows()] == [("A", 2), ("A", 2), ("B", 1)]
    assert "c: no similarity to any other circuit, so a family of its own at every alpha." in found.notes


def test_corrected_values_on_request() -> None:
    found = families(of(CHAIN), 0.9, corrected=True)  # twice the plain ones: b - c is 1.0
    assert found.title == "1 family of 4 circuits at alpha = 0.9 (corrected similarity, signed scores)"


def test_sweep_by_hand() -> None:
    found = family_sweep(of(CHAIN))
    assert found.columns == ["alpha", "n_families", "n_above"]
    assert [tuple(row.values()) for row in found.rows()] == [(0.5, 1, 2), (0.8, 2, 3), (0.9, 3, 4)]


def test_the_useful_alpha_is_the_middle_of_the_widest_range() -> None:
    alpha, why = useful_alpha(CHAIN)  # 2 families from 0.5 to 0.8, 3 from 0.8 to 0.9
    assert alpha == pytest.approx(0.65)
    assert why == "the middle of the widest range of alpha, 0.500 to 0.800, with neither one family nor all apart"
    assert families(of(CHAIN)).title == f"2 families of 4 circuits at alpha = 0.65 (similarity, signed scores): {why}"


def test_noise_over_1_gives_no_useful_range() -> None:
    # Merges at 0.4, 0.6, 1.1 and 3: the widest range would be 1.1 to 3, of which nothing is a similarity.
    values = np.full((5, 5), 0.4)
    for a, b, value in ((0, 1, 3.0), (2, 3, 1.1), (1, 2, 0.6)):
        values[a, b] = values[b, a] = value
    np.fill_diagonal(values, 1)
    alpha, why = useful_alpha(values)
    assert alpha == pytest.approx(0.8)
    assert "0.600 to 1.000" in why
    found = families(of(values / 2), corrected=True)  # `of` corrects by 1 / 0.5
    assert [row["family"] for row in found.rows()] == ["A", "A", "B", "B", "C"]


@pytest.mark.parametrize(
    ("values", "alpha", "n"),
    [
        pytest.param(np.ones((0, 0)), 0.0, 0, id="none"),
        pytest.param(np.ones((1, 1)), 0.0, 1, id="one"),
        pytest.param([[1, 0.3], [0.3, 1]], 0.3, 1, id="two"),
        pytest.param([[1, np.nan], [np.nan, 1]], 0.0, 2, id="null"),
        pytest.param(np.full((3, 3), 0.4), 0.4, 1, id="all-equal"),
    ],
)
def test_there_may_be_no_useful_alpha(values: npt.ArrayLike, alpha: float, n: int) -> None:
    matrix = np.asarray(values, float)
    found, why = useful_alpha(matrix)
    assert found == alpha
    assert why.startswith("no alpha parts these circuits")
    assert len({row["family"] for row in families(of(matrix)).rows()}) == n


@pytest.mark.parametrize("step", [0.0, 0.1])
@pytest.mark.parametrize("n", [2, 3, 12, 40])
def test_sweep_is_single_linkage(n: int, step: float) -> None:
    values = random_similarity(n, seed=n, step=step)
    heights = np.sort(1 - linkage(squareform(1 - values, checks=False), "single")[:, 2])
    np.testing.assert_allclose(merges(values), heights, rtol=0, atol=1e-12)
    alphas, at, above = sweep(values)
    for alpha, here, over in zip(alphas, at, above, strict=True):
        assert len(oracle(values, alpha)) == here
        assert len(oracle(values, np.nextafter(alpha, 2))) == over
    assert above[-1] == n


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 9), st.integers(0, 10_000), st.floats(-0.6, 1.1))
def test_families_are_those_of_networkx(n: int, seed: int, alpha: float) -> None:
    values = random_similarity(n, seed, step=0.25)
    values[np.random.default_rng(seed).random((n, n)) < 0.2] = np.nan
    values = np.where(np.isnan(values) | np.isnan(values.T), np.nan, values)
    found = components(values, alpha)
    assert sorted(map(sorted, (family.rows for family in found))) == sorted(map(sorted, oracle(values, alpha)))
    for family in found:
        inside = [values[i, j] for i in family.rows for j in family.rows if i < j and not math.isnan(values[i, j])]
        assert family.medoid in family.rows
        assert family.lowest == min(inside) if inside else math.isnan(family.lowest)


@pytest.mark.parametrize("alpha", [math.nan, math.inf])
def test_alpha_is_a_number(alpha: float) -> None:
    with pytest.raises(UsageError, match="alpha is a similarity"):
        families(of(CHAIN), alpha)


def test_classes_are_those_in_which_every_pair_reaches_alpha() -> None:
    # b - c is 0.5, but a - d is 0: a chain makes one family of all, and no class.
    found = families(of(CHAIN), 0.5, every_pair=True)
    assert found.title == "2 classes of 4 circuits at alpha = 0.5 (similarity, signed scores, every pair in a class)"
    assert [(row["family"], row["subtask"], row["lowest_within"]) for row in found.rows()] == [
        ("A", "a", 0.9), ("A", "b", 0.9), ("B", "c", 0.8), ("B", "d", 0.8),
    ]  # fmt: skip
    assert not any("held together by a chain" in note for note in found.notes)
    assert len(classes(CHAIN, 0.0)) == 1  # the lowest of all is 0, and alpha itself joins
    assert len(classes(CHAIN, np.nextafter(0.0, 1))) == 2


@pytest.mark.parametrize("step", [0.0, 0.1])
@pytest.mark.parametrize("n", [2, 3, 12, 40])
def test_the_sweep_of_classes_is_complete_linkage(n: int, step: float) -> None:
    values = random_similarity(n, seed=n, step=step)
    tree = linkage(squareform(1 - values, checks=False), "complete")
    if not step:  # equal similarities may be joined in another order, to other classes
        np.testing.assert_allclose(merges(values, every_pair=True), np.sort(1 - tree[:, 2]), rtol=0, atol=1e-12)
        for alpha in np.linspace(-0.45, 0.95, 9):
            expected = {
                tuple(np.flatnonzero(label == i)) for label in [fcluster(tree, 1 - alpha, "distance")] for i in label
            }
            assert {family.rows for family in classes(values, alpha)} == expected
    alphas, at, above = sweep(values, every_pair=True)
    for alpha, here, over in zip(alphas, at, above, strict=True):
        assert len(classes(values, alpha)) == here
        assert len(classes(values, np.nextafter(alpha, 2))) == over


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 9), st.integers(0, 10_000), st.floats(-0.6, 1.1))
def test_every_pair_of_a_class_reaches_alpha_and_none_can_grow(n: int, seed: int, alpha: float) -> None:
    values = random_similarity(n, seed, step=0.25)
    values[np.random.default_rng(seed).random((n, n)) < 0.2] = np.nan
    values = np.where(np.isnan(values) | np.isnan(values.T), np.nan, values)
    found = classes(values, alpha)
    assert sorted(row for family in found for row in family.rows) == list(range(n))
    for family in found:
        for i in family.rows:
            assert all(values[i, j] >= alpha for j in family.rows if j != i)
    for one in found:  # two classes that could be one would have been joined
        for two in found:
            if one is not two:
                assert not (values[np.ix_(one.rows, two.rows)] >= alpha).all()


@settings(deadline=None, max_examples=60)
@given(st.integers(3, 12), st.integers(0, 10_000), st.integers(2, 6))
def test_silhouettes_are_scikit_learns(n: int, seed: int, k: int) -> None:
    values = random_similarity(n, seed)
    family = np.random.default_rng(seed).integers(0, min(k, n - 1), n)
    found = silhouettes(values, family)
    if len(np.unique(family)) == 1:
        assert np.isnan(found).all()
        return
    distance = 1 - values
    np.testing.assert_allclose(found, silhouette_samples(distance, family, metric="precomputed"), atol=1e-12)


def test_silhouettes_without_all_similarities() -> None:
    values = CHAIN.copy()
    values[0, 3] = values[3, 0] = np.nan
    family = np.array([0, 0, 1, 1])
    # a: 0.1 from b, 0.9 from c alone.
    assert silhouettes(values, family)[0] == pytest.approx(1 - 0.1 / 0.9)
    assert np.isnan(silhouettes(np.full((3, 3), np.nan), np.array([0, 0, 1])))[[0, 1]].all()
    assert silhouettes(np.eye(3), np.arange(3)).tolist() == [0, 0, 0]
    assert silhouettes(np.empty((0, 0)), np.arange(0)).shape == (0,)


def test_the_dendrogram_by_hand() -> None:
    limited = replace(of(CHAIN), ceiling=CHAIN / 2)
    found = dendrogram(limited)
    assert found.title == "Dendrogram of 4 circuits (similarity, signed scores), single linkage"
    assert [tuple(row.values()) for row in found.rows()] == [
        (1, 0.9, 3, 2, "a", "b", 0.45), (2, 0.8, 2, 2, "c", "d", 0.4), (3, 0.5, 1, 4, "a, b", "c, d", 0.25),
    ]  # fmt: skip
    assert found.notes[-1] == "From left to right: a, b, c, d."
    # Complete linkage joins all by a and d.
    every = dendrogram(limited, every_pair=True).rows()
    assert [(row["alpha"], row["ceiling"]) for row in every] == [(0.9, 0.45), (0.8, 0.4), (0.0, 0.0)]


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 12), st.integers(0, 10_000), st.booleans(), st.booleans())
def test_the_ceiling_of_a_join_is_that_of_its_pair(n: int, seed: int, every_pair: bool, corrected: bool) -> None:
    values = random_similarity(n, seed)
    limited = replace(of(values), ceiling=values + 1, corrected=2 * values)
    rows = dendrogram(limited, every_pair=every_pair, corrected=corrected).rows()
    for row in rows:
        alpha = float(str(row["alpha"])) / (2 if corrected else 1)
        assert row["ceiling"] == pytest.approx(alpha + 1, abs=1e-12)


def test_of_a_database(db: Database) -> None:
    found = db.families(0.6)
    assert [row["subtask"] for row in found.rows() if row["family"] == "A"] == ["1+1", "2+2", "3+3"]
    assert len({row["family"] for row in found.rows()}) == 7
    steps = db.family_sweep().rows()
    assert (steps[0]["n_families"], steps[-1]["n_above"], len(steps)) == (1, 9, 8)
    assert len(db.family_sweep(corrected=True, circuits=[1, 5, 9])) == 2
    tree = db.dendrogram().rows()
    assert [row["alpha"] for row in tree] == [row["alpha"] for row in reversed(steps)]
    assert db.families(0.6, every_pair=True).rows()[0]["size"] == 3
    assert len(db.family_sweep(every_pair=True, kind="pearson")) == 8
    with pytest.raises(UsageError, match="no correction for noise for Kendall's tau-b"):
        db.families(corrected=True, kind="kendall")
