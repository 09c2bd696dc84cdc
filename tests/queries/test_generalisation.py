from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from circuitdb.errors import UsageError
from circuitdb.queries import Database
from circuitdb.store import Store
from stores import SHAPE, circuit, model

RNG = np.random.default_rng(0)


def test_commutativity_has_every_swapped_pair_once(db: Database) -> None:
    found = db.commutativity()
    rows = found.rows()
    assert [(row["a"], row["b"]) for row in rows] == [("1+2", "2+1"), ("1+3", "3+1"), ("2+3", "3+2")]
    whole = db.similarity()
    place = {label: i for i, label in enumerate(whole.labels)}
    for row in rows:
        pair = place[str(row["a"])], place[str(row["b"])]
        assert row["similarity"] == whole.matrix[pair]
        assert row["ceiling"] == whole.ceiling[pair]
        assert row["corrected"] == whole.corrected[pair]
    # 1 / (a + b) right: the same for both.
    assert [rows[0]["accuracy_a"], rows[0]["accuracy_b"]] == pytest.approx([1 / 3, 1 / 3])
    assert rows[0]["accuracy_gap"] == pytest.approx(0, abs=1e-12)
    pairs = [(place[str(row["a"])], place[str(row["b"])]) for row in rows]
    upper = [(i, j) for i in range(9) for j in range(i + 1, 9) if (i, j) not in pairs]
    mean, rest = (np.mean([whole.matrix[pair] for pair in some]) for some in (pairs, upper))
    limit, others = (np.mean([whole.ceiling[pair] for pair in some]) for some in (pairs, upper))
    said = f"Mean similarity {mean:.3f} over 3 such pairs (mean ceiling {limit:.3f}); "
    assert found.notes[-1] == f"{said}{rest:.3f} over the 33 others (mean ceiling {others:.3f})."
    assert found.title == "Commutativity of digits_a and digits_b, 3 pairs: Spearman's rho, signed scores"
    named = db.commutativity(["digits_b", "digits_a"])
    assert [row["similarity"] for row in named.rows()] == [row["similarity"] for row in rows]


def test_two_circuits_of_one_subtask_are_no_other_pair(tmp_path: Path) -> None:
    """They say how well it was measured, and nothing of how alike two subtasks are."""
    store = Store(tmp_path / "c.duckdb")
    for salt, a, b in (("", 1, 2), ("", 2, 1), ("", 3, 3), ("again", 3, 3)):
        one = circuit(f"{a}+{b}", {"a": a, "b": b}, salt=salt)
        store.write(one, RNG.standard_normal(SHAPE.n_edges))
    db = Database(store.path)
    matrix = db.similarity().matrix
    rest = np.mean([matrix[0, 2], matrix[0, 3], matrix[1, 2], matrix[1, 3]])
    said = f"Mean similarity {matrix[0, 1]:.3f} over 1 such pair; {rest:.3f} over the 4 others."
    assert db.commutativity().notes[-1] == said


def test_neighbours_differ_by_one_in_one_parameter(db: Database) -> None:
    rows = db.neighbours().rows()
    expected = {
        (f"{a}+{b}", f"{a + da}+{b + db_}", "digits_a" if da else "digits_b")
        for a in (1, 2, 3)
        for b in (1, 2, 3)
        for da, db_ in ((1, 0), (0, 1))
        if a + da <= 3 and b + db_ <= 3
    }
    assert len(rows) == 12
    assert {(row["a"], row["b"], row["parameter"]) for row in rows} == expected
    assert {row["parameter"] for row in db.neighbours(["digits_b"]).rows()} == {"digits_b"}
    one = next(row for row in rows if (row["a"], row["b"]) == ("1+1", "2+1"))
    assert one["accuracy_gap"] == pytest.approx(1 / 2 - 1 / 3)


def test_a_pair_never_mixes_groups_and_accuracy_may_be_unknown(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    for name in ("one", "two"):
        for a, b in ((1, 2), (2, 1)) if name == "one" else ((1, 2),):
            one = circuit(f"{a}+{b}", {"a": a, "b": b}, of=model(name))
            store.write(one, RNG.standard_normal(SHAPE.n_edges))
    found = Database(tmp_path / "c.duckdb").commutativity()
    (row,) = found.rows()
    assert (row["model"], row["a"], row["b"], row["accuracy_a"], row["accuracy_gap"]) == (
        "one",
        "1+2",
        "2+1",
        None,
        None,
    )
    assert len(Database(tmp_path / "c.duckdb").neighbours()) == 0
    assert Database(tmp_path / "c.duckdb").neighbours().notes[-1] == "No two circuits of one group are such a pair."


def test_pairs_of_unequal_numbers_of_examples_are_not_left_out_silently(tmp_path: Path) -> None:
    """A subtask that has few questions is scored on fewer: its circuit is of another group."""
    store = Store(tmp_path / "c.duckdb")
    for a, b, n in ((1, 1, 7), (1, 2, 12), (2, 1, 12)):
        store.write(circuit(f"{a}+{b}", {"a": a, "b": b}, n_examples=n), RNG.standard_normal(SHAPE.n_edges))
    db = Database(store.path)
    said = "2 more such pairs are left out, whose circuits have different numbers of examples (7, 12); `similarity`"
    assert db.neighbours().rows() == []
    assert [note for note in db.neighbours().notes if "left out" in note] == [f"{said} compares them."]
    assert not any("left out" in note for note in db.commutativity().notes)
    store.write(circuit("1+1", {"a": 1, "b": 1}, salt="more", n_examples=12), RNG.standard_normal(SHAPE.n_edges))
    assert not any("left out" in note for note in db.neighbours().notes)  # the same two subtasks are there
    assert len(db.neighbours()) == 2


def test_every_circuit_of_a_subtask_is_a_partner(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    for i, (a, b) in enumerate(((1, 2), (1, 2), (2, 1), (2, 2))):
        store.write(circuit(f"{a}+{b}", {"a": a, "b": b}, salt=str(i)), RNG.standard_normal(SHAPE.n_edges))
    db = Database(tmp_path / "c.duckdb")
    assert {(row["a_id"], row["b_id"]) for row in db.commutativity().rows()} == {(1, 3), (2, 3)}
    assert {(row["a_id"], row["b_id"]) for row in db.neighbours(["a"]).rows()} == {(1, 4), (2, 4)}


def test_other_parameters_must_be_equal(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    for a, b, base in ((1, 2, 10), (2, 1, 10), (2, 1, 2), (1, 1, 3)):
        store.write(circuit(f"{a}+{b} in {base}", {"a": a, "b": b, "base": base}), RNG.standard_normal(SHAPE.n_edges))
    db = Database(tmp_path / "c.duckdb")
    with pytest.raises(UsageError, match="of a, b, base name two"):
        db.commutativity()
    assert [(row["a"], row["b"]) for row in db.commutativity(["a", "b"]).rows()] == [("1+2 in 10", "2+1 in 10")]
    assert db.neighbours().rows() == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["digits_a"], "exchanges two parameters, not digits_a; name two"),
        (["digits_a", "digit_b"], "has a parameter 'digit_b'; did you mean digits_b"),
        (["digits_a", "model"], "has a parameter 'model'"),
    ],
)
def test_what_is_no_pair_of_parameters_is_refused(db: Database, given: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        db.commutativity(given)


def test_of_an_empty_database(tmp_path: Path) -> None:
    Store(tmp_path / "c.duckdb").create()
    db = Database(tmp_path / "c.duckdb")
    assert len(db.commutativity()) == len(db.neighbours()) == 0
