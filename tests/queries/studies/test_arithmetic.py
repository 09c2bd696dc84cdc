"""The arithmetic study finds what was planted, and says the numbers that other sources give."""

from __future__ import annotations

import math
import re
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import fisher_exact, spearmanr

from circuitdb.errors import UsageError
from circuitdb.queries import Database
from circuitdb.queries.studies.findings import Finding, Findings
from circuitdb.records import Parameters
from circuitdb.store import Store
from planted import SHAPE, arithmetic, boolean, checkpoints, write
from stores import circuit, model


def answer(found: Findings, start: str, subject: str = "") -> Finding:
    """The only finding whose question begins so."""
    (one,) = [f for f in found.findings if f.question.startswith(start) and f.subject == subject]
    return one


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """Three families: equal digit counts, first operand longer, second operand longer."""
    return Database(arithmetic(tmp_path_factory.mktemp("planted") / "c.duckdb"))


@pytest.fixture(scope="module")
def found(db: Database) -> Findings:
    return db.study("arithmetic")


def test_the_questions_are_those_of_the_paper(found: Findings) -> None:
    assert [finding.question for finding in found.findings] == [
        "How often is the model right?",
        "Are the circuits measured well enough to be compared?",
        "Does the model use one circuit across the task?",
        "How many families of circuits are there, at which alpha?",
        "Which digit counts go together?",
        "Is (a, b) computed by the circuit of (b, a)?",
        "Is (a, b) answered as well as (b, a)?",
        "Are neighbours, such as (2, 2) and (2, 3), computed by one circuit?",
        "Are circuits less alike the further apart their digit counts are?",
        "Is the model more often right where its circuit is like the others?",
        "Which hard circuits lie within which?",
        "Which edges and nodes do all subtasks share?",
    ]
    assert all(finding.answer.endswith(".") for finding in found.findings)
    assert not any("nan" in finding.answer for finding in found.findings)
    assert len(found.summary) == 4


def test_accuracy(found: Findings) -> None:
    one = answer(found, "How often")
    # 4 cells of 0.8, 6 of 0.9, 6 of 0.5: 11.6 / 16 = 0.725
    assert "right on 73% of the questions, the mean of 16 subtasks (320 questions in all)" in one.answer
    rows = {row["subtask"]: row for row in one.tables[0].rows()}
    assert rows["3+1"]["accuracy"] == 0.9
    assert rows["3+1"]["stderr"] == pytest.approx(math.sqrt(0.9 * 0.1 / 20))
    assert rows["3+1"]["n"] == 20
    assert not one.caveats


def test_planted_families_are_named(found: Findings) -> None:
    one = answer(found, "Which digit counts")
    at_06 = one.tables[0]
    assert [(row["size"], row["what"]) for row in at_06.rows()] == [
        (6, "second operand longer"), (6, "first operand longer"), (4, "equal digit counts"),
    ]  # fmt: skip
    assert at_06.rows()[2]["members"] == "1+1, 2+2, 3+3, 4+4"
    own = {row["subtask"]: float(str(row["reliability"])) for row in answer(found, "Are the circuits").tables[0].rows()}
    median = np.median([own[name] for name in ("1+1", "2+2", "3+3", "4+4")])
    assert at_06.rows()[2]["median_reliability"] == pytest.approx(median)
    assert "At alpha = 0.6 there are 3 families" in one.answer
    assert "C, equal digit counts ((1, 1), (2, 2), (3, 3) and (4, 4))" in one.answer


def test_the_number_of_families_and_the_band(db: Database, found: Findings) -> None:
    one = answer(found, "How many families")
    assert "Of 16 circuits there are 3 families at alpha = 0.6 and 3 at 0.4" in one.answer
    (row,) = db.family_bands(0.8).rows()
    assert f"appear between alpha = {row['low']:.2f} and {row['high']:.2f} (in the paper" in one.answer
    assert f"{row['n_born']} of 15" in one.answer


def test_commutativity_against_a_sum_by_hand(db: Database, found: Findings) -> None:
    one = answer(found, "Is (a, b) computed")
    values = db.similarity()
    place = {label: i for i, label in enumerate(values.labels)}
    pairs = [(place[f"{a}+{b}"], place[f"{b}+{a}"]) for a in range(2, 5) for b in range(1, a)]
    mean = np.mean([values.matrix[i, j] for i, j in pairs])
    ceiling = np.mean([values.ceiling[i, j] for i, j in pairs])
    assert f"mean similarity of {mean:.2f}" in one.answer
    assert f"where noise allows {ceiling:.2f}, over 6 pairs" in one.answer
    assert f"Corrected for noise that is {mean / ceiling:.2f}" in one.answer
    assert "So they are different circuits, beyond noise" in one.answer
    assert [row["first"] for row in one.tables[0].rows()] == ["2+1", "3+1", "4+1", "3+2", "4+2", "4+3"]
    assert {"reliability_first", "reliability_second", "ceiling"} <= set(one.tables[0].columns)


def test_the_gap_in_accuracy_with_its_standard_error(found: Findings) -> None:
    one = answer(found, "Is (a, b) answered")
    # 0.9 less 0.5 of 20 questions each: sqrt(0.9 * 0.1 / 20 + 0.5 * 0.5 / 20) = 0.1304
    for row in one.tables[0].rows():
        assert row["gap"] == pytest.approx(0.4)
        assert row["stderr"] == pytest.approx(0.130384, abs=1e-6)
    # Fisher's p of 18 and 10 right of 20, times six pairs (Holm).
    p = 6 * fisher_exact([[18, 2], [10, 10]]).pvalue
    assert [row["p_of_all"] for row in one.tables[0].rows()] == pytest.approx([p] * 6)
    said = f"2+1 is answered better than 1+2, standard error 13 points, p = {p:.2g} with all pairs tested together."
    assert f"The largest gap is 40 points: {said}" in one.answer
    assert "6 of 6 gaps are over 20 points." in one.answer
    # All six have one sign: 2 of 2^6 flips are as extreme.
    assert "on average 40 points higher (95% interval 40 to 40 points), p = 0.031 by sign flips" in one.answer


def test_neighbours_that_part(found: Findings) -> None:
    one = answer(found, "Are neighbours")
    # Of the 24 edges of a 4 x 4 grid 12 touch the diagonal, and only these join two families.
    assert "At alpha = 0.6 12 of 24 pairs of neighbours are in different families, corrected for noise 12" in one.answer
    assert "with equal digit counts on one side, 12 of 12" in one.answer
    assert sum(not row["one_family"] for row in one.tables[0].rows()) == 12


def test_similarity_falls_with_distance(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    steps = rng.standard_normal((20, SHAPE.n_edges))
    path = tmp_path / "c.duckdb"
    for a in range(1, 5):
        for b in range(1, 5):
            # A walk over the edges: the further two cells are apart, the fewer steps they share.
            signal = steps[a : a + 4].sum(axis=0) + steps[10 + b : 14 + b].sum(axis=0)
            write(Store(path), circuit(f"{a}+{b}", {"digits_a": a, "digits_b": b}, of=model(shape=SHAPE)), signal, rng)
    found = Database(path).study("arithmetic")
    one = answer(found, "Are circuits less alike")
    matrix = Database(path).similarity().matrix
    cells = np.array([(a, b) for a in range(1, 5) for b in range(1, 5)])
    far = np.abs(cells[:, None] - cells[None]).sum(axis=2)
    upper = np.triu_indices(16, 1)
    rho = float(spearmanr(matrix[upper], far[upper]).statistic)
    assert rho < -0.9
    assert f"Yes: similarity falls with distance by a rank correlation of {rho:.2f} over 16 circuits (p < 0.001" in (
        one.answer
    )
    distances = one.tables[0].rows()
    assert [row["distance"] for row in distances] == [1, 2, 3, 4, 5, 6]
    assert {type(row["distance"]) for row in distances} == {int}
    assert distances[0]["mean_similarity"] == pytest.approx(matrix[far == 1].mean())


def test_stability_as_the_database_gives_it(db: Database, found: Findings) -> None:
    one = answer(found, "Does the model use")
    (row,) = db.stability().rows()
    assert (
        f"mean similarity of {row['stability']:.2f} (95% interval {row['low']:.2f} to {row['high']:.2f})" in one.answer
    )
    assert f"where noise allows {row['ceiling']:.2f}. Corrected for noise that is {row['corrected']:.2f}" in one.answer
    assert "So the subtasks do not all use one circuit." in one.answer


def test_accuracy_and_similarity_are_correlated_as_by_the_database(db: Database, found: Findings) -> None:
    one = answer(found, "Is the model more often right")
    (row,) = db.correlate().rows()
    assert f"is {row['rho']:.2f}".replace("-0.00", "0.00") in one.answer
    assert "over 16 subtasks" in one.answer


def test_hard_circuits(db: Database, found: Findings) -> None:
    one = answer(found, "Which hard circuits")
    rows = db.containment(share=0.1, prune=True).table.to_pylist()
    assert one.commands == ("circuitdb containment --share 0.1 --prune",)
    shares = [row["share_of_a"] for row in rows if row["share_of_a"] is not None]
    assert f"On average {np.mean(shares):.0%} of a circuit's edges" in one.answer
    assert one.tables[0].rows()[0]["share_of_a"] == max(shares)
    # Nothing of these three is on a path, so that they are not pruned.
    none = answer(db.study("arithmetic", subtask=["1+2", "1+3", "1+4"]), "Which hard circuits")
    assert not db.containment(share=0.1, prune=True, subtask=["1+2", "1+3", "1+4"]).n.any()
    assert none.commands[0].endswith("--share 0.1")
    assert "Each circuit is cut to the 48 strongest of 479 edges. On average" in none.answer
    core = answer(found, "Which edges and nodes")
    n_core = sum(row["kind"] == "core" for row in db.inclusion(share=0.1).rows())
    assert f"{n_core} edges are in all 16 circuits (less than 0.01 by chance)" in core.answer
    two = answer(db.study("arithmetic", subtask=["1+1", "2+2"]), "Which edges and nodes")
    # 48 of 479 edges each: 479 * (48 / 479)^2 = 4.81, as `inclusion` has it.
    assert "in all 2 circuits (4.81 by chance)" in two.answer
    assert "(core; 4.81 by chance)" in db.inclusion(share=0.1, subtask=["1+1", "2+2"]).title


def test_one_family_of_all(tmp_path: Path) -> None:
    found = Database(arithmetic(tmp_path / "c.duckdb", digits=3, family=lambda *_: "all")).study("arithmetic")
    assert "At alpha = 0.6 all 9 are of one family." in answer(found, "Which digit counts").answer
    assert "So they may well be one circuit." in answer(found, "Is (a, b) computed").answer
    assert "can't be excluded" in answer(found, "Does the model use").answer


def test_partners_that_belong_together(tmp_path: Path) -> None:
    """Each (a, b) has the circuit of (b, a), and of no other: the exchange of partners tells it."""
    path = arithmetic(tmp_path / "c.duckdb", digits=6, family=lambda a, b: (min(a, b), max(a, b)))
    one = answer(Database(path).study("arithmetic"), "Is (a, b) computed")
    assert "So they may well be one circuit." in one.answer
    assert "They are more alike than circuits whose operands differ by as many digits" in one.answer
    assert "p < 0.001" in one.answer


def test_each_operator_for_itself(tmp_path: Path) -> None:
    path, rng = tmp_path / "c.duckdb", np.random.default_rng(0)
    for operator in "+-":
        for a in (2, 3):
            parameters: Parameters = {"operator": operator, "digits_a": a, "digits_b": 2}
            record = circuit(f"{a}{operator}2", parameters, of=model(shape=SHAPE), task="arithmetic")
            write(Store(path), record, rng.standard_normal(SHAPE.n_edges), rng)
    found = Database(path).study("arithmetic")
    assert {finding.subject for finding in found.findings} == {"+", "-"}
    assert answer(found, "Does the model use", "+").commands[0] == "circuitdb stability --subtask 2+2 --subtask 3+2"


def test_several_models_are_also_compared(tmp_path: Path) -> None:
    found = Database(checkpoints(tmp_path / "c.duckdb")).study("arithmetic")
    subjects = list(dict.fromkeys(finding.subject for finding in found.findings))
    assert [subject.partition(",")[0] for subject in subjects] == [
        "pythia@step1000", "pythia@step8000", "pythia@step64000", "All models",
    ]  # fmt: skip


def test_sixty_four_subtasks_take_seconds(tmp_path: Path) -> None:
    path = arithmetic(tmp_path / "c.duckdb", digits=8)
    start = time.process_time()
    found = Database(path).study("arithmetic")
    assert time.process_time() - start < 20
    assert "Of 64 circuits there are 3 families" in answer(found, "How many families").answer


def test_commands_name_what_is_needed_and_no_more(tmp_path: Path) -> None:
    path = arithmetic(tmp_path / "c.duckdb", digits=2, of=model("a model", SHAPE))
    assert answer(Database(path).study("arithmetic"), "Are the circuits").commands == ("circuitdb reliability",)
    arithmetic(path, digits=2, of=model("another", SHAPE))
    boolean(path)
    found = Database(path).study("arithmetic", model="a model")
    assert answer(found, "Are the circuits").commands == ("circuitdb reliability --model 'a model'",)
    magnitudes = Database(path).study("arithmetic", model="a model", on="magnitude")
    assert answer(magnitudes, "Are the circuits").commands == (
        "circuitdb reliability --model 'a model' --on magnitude",
    )


def test_bad_input_gives_a_sentence(tmp_path: Path, db: Database) -> None:
    with pytest.raises(UsageError, match=re.escape("There is no study 'arithmetics'; did you mean arithmetic?")):
        db.study("arithmetics")
    with pytest.raises(UsageError, match=r"asks about boolean expressions .* but these circuits are of addition"):
        db.study("boolean")
    with pytest.raises(UsageError, match="There is no model nobody"):
        db.study("arithmetic", model="nobody")


def test_a_cell_with_few_questions_is_named_and_compared_like_the_others(tmp_path: Path) -> None:
    rng, store = np.random.default_rng(0), Store(tmp_path / "c.duckdb")
    for a, b in [(1, 1), (1, 2), (2, 1), (2, 2)]:
        record = circuit(f"{a}+{b}", {"digits_a": a, "digits_b": b}, of=model(shape=SHAPE), n_examples=10 * a * b)
        write(store, record, np.ones(SHAPE.n_edges), rng, accuracy=0.5)
    found = Database(tmp_path / "c.duckdb").study("arithmetic")
    rows = answer(found, "Are the circuits").tables[0].rows()
    assert [(row["subtask"], row["n_examples"]) for row in rows] == [("1+1", 10), ("1+2", 20), ("2+1", 20), ("2+2", 40)]
    assert {finding.subject for finding in found.findings} == {""}


def test_what_twelve_exchanges_can_not_tell_is_not_said(tmp_path: Path) -> None:
    """Of 4 digits partners can be exchanged in 12 ways, so p is 1/12 at the least."""
    path = arithmetic(tmp_path / "c.duckdb", digits=4, family=lambda a, b: (min(a, b), max(a, b)))
    one = answer(Database(path).study("arithmetic"), "Is (a, b) computed")
    assert "That they are more alike than circuits whose operands differ by as many digits" in one.answer
    assert "can't be told (" in one.answer
    assert "p = 0.083)" in one.answer


def test_unequal_numbers_of_examples_are_told_where_the_command_parts_by_them(tmp_path: Path) -> None:
    """A cell that has few questions is of the study all the same; `stability` gives it a row of its own."""
    store, rng = Store(tmp_path / "c.duckdb"), np.random.default_rng(0)
    for a, b in ((1, 1), (1, 2), (2, 1), (2, 2)):
        record = circuit(
            f"{a}+{b}", {"digits_a": a, "digits_b": b}, of=model(shape=SHAPE), n_examples=7 if a + b == 2 else 20
        )
        write(store, record, rng.standard_normal(SHAPE.n_edges), rng, accuracy=0.2 * a + 0.1 * b)
    db = Database(store.path)
    found = db.study("arithmetic")
    said = "Here circuits of 7 and 20 examples are taken together; at the terminal each number is a group of its own"
    assert [row["n_pairs"] for row in db.stability().rows()] == [0, 3]
    assert answer(found, "Does the model use one circuit").tables[0].rows()[0]["n_pairs"] == 6
    for question in ("Does the model use one circuit", "Are neighbours", "Is the model more often right where"):
        assert len([one for one in answer(found, question).caveats if one.startswith(said)]) == 1


def test_neighbours_that_noise_hides_are_not_counted_as_apart(tmp_path: Path) -> None:
    """The folds of 1+2 contradict each other, so that nothing corrected is known of two of the four pairs."""
    rng, store = np.random.default_rng(0), Store(tmp_path / "c.duckdb")
    signal = rng.standard_normal(SHAPE.n_edges)
    for a, b in ((1, 1), (1, 2), (2, 1), (2, 2)):
        record = circuit(f"{a}+{b}", {"digits_a": a, "digits_b": b}, of=model(shape=SHAPE))
        if (a, b) == (1, 2):
            noise = 5 * rng.standard_normal(SHAPE.n_edges)
            store.write(record, 0.2 * signal + 0.3 * noise, np.stack([signal + noise, signal - noise]))
        else:
            write(store, record, signal, rng)
    said = answer(Database(store.path).study("arithmetic"), "Are neighbours").answer
    assert "2 of 4 pairs of neighbours are in different families, corrected for noise 0 of the 2 that can be" in said
