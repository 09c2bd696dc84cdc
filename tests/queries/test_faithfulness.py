"""Curves of faithfulness, the areas under them, and the matrix across conditions, by hand and against SciPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import integrate

from circuitdb.errors import UsageError
from circuitdb.queries import Database
from circuitdb.queries.faithfulness import areas
from circuitdb.records import SHARES, Faithfulness
from circuitdb.store import Store
from stores import SHAPE, circuit


def run(
    cut: int, data: int, share: float, f: float | None, *, selection: str = "top-absolute", n_tied: int = 0,
    accuracy: float | None = None,
) -> Faithfulness:  # fmt: skip
    """A run whose metric goes from 2 (clean) to 10 (every edge ablated)."""
    return Faithfulness(
        circuit_id=cut, data_circuit_id=data, share=share, n_edges=int(share * SHAPE.n_edges), n_tied=n_tied,
        selection=selection, ablation="patching", metric="kl", value=None if f is None else 10 - 8 * f, clean=2.0,
        corrupted=10.0, faithfulness=f, reason="the metric is not finite" if f is None else None, n_examples=8,
        accuracy=accuracy,
    )  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Three circuits: 1+1, 1+2 and 2+2."""
    found = Store(tmp_path / "c.duckdb")
    for i, name in enumerate(("1+1", "1+2", "2+2")):
        found.write(circuit(name, {"digits": i}), np.arange(SHAPE.n_edges, dtype=np.float32))
    return found


def test_a_circuit_that_does_all_at_every_size_has_the_areas_of_the_benchmark() -> None:
    found = areas(np.array(SHARES), np.ones(10))
    assert found.cpr == pytest.approx(0.999, rel=1e-12)
    assert found.cmd == 0


def test_areas_by_hand() -> None:
    """0.4 (0 + 0.5)/2 + 0.5 (0.5 + 1.5)/2 = 0.6, and of the distances 1, 0.5, 0.5: 0.4 x 0.75 + 0.5 x 0.5 = 0.55."""
    found = areas(np.array([0.1, 0.5, 1.0]), np.array([0.0, 0.5, 1.5]))
    assert (found.cpr, found.cmd) == pytest.approx((0.6, 0.55), rel=1e-12)


def test_areas_of_random_curves_equal_scipys() -> None:
    curves = np.random.default_rng(0).normal(size=(20, 10))
    for curve in curves:
        found = areas(np.array(SHARES), curve)
        assert found.cpr == pytest.approx(integrate.trapezoid(curve, SHARES), rel=1e-12)
        assert found.cmd == pytest.approx(integrate.trapezoid(abs(1 - curve), SHARES), rel=1e-12)


@pytest.mark.parametrize("curve", [[], [0.5]])
def test_one_size_has_no_area(curve: list[float]) -> None:
    found = areas(np.array(SHARES[: len(curve)]), np.array(curve))
    assert np.isnan([found.cpr, found.cmd]).all()


def test_a_row_a_run_with_its_labels(store: Store) -> None:
    store.write_faithfulness([run(1, 1, 0.5, 0.75, accuracy=0.25), run(3, 1, 0.1, -0.5), run(1, 1, 0.1, 0.5, n_tied=3)])
    found = Database(store.path).faithfulness()
    assert found.title == "Faithfulness of 2 circuits"
    assert (found.result().rows(), found.result().title, found.result().notes) == (
        found.rows(), found.title, found.notes
    )  # fmt: skip
    assert [
        (row["label"], row["data"], row["circuit_id"], row["data_circuit_id"], row["share"], row["faithfulness"])
        for row in found.arrow().to_pylist()
    ] == [("1+1", "1+1", 1, 1, 0.1, 0.5), ("1+1", "1+1", 1, 1, 0.5, 0.75), ("2+2", "1+1", 3, 1, 0.1, -0.5)]
    second = found.arrow().to_pylist()[1]
    assert (second["value"], second["clean"], second["corrupted"], second["accuracy"]) == (4.0, 2.0, 10.0, 0.25)
    assert found.notes == (
        "Not run yet: 1 of 3 circuits; `circuitdb faithfulness --load MODEL` does it.",
        "Of edges with equal scores those of lower id are kept; that decides in 1 cut.",
    )


def test_filters_choose_circuits_and_the_examples_they_were_run_on(store: Store) -> None:
    store.write_faithfulness([run(1, 1, 1.0, 1), run(1, 2, 1.0, 0.5), run(2, 1, 1.0, 0.25), run(2, 2, 1.0, 1)])
    db = Database(store.path)
    assert [row["faithfulness"] for row in db.faithfulness(circuits=[1]).arrow().to_pylist()] == [1]
    assert db.faithfulness(circuits=[1]).title == "Faithfulness of 1 circuit"
    assert len(db.faithfulness(subtask=["1+1", "1+2"]).arrow()) == 4
    assert len(db.faithfulness(circuits=[3]).arrow()) == 0


def test_selections_are_told_apart(store: Store) -> None:
    store.write_faithfulness([run(1, 1, 1.0, 1), run(1, 1, 1.0, 0.5, selection="top-signed")])
    db = Database(store.path)
    for selection, value in (("top-absolute", 1), ("top-signed", 0.5)):
        (row,) = (found := db.faithfulness(selection=selection)).arrow().to_pylist()
        assert (row["selection"], row["faithfulness"]) == (selection, value)
        assert found.title == f"Faithfulness of 1 circuit, edges chosen {selection}"
    assert len(db.faithfulness().wide()) == 2
    with pytest.raises(UsageError, match="There is no selection 'best'; choose one of top-absolute, top-signed"):
        db.faithfulness(selection="best")


def test_a_row_a_curve(store: Store) -> None:
    curve = (0.0,) * 6 + (0.0, 0.25, 0.5, 1.5)
    store.write_faithfulness([run(1, 1, share, f) for share, f in zip(SHARES, curve, strict=True)])
    store.write_faithfulness([run(1, 1, 0.3, 9.0)])  # no size of the benchmark: no part of its areas
    store.write_faithfulness([run(2, 2, share, 1.0) for share in SHARES[1:]])
    found = Database(store.path).faithfulness().wide()
    sizes = ["0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1", "0.2", "0.3", "0.5", "1"]
    assert found.columns == ["label", "selection", "cpr", "cmd", *sizes]
    first, second = found.rows()
    assert (first["label"], first["0.1"], first["0.3"], first["0.5"], first["1"]) == ("1+1", 0.0, 9.0, 0.5, 1.5)
    # .1 x .125 + .3 x .375 + .5 x 1; and .099 x 1 + .1 x .875 + .3 x .625 + .5 x .5
    assert (first["cpr"], first["cmd"]) == pytest.approx((0.625, 0.624), rel=1e-12)
    assert (second["0.001"], second["cpr"], second["cmd"]) == (None, None, None)  # an area over other sizes misleads
    assert found.notes[-1].endswith("1 of 2 curves lack some of them.")


def test_the_benchmarks_grid_needs_no_warning_and_data_of_others_are_named(store: Store) -> None:
    store.write_faithfulness([run(1, 2, share, 1.0) for share in SHARES])
    found = Database(store.path).faithfulness().wide()
    (row,) = found.rows()
    assert (row["label"], row["data"], row["cpr"], row["cmd"]) == ("1+1", "1+2", pytest.approx(0.999), 0.0)
    assert not any("MIB" in note for note in found.notes)


def test_a_size_without_a_value_leaves_the_areas_out(store: Store) -> None:
    store.write_faithfulness([run(1, 1, share, None if share == 0.5 else 1.0) for share in SHARES])
    (row,) = Database(store.path).faithfulness().wide().rows()
    assert (row["0.1"], row["0.5"], row["1"], row["cpr"], row["cmd"]) == (1.0, None, 1.0, None, None)


def test_across_is_a_matrix_of_circuits_by_data(store: Store) -> None:
    store.write_faithfulness(
        [run(c, d, s, c - d / 4 + s) for c in (1, 3) for d in (1, 2, 3) for s in (0.1, 1.0)]
    )  # fmt: skip
    found = Database(store.path).faithfulness().across(0.1)
    assert found.title.endswith("at 0.1 of the edges, circuit of the row on examples of the column")
    rows = found.rows()
    assert [row["label"] for row in rows] == ["1+1", "1+2", "2+2"]
    assert [[row[name] for name in ("1+1", "1+2", "2+2")] for row in rows] == [
        pytest.approx([0.85, 0.6, 0.35]),
        [None, None, None],
        pytest.approx([2.85, 2.6, 2.35]),
    ]


def test_a_matrix_of_one_size_and_one_selection_alone(store: Store) -> None:
    db = Database(store.path)
    with pytest.raises(UsageError, match="No circuit was run yet; `circuitdb faithfulness --load MODEL` does it"):
        db.faithfulness().across(0.1)
    store.write_faithfulness([run(1, 1, 0.1, 1.0), run(1, 1, 0.1, 0.5, selection="top-signed"), run(1, 1, 1.0, 1.0)])
    with pytest.raises(UsageError, match=r"No circuit was run at 0.3 of its edges; there are 0.1, 1\."):
        db.faithfulness().across(0.3)
    with pytest.raises(UsageError, match="cut in two ways here; choose --selection top-absolute or top-signed"):
        db.faithfulness().across(0.1)
    assert db.faithfulness(selection="top-signed").across(0.1).rows()[0]["1+1"] == 0.5


def test_nothing_run_is_an_empty_table(store: Store) -> None:
    found = Database(store.path).faithfulness()
    assert (len(found.arrow()), len(found.wide())) == (0, 0)
    assert found.title == "Faithfulness of 0 circuits"
