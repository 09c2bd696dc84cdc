from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from circuitdb.errors import UsageError
from circuitdb.graph import GraphShape
from circuitdb.queries import Database
from circuitdb.queries.conditions import Conditions, relabelled, resampled
from circuitdb.queries.contrast import contrast, effects
from circuitdb.queries.resampling import draws
from circuitdb.queries.similarity import Similarity, similarity
from circuitdb.store import Store
from matrices import score_matrix
from stores import SHAPE, circuit, model

Floats = npt.NDArray[np.float64]
RNG = np.random.default_rng(0)
PAIRED = Conditions(("a", "b"), np.array([True, False] * 5), np.arange(10) // 2)
APART = Conditions(("a", "b"), np.arange(10) < 4, np.arange(10))


def noisy(n: int, seed: int, shared: Floats | None = None) -> Similarity:
    """Circuits of two folds that have the rows of `shared`, or one signal, in common."""
    rng = np.random.default_rng(seed)
    base = rng.standard_normal((1, 80)).repeat(n, axis=0) if shared is None else shared
    folds = base[:, None] + rng.standard_normal((n, 1, 80)) + 0.5 * rng.standard_normal((n, 2, 80))
    return similarity(score_matrix(folds.mean(1), list(folds)))


def by_hand(
    found: Similarity, two: Conditions, first: npt.NDArray[np.bool_], *, corrected: bool
) -> tuple[float, float]:
    """(difference, separation) by loops over pairs."""
    sums: dict[str, list[tuple[float, float]]] = {"a": [], "b": [], "ab": []}
    for i, j in combinations(range(len(first)), 2):
        if two.unit[i] != two.unit[j]:
            where = "a" if first[i] and first[j] else "ab" if first[i] or first[j] else "b"
            sums[where].append((found.matrix[i, j], found.ceiling[i, j]))
    means = {
        where: np.mean([s for s, _ in pairs]) / (np.mean([c for _, c in pairs]) if corrected else 1)
        for where, pairs in sums.items()
    }
    return float(means["a"] - means["b"]), float((means["a"] + means["b"]) / 2 - means["ab"])


@pytest.mark.parametrize("two", [PAIRED, APART], ids=["paired", "apart"])
def test_effects_are_the_means_over_pairs(two: Conditions) -> None:
    found = noisy(10, 1)
    labels = np.concatenate([two.first[None], relabelled(two, 20) > 0])
    got = effects(found, two, labels.astype(float), 1.0 - labels)
    for i, first in enumerate(labels):
        for name, corrected in (("", False), ("corrected ", True)):
            difference, separation = by_hand(found, two, first, corrected=corrected)
            one, other = got[f"{name}stability"]
            assert one[i] - other[i] == pytest.approx(difference, abs=1e-12)
            within, across = got[f"{name}separation"]
            assert within[i] - across[i] == pytest.approx(separation, abs=1e-12)


def test_labels_are_exchanged_within_a_shared_subtask_and_between_the_others() -> None:
    # Units 0..2 are shared, 0 with two circuits of each; 3 (two circuits) and 4 are of a alone, 5 is of b alone.
    first = np.array([1, 1, 0, 0, 1, 0, 1, 0, 1, 1, 1, 0], bool)
    unit = np.array([0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 5])
    two = Conditions(("a", "b"), first, unit)
    assert two.relabellings == math.comb(4, 2) * 2 * 2 * math.comb(3, 1)
    labels = relabelled(two, 3000)
    assert len(np.unique(labels, axis=0)) == two.relabellings
    for shared, n in ((0, 2), (1, 1), (2, 1)):
        assert (labels[:, unit == shared].sum(axis=1) == n).all()
    assert (labels[:, 8] == labels[:, 9]).all()
    assert (labels[:, 8] + labels[:, 10] + labels[:, 11] == 2).all()
    # Each as often as the others: 3,000 of 72, by the chi-squared test.
    counts = np.unique(labels, axis=0, return_counts=True)[1]
    assert stats.chisquare(counts).pvalue > 0.001


def test_resamples_draw_the_subtasks_of_each_kind() -> None:
    first = np.array([1, 0, 1, 0, 1, 1, 1, 0, 0], bool)
    two = Conditions(("a", "b"), first, np.array([0, 0, 1, 1, 2, 3, 4, 5, 6]))
    weights = resampled(two)
    np.testing.assert_array_equal(weights[:, 0], weights[:, 1])
    assert (weights[:, [0, 2]].sum(axis=1) == 2).all()
    assert (weights[:, 4:7].sum(axis=1) == 3).all()
    assert (weights[:, 7:].sum(axis=1) == 2).all()


def test_p_is_that_of_all_exchanges() -> None:
    """Against the 32 exchanges of five pairs: of 9,999 random ones the share at least as extreme is theirs."""
    found = noisy(10, 3)
    observed = by_hand(found, PAIRED, PAIRED.first, corrected=False)
    every = []
    for swaps in product([False, True], repeat=5):
        first = PAIRED.first ^ np.repeat(swaps, 2)
        every.append(by_hand(found, PAIRED, first, corrected=False))
    exact = [
        np.mean([abs(d) >= abs(observed[0]) - 1e-12 for d, _ in every]),
        np.mean([s >= observed[1] - 1e-12 for _, s in every]),
    ]
    rows = {row["statistic"]: row for row in contrast(found, PAIRED, "style").rows()}
    for name, share in zip(("stability", "separation"), exact, strict=True):
        assert rows[name]["p"] == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / 9999) + 1e-3)
    assert rows["stability"]["effect"] == pytest.approx(observed[0], abs=1e-12)


# Five pairs; three alone against three, and against two; a pair measured twice, or twice on one side only.
SMALL = {
    "pairs": (PAIRED, 2 / 32),
    "alone": (Conditions(("a", "b"), np.arange(6) < 3, np.arange(6)), 2 / 20),
    "uneven": (Conditions(("a", "b"), np.arange(5) < 3, np.arange(5)), 1 / 10),
    "even-within": (Conditions(("a", "b"), np.arange(8) % 2 < 1, np.array([0, 0, 0, 0, 1, 1, 2, 2])), 2 / 24),
    "uneven-within": (
        Conditions(("a", "b"), np.array([1, 1, 0, 1, 0, 1, 0], bool), np.array([0, 0, 0, 1, 1, 2, 2])), 1 / 12
    ),
}  # fmt: skip


@pytest.mark.parametrize(("two", "least"), SMALL.values(), ids=SMALL)
def test_no_p_is_below_the_least_of_all_exchanges(two: Conditions, least: float) -> None:
    """By enumeration: of every exchange taken for the actual one, how many are as extreme."""
    assert two.least_p == pytest.approx(least, abs=1e-12)
    labels = np.unique(relabelled(two, 5_000) > 0, axis=0)
    assert len(labels) == two.relabellings
    found = noisy(len(two.first), 4)
    differences, separations = np.array([by_hand(found, two, first, corrected=False) for first in labels]).T
    for extreme in (np.abs(differences), separations):
        assert min(np.mean(extreme >= one - 1e-12) for one in extreme) == pytest.approx(least, abs=1e-12)


def test_without_an_effect_p_is_uniform() -> None:
    two = Conditions(("a", "b"), np.arange(12) < 6, np.arange(12))
    small = [[row["p"] for row in contrast(noisy(12, seed), two, "x", relabellings=199).rows()] for seed in range(120)]
    share = (np.array(small, float) <= 0.1).mean(axis=0)
    # Binomial of 120 at 0.1: 0.1 +- 4 x 0.027.
    assert (share < 0.21).all()
    assert share.mean() > 0.03


def test_a_true_effect_is_found() -> None:
    signals = RNG.standard_normal((2, 80))
    apart = Conditions(("a", "b"), np.arange(12) < 6, np.arange(12))
    # Two circuits, one a condition: separation, and no difference of stability.
    rows = {row["statistic"]: row for row in contrast(noisy(12, 5, signals.repeat(6, axis=0)), apart, "x").rows()}
    assert rows["separation"]["p"] < 0.01  # type: ignore[operator]
    assert rows["separation"]["low"] > 0  # type: ignore[operator]
    assert rows["stability"]["p"] > 0.05  # type: ignore[operator]
    # One signal in the first condition, none in the second: a difference.
    loose = np.concatenate([signals[:1].repeat(6, axis=0), RNG.standard_normal((6, 80))])
    rows = {row["statistic"]: row for row in contrast(noisy(12, 6, loose), apart, "x").rows()}
    assert rows["stability"]["p"] < 0.01  # type: ignore[operator]
    assert rows["stability"]["low"] > 0  # type: ignore[operator]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """Boolean subtasks with and without parentheses, the same operators in both; a third prompt style on the side."""
    store = Store(tmp_path_factory.mktemp("boolean") / "c.duckdb")
    for i, (operator, parentheses) in enumerate(product(("and", "or", "not", "xor"), (False, True))):
        folds = RNG.standard_normal((2, SHAPE.n_edges)) + RNG.standard_normal(SHAPE.n_edges)
        name = f"({operator})" if parentheses else operator
        parameters = {"operator": i // 2, "parentheses": parentheses}
        store.write(circuit(name, parameters, task="boolean"), folds.mean(0), folds)
    folds = RNG.standard_normal((2, SHAPE.n_edges))
    other = circuit("and", {"operator": 0, "parentheses": False}, task="boolean", salt="zero")
    store.write(replace(other, prompt_style="zero-shot"), folds[0], folds)
    return Database(store.path)


def test_of_a_database(db: Database) -> None:
    found = db.compare("parentheses", prompt_style="few-shot")
    assert found.title == "parentheses False (first) against True (second): Spearman's rho, signed scores"
    assert found.columns == ["statistic", "first", "second", "effect", "low", "high", "p"]
    names = ["ceiling", "stability", "separation", "corrected stability", "corrected separation"]
    assert [row["statistic"] for row in found.rows()] == names
    matrix = db.similarity(prompt_style="few-shot").matrix
    labels = db.similarity(prompt_style="few-shot").labels
    plain = [i for i, label in enumerate(labels) if "(" not in label]
    row = found.rows()[1]
    expected = np.mean([matrix[i, j] for i, j in combinations(plain, 2)])
    assert row["first"] == pytest.approx(expected, abs=1e-12)
    assert any("within the 4 subtasks that both have (seed 0)" in note for note in found.notes)
    said = (
        "There are only 16 different exchanges, and of each the opposite is as extreme, so that p can't be below 0.12."
    )
    assert said in found.notes
    assert found.rows() == db.compare("parentheses", ["False", "True"], prompt_style="few-shot").rows()
    overlap = db.compare("parentheses", prompt_style="few-shot", kind="overlap", top=10)
    assert [row["statistic"] for row in overlap.rows()] == names[:3]


def test_circuits_of_tasks_without_the_parameter_are_left_out(db: Database, tmp_path: Path) -> None:
    copy = tmp_path / "c.duckdb"
    copy.write_bytes(Path(db.path).read_bytes())
    for digits in (1, 2):
        Store(copy).write(circuit(f"{digits}", {"digits": digits}), RNG.standard_normal(SHAPE.n_edges))
    both, alone = Database(copy), db.compare("parentheses", prompt_style="few-shot")
    found = both.compare("parentheses", prompt_style="few-shot")
    assert found.rows() == alone.rows()
    assert set(found.notes) - set(alone.notes) == {"2 circuits have no parentheses, and are left out."}
    named = both.compare("parentheses", ["none", "True"], prompt_style="few-shot")  # they are there on request
    assert named.title.startswith("parentheses none (first) against True (second)")
    assert not any("left out" in note for note in named.notes)
    with pytest.raises(UsageError, match="name two of none, False, True"):
        both.compare("parentheses", ["True"])


def test_fields_of_the_scoring_are_conditions_too(db: Database) -> None:
    found = db.compare("prompt_style", subtask=["and", "or"])
    assert not any("prompt styles" in note for note in found.notes)  # they are meant to differ
    rows = {row["statistic"]: row for row in found.rows()}
    assert rows["stability"]["second"] is None  # one circuit
    assert rows["stability"]["p"] is None
    assert found.notes[-1] == "An interval takes 4 subtasks of each condition or more; low and high are NULL for fewer."


@pytest.mark.parametrize(
    ("by", "values", "message"),
    [
        ("operator", (), "between two values of operator; name two of 0, 1, 2, 3"),
        ("operator", ("0", "9"), "No circuit has operator 9; there is 0, 1, 2, 3"),
        ("operator", "0", "between two values of operator"),
        ("seed", (), "between two values of seed, and all of these circuits have 0."),
        ("seed", ("0",), "between two values of seed; name two of 0"),
        ("parenthesis", (), "has a parameter 'parenthesis'; did you mean parentheses"),
    ],
)
def test_what_is_no_pair_of_conditions_is_refused(
    db: Database, by: str, values: str | tuple[str, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        db.compare(by, values, prompt_style="few-shot")


def test_an_empty_database_has_no_conditions(tmp_path: Path) -> None:
    Store(tmp_path / "c.duckdb").create()
    with pytest.raises(UsageError, match="name two of none"):
        Database(tmp_path / "c.duckdb").compare("parentheses")


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """Two models of different graph shapes, five subtasks each, four of them in common."""
    store = Store(tmp_path_factory.mktemp("shapes") / "c.duckdb")
    rng = np.random.default_rng(5)
    for name, shape, subtasks, noise in (
        ("small", GraphShape(1, 2), range(5), 0.4),
        ("large", SHAPE, range(1, 6), 1.2),
    ):
        signal = rng.standard_normal(shape.n_edges)
        for subtask in subtasks:
            folds = (
                signal + noise * rng.standard_normal((1, shape.n_edges)) + rng.standard_normal((2, shape.n_edges)) / 2
            )
            store.write(circuit(f"s{subtask}", of=model(name, shape)), folds.mean(0), folds)
    return Database(store.path)


def test_stabilities_of_different_graph_shapes_are_compared(shapes: Database) -> None:
    found = shapes.compare("model", ["small", "large"])
    assert found.title == "model small (first) against large (second): Spearman's rho, signed scores"
    rows = {row["statistic"]: row for row in found.rows()}
    assert list(rows) == ["ceiling", "stability", "separation", "corrected stability", "corrected separation"]
    for place, name in (("first", "small"), ("second", "large")):
        (own,) = shapes.stability(model=name).rows()
        for statistic, column in (("stability",) * 2, ("ceiling",) * 2, ("corrected stability", "corrected")):
            assert rows[statistic][place] == pytest.approx(own[column], abs=1e-12)
    assert rows["separation"]["first"] == pytest.approx(
        (float(str(rows["stability"]["first"])) + float(str(rows["stability"]["second"]))) / 2, abs=1e-12
    )
    for statistic in ("separation", "corrected separation"):
        assert [rows[statistic][name] for name in ("second", "effect", "low", "high", "p")] == [None] * 5
    assert [row["p"] for row in found.rows()] == [None] * 5
    assert found.notes[-2:] == (
        "These circuits are of different graph shapes: 5 circuits of 2 layers x 3 heads (large); 5 circuits of 1 layer "
        "x 2 heads (small). An edge of one shape is no edge of the other, so their scores do not line up. Each "
        "stability is over the pairs of its own condition; the separation takes pairs across them, and p exchanges "
        "circuits between them, so that both are NULL.",
        "The intervals are of nominally 95%, from 2,000 resamples of the subtasks (seed 0).",
    )
    assert not any("models" in note or "have no similarity" in note for note in found.notes)
    assert shapes.compare("model", ["large", "small"]).rows()[1]["effect"] == -float(str(rows["stability"]["effect"]))


def test_the_interval_of_different_shapes_is_from_subtasks_drawn_for_both(shapes: Database) -> None:
    """By loops: the four common subtasks are drawn once for both models, and the fifth of each by itself."""
    small, large = (shapes.similarity(model=name) for name in ("small", "large"))
    assert (small.labels[1:], large.labels[:4]) == (("s1", "s2", "s3", "s4"),) * 2
    row = shapes.compare("model", ["small", "large"]).rows()[1]
    common = draws(4, seed=0)
    effects_drawn = []
    for weights in common:
        means = []
        for matrix, counts in (
            (small.matrix, [1, *weights]), (large.matrix, [*weights, 1])
        ):  # fmt: skip
            pairs = [(counts[i] * counts[j], matrix[i, j]) for i, j in combinations(range(5), 2)]
            means.append(sum(w * s for w, s in pairs) / sum(w for w, _ in pairs))
        effects_drawn.append(means[0] - means[1])
    half = stats.t.ppf(0.975, 4) * np.std(effects_drawn, ddof=1) * math.sqrt(5 / 4)
    effect = float(str(row["effect"]))
    assert (row["low"], row["high"]) == (pytest.approx(effect - half, abs=1e-9), pytest.approx(effect + half, abs=1e-9))


def test_different_shapes_within_a_condition_are_refused(shapes: Database, tmp_path: Path) -> None:
    copy = tmp_path / "c.duckdb"
    copy.write_bytes(Path(shapes.path).read_bytes())
    for shape in (SHAPE, GraphShape(1, 2)):
        one = replace(circuit("s1", of=model(f"more {shape.n_layers}", shape), salt="zero"), prompt_style="zero-shot")
        Store(copy).write(one, np.arange(shape.n_edges))
    with pytest.raises(
        UsageError, match=r"of different graph shapes: .* choose those of one shape, for example model="
    ):
        Database(copy).compare("prompt_style")
