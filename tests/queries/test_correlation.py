from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from circuitdb.errors import UsageError
from circuitdb.evals.writer import Mapping
from circuitdb.queries import Database
from circuitdb.queries.correlation import interval, p_value
from circuitdb.records import Accuracy
from circuitdb.store import Store
from stores import SHAPE, addition_scores, circuit, model

NUMBERS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=6)


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four models of ever less noise and ever more accuracy, two subtasks each."""
    path = tmp_path_factory.mktemp("several") / "c.duckdb"
    store, rng = Store(path), np.random.default_rng(0)
    shared = rng.standard_normal(SHAPE.n_edges)
    for i, noise in enumerate((3.0, 1.0, 0.5, 0.1)):
        for name in ("1+1", "1+2"):
            folds = shared + noise * rng.standard_normal((2, SHAPE.n_edges))
            of = model(f"m{i}")
            store.write(circuit(name, of=of), folds.mean(0), folds, accuracy=Accuracy(0.2 * i + 0.1, 0.1, 8))
    return path


def test_over_subtasks_by_scipy(db: Database) -> None:
    scores = np.array([whole for whole, _ in addition_scores().values()])
    rho = stats.spearmanr(scores, axis=1).statistic
    means = (rho.sum(axis=1) - 1) / 8
    accuracies = [1 / (a + b) for a, b in addition_scores()]
    expected = stats.spearmanr(means, accuracies).statistic
    found = db.correlate()
    (row,) = found.rows()
    assert (row["of"], row["n"], row["n_lacking"]) == ("tiny, addition", 9, 0)
    assert row["rho"] == pytest.approx(expected, abs=1e-12)
    half = 1.959963984540054 * math.sqrt((1 + expected**2 / 2) / 6)
    bounds = (math.tanh(math.atanh(expected) - half), math.tanh(math.atanh(expected) + half))
    assert (row["low"], row["high"]) == pytest.approx(bounds, abs=1e-12)
    points = found.long().rows()
    assert [point["similarity"] for point in points] == pytest.approx(means.tolist(), abs=1e-12)
    assert [point["value"] for point in points] == accuracies
    ceiling = db.similarity().ceiling
    np.fill_diagonal(ceiling, 0)
    assert [point["ceiling"] for point in points] == pytest.approx((ceiling.sum(axis=1) / 8).tolist(), abs=1e-12)


def test_similarity_is_of_the_kind_and_the_edges_that_are_asked_for(db: Database) -> None:
    found = db.correlate(kind="pearson", source="head")
    apart = db.similarity(kind="pearson", source="head").matrix
    means = (apart.sum(axis=1) - 1) / 8
    accuracies = [1 / (a + b) for a, b in addition_scores()]
    assert found.rows()[0]["rho"] == pytest.approx(stats.spearmanr(means, accuracies).statistic, abs=1e-12)
    assert "(Pearson's r (from head), signed scores) with" in found.title


def test_what_the_similarities_must_say_is_said(several: Path) -> None:
    notes = Database(several).correlate().notes
    assert any(note.startswith("m0, addition: The median reliability is ") for note in notes)


def test_over_models(several: Path) -> None:
    db = Database(several)
    found = db.correlate(over="models")
    (row,) = found.rows()
    assert (row["of"], row["n"], row["rho"], row["low"], row["high"]) == ("addition", 4, 1.0, None, None)
    assert row["p_value"] == pytest.approx(2 / 24)  # of 24 orders, the same one and its reverse
    points = found.long().rows()
    assert [point["label"] for point in points] == [f"m{i}" for i in range(4)]
    assert [point["similarity"] for point in points] == [r["stability"] for r in db.stability().rows()]
    assert [point["value"] for point in points] == pytest.approx([0.1, 0.3, 0.5, 0.7])


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """Four subtasks of one signal, 1 to 4 measured ever worse; the folds of the fifth contradict each other."""
    store, rng = Store(tmp_path_factory.mktemp("uneven") / "c.duckdb"), np.random.default_rng(1)
    shared = rng.standard_normal(SHAPE.n_edges)
    for i, noise in enumerate((0.1, 0.5, 0.8, 1.2, 0.2)):
        folds = shared + noise * rng.standard_normal((2, SHAPE.n_edges))
        if i == 4:
            folds = np.stack([folds[0], -folds[0]])
        store.write(circuit(str(i)), shared if i == 4 else folds.mean(0), folds, accuracy=Accuracy(1 - 0.2 * i, 0.1, 8))
    return Database(store.path)


def test_corrected_points_are_ratios_of_means(uneven: Database) -> None:
    """By loops over pairs; the fifth circuit has no ceiling with any other, and so no corrected value."""
    found, alike = uneven.correlate(corrected=True), uneven.similarity()
    expected = []
    for i in range(4):
        others = [j for j in range(4) if j != i]
        expected.append(sum(alike.matrix[i, j] for j in others) / sum(alike.ceiling[i, j] for j in others))
    points = found.long().rows()
    assert [point["similarity"] for point in points] == [pytest.approx(value, abs=1e-12) for value in expected] + [None]
    plain = uneven.correlate()
    assert [point["ceiling"] for point in points] == [point["ceiling"] for point in plain.long().rows()]
    (row,) = found.rows()
    rho = stats.spearmanr(expected, [1, 0.8, 0.6, 0.4]).statistic
    assert (row["n"], row["n_lacking"], row["rho"]) == (4, 1, pytest.approx(rho, abs=1e-12))
    # The worse a circuit is measured the less alike it seems, though all are of one signal.
    similar = [float(str(point["similarity"])) for point in plain.long().rows()[:4]]
    assert similar == sorted(similar, reverse=True)
    assert found.title.startswith("Spearman's rho of corrected mean similarity to the others (signed scores) with")
    said = "tiny, addition: no corrected value for 4, of whose pairs fewer than half have a ceiling; left out."
    assert said in found.notes
    assert not any("no corrected value for" in note for note in plain.notes)


def test_corrected_over_models_is_the_corrected_stability(several: Path, uneven: Database) -> None:
    db = Database(several)
    points = db.correlate(over="models", corrected=True).long().rows()
    for point, row in zip(points, db.stability().rows(), strict=True):
        assert point["similarity"] == (None if row["corrected"] is None else pytest.approx(row["corrected"], abs=1e-12))
        assert point["ceiling"] == (None if row["ceiling"] is None else pytest.approx(row["ceiling"], abs=1e-12))
    (point,) = uneven.correlate(over="models", corrected=True).long().rows()
    assert point["similarity"] == pytest.approx(uneven.stability().rows()[0]["corrected"], abs=1e-12)


def test_without_a_correction_none_is_given(several: Path) -> None:
    with pytest.raises(UsageError, match="There is no correction for noise for Kendall's tau-b"):
        Database(several).correlate(corrected=True, kind="kendall")


def test_with_added_evaluations(several: Path, tmp_path: Path) -> None:
    copy = tmp_path / "c.duckdb"
    copy.write_bytes(several.read_bytes())
    db = Database(copy)
    file = tmp_path / "board.csv"
    # m0 has a value of the whole task beside those of its subtasks; m2 has none.
    file.write_text(
        "model,subtask,acc\nm0,addition,0.9\nm0,1+1,0.1\nm0,1+2,0.1\nm1,1+1,0.4\nm1,1+2,0.6\nm3,addition,N/A\n"
    )
    db.add_evaluations([file], "board")
    points = {row["label"]: row["value"] for row in db.correlate("board.acc", over="models").long().rows()}
    assert points == {"m0": 0.9, "m1": 0.5, "m2": None, "m3": None}
    found = db.correlate("board.acc", model=["m0", "m1"])
    assert [(row["of"], row["n"], row["rho"]) for row in found.rows()] == [
        ("m0, addition", 2, None), ("m1, addition", 2, None),  # both similarities of a pair are the same
    ]  # fmt: skip
    said = "addition: no value of board.acc for m2, m3; left out."
    assert said in db.correlate("board.acc", over="models").notes


def test_a_group_stands_for_no_subtask_and_a_choice_is_left_to_the_user(several: Path, tmp_path: Path) -> None:
    copy = tmp_path / "c.duckdb"
    copy.write_bytes(several.read_bytes())
    db = Database(copy)
    results = tmp_path / "results.json"
    results.write_text(
        '{"model_name": "m0", "results": {"all": {"acc,strict": 0.5, "acc,loose": 0.75}, "x": {"acc,strict": 0.25},'
        ' "y": {"acc,strict": 0.5}}, "group_subtasks": {"all": ["x", "y"]}}'
    )
    db.add_evaluations([results], "lm", mapping=[Mapping("subtask", "all", "addition"), Mapping("subtask", "x", "1+1")])
    with pytest.raises(UsageError, match=r"lm.acc was read with several filters \(loose, strict\); choose one"):
        db.correlate("lm.acc", over="models")
    values = [row["value"] for row in db.correlate("lm.acc", over="models", filter="strict").long().rows()]
    assert values == [0.5, None, None, None]
    db.map_evaluations("lm", [Mapping("subtask", "all", "1+2")])
    values = [r["value"] for r in db.correlate("lm.acc", filter="strict", model="m0").long().rows()]
    assert values == [0.25, None]
    db.map_evaluations("lm", [Mapping("subtask", "y", "1+1")])
    with pytest.raises(UsageError, match=r"lm.acc has two values for circuit 1, .* change the map of lm"):
        db.correlate("lm.acc", filter="strict")
    with pytest.raises(UsageError, match="was not read with the filter none"):
        db.correlate("lm.acc", filter="none")


def test_a_reading_without_a_filter_is_one_of_several(several: Path, tmp_path: Path) -> None:
    copy = tmp_path / "c.duckdb"
    copy.write_bytes(several.read_bytes())
    db = Database(copy)
    file = tmp_path / "board.csv"
    file.write_text("model,subtask,metric,value,filter\nm0,1+1,acc,0.1,strict\nm0,1+2,acc,0.2,\nm1,1+1,f1,0.3,\n")
    db.add_evaluations([file], "board")
    with pytest.raises(
        UsageError, match=r"board.acc was read with several filters \('' for none, strict\); choose one"
    ):
        db.correlate("board.acc")
    for reader, expected in (("strict", [0.1, None]), ("", [None, 0.2])):
        found = db.correlate("board.acc", filter=reader, model="m0").long().rows()
        assert [row["value"] for row in found] == expected
    assert [row["value"] for row in db.correlate("board.f1", model="m1").long().rows()] == [0.3, None]
    with pytest.raises(UsageError, match=r"board.f1 was not read with the filter strict"):
        db.correlate("board.f1", filter="strict")
    results = tmp_path / "results.json"
    results.write_text('{"model_name": "m0", "results": {"1+1": {"acc,none": 0.5}}}')
    db.add_evaluations([results], "lm")
    with pytest.raises(UsageError, match=r"lm.acc was not read without a filter"):
        db.correlate("lm.acc", filter="")


def test_what_cannot_be_correlated(db: Database) -> None:
    with pytest.raises(
        UsageError, match=r"no metric circuitdb.acuracy; did you mean circuitdb.accuracy\? The database"
    ):
        db.correlate("circuitdb.acuracy")
    with pytest.raises(UsageError, match="neither 'subtasks' nor 'models'"):
        db.correlate(over="circuits")
    few = db.correlate(circuits=[1, 2, 3])
    assert (few.rows()[0]["low"], few.rows()[0]["high"]) == (None, None)
    assert "Under four points there is no interval, and a correlation says next to nothing." in few.notes


@pytest.fixture(scope="module")
def twofold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four models, each scored by two metrics, which agree: twice the same evidence."""
    path = tmp_path_factory.mktemp("twofold") / "c.duckdb"
    store, rng = Store(path), np.random.default_rng(5)
    for i in range(4):
        for metric in ("kl", "logit-difference"):
            signal = rng.standard_normal(SHAPE.n_edges)
            for j in range(4):
                one = replace(circuit(f"{j}+1", of=model(f"m{i}"), salt=metric), metric=metric)
                folds = (i + 1) / 2 * signal + rng.standard_normal((4, SHAPE.n_edges))
                store.write(one, folds.mean(0), folds, accuracy=Accuracy(0.2 * (i + 1), 0.1, 8))
    return path


def test_a_model_is_one_point(twofold: Path) -> None:
    """Of four points in order two of 24 permutations are as extreme; as eight points p would be 0.0008."""
    db = Database(twofold)
    said = (
        r"^m0 was scored in 2 ways on addition, which differ in metric \(kl, logit-difference\), but a model is one "
        r"point; choose one, for example metric='kl'\.$"
    )
    with pytest.raises(UsageError, match=said):
        db.correlate(over="models")
    for metric in ("kl", "logit-difference"):
        (row,) = db.correlate(over="models", metric=metric).rows()
        assert (row["n"], row["rho"]) == (4, 1.0)
        assert row["p_value"] == pytest.approx(2 / 24, abs=1e-12)
    # Over subtasks each way of scoring is a row of its own.
    assert [row["n"] for row in db.correlate(model="m0").rows()] == [4, 4]


def test_ways_that_no_filter_tells_apart_are_chosen_by_circuit(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    for i, convention in enumerate(("effect-of-ablation", "attribution")):
        for name in ("1+1", "1+2"):
            one = replace(circuit(name, salt=str(i)), sign_convention=convention)
            store.write(one, np.random.default_rng(i).standard_normal(SHAPE.n_edges))
    with pytest.raises(UsageError, match=r"differ in sign convention \(.*\), but .* for example circuits=\[\d, \d\]\."):
        Database(store.path).correlate(over="models")


def test_a_subtask_is_one_point(tmp_path: Path) -> None:
    """Two circuits of one group and one subtask differ in nothing that a group is told by."""
    store = Store(tmp_path / "c.duckdb")
    for name, salt in (("1+1", "a"), ("1+1", "b"), ("1+2", "a")):
        rng = np.random.default_rng(len(salt + name))
        store.write(circuit(name, salt=salt), rng.standard_normal(SHAPE.n_edges), accuracy=Accuracy(0.5, None, 8))
    db = Database(store.path)
    with pytest.raises(
        UsageError, match=r"^tiny, addition has several circuits of 1\+1, but .* circuits, for 1\+1 one of 1, 2\.$"
    ):
        db.correlate()
    assert db.correlate(circuits=[2, 3]).rows()[0]["n"] == 2


@settings(deadline=None, max_examples=30)
@given(NUMBERS)
def test_p_is_scipys_exact_permutation_test(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, np.float64).T
    if len(set(a)) < 2 or len(set(b)) < 2:
        assert math.isnan(p_value(a, b))
        return
    expected = stats.permutation_test(
        (a,), lambda x: stats.spearmanr(x, b).statistic, permutation_type="pairings", n_resamples=np.inf
    )  # fmt: skip
    values = np.abs(expected.null_distribution)
    observed = abs(stats.spearmanr(a, b).statistic)
    assert p_value(a, b) == pytest.approx(float(np.mean(values >= observed - 1e-9)), abs=1e-12)


def test_random_permutations_come_near_and_are_the_same_each_time() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 30))
    b += 0.4 * a
    expected = stats.spearmanr(a, b).pvalue
    assert p_value(a, b) == p_value(a, b) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("b", [(3, 1, 7, 0, 6, 2, 4, 5), (0, 1, 3, 2, 5, 4, 7, 6), (0, 0, 1, 0, 1, 0, 1, 1)])
def test_random_permutations_count_those_that_are_as_extreme_and_no_others(b: tuple[int, ...]) -> None:
    """Of 8 points, the fewest that are not enumerated: of all 40,320 orders the share is known."""
    a, other = np.arange(8.0), np.array(b, np.float64)
    ranks = stats.rankdata(other) - 4.5
    products = np.array(list(itertools.permutations(ranks))) @ (a - 3.5)
    exact = np.mean(np.abs(products) >= abs(ranks @ (a - 3.5)) - 1e-9)
    # 9,999 random ones: 5 standard deviations. The next level of rho holds up to 5% of the orders.
    assert p_value(a, other) == pytest.approx(exact, abs=5 * math.sqrt(exact * (1 - exact) / 9999) + 1e-4)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    """95% of intervals of 40 points hold the rho of a normal pair of correlation 0.5: 6 / pi asin(0.25)."""
    rng = np.random.default_rng(2)
    truth = 6 / math.pi * math.asin(0.25)
    inside = 0
    for _ in range(400):
        x, e = rng.standard_normal((2, 40))
        low, high = interval(float(stats.spearmanr(x, 0.5 * x + math.sqrt(0.75) * e).statistic), 40)
        inside += low <= truth <= high
    assert 0.92 <= inside / 400 <= 0.98
