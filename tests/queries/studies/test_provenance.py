"""A study says what its circuits come from; and the accuracy is the greedy one where there are several."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np

from circuitdb.connection import reading
from circuitdb.queries import Database, named
from circuitdb.records import Accuracy, Circuit
from circuitdb.store import Store
from planted import SHAPE
from stores import circuit, model


def test_models_runs_and_versions(tmp_path: Path) -> None:
    store, rng = Store(tmp_path / "c.duckdb"), np.random.default_rng(0)
    for i, (name, a) in enumerate((("one", 1), ("one", 2), ("two", 1), ("two", 2))):
        record: Circuit = replace(
            circuit(f"{a}+1", {"digits_a": a, "digits_b": 1}, of=model(name, SHAPE), n_examples=10 + i),
            n_skipped=6 - i, started_at=datetime(2026, 1, 1 + i), software={"torch": "2.13", "circuitdb": f"0.{i}"},
        )  # fmt: skip
        store.write(record, rng.standard_normal(SHAPE.n_edges))
    found = Database(store.path).study("arithmetic")
    models, runs, software = (table.rows() for table in found.provenance)
    assert [(row["model"], row["weights_digest"], row["n_circuits"]) for row in models] == [
        ("one", "digest of one", 2), ("two", "digest of two", 2),
    ]  # fmt: skip
    assert {row["method"] for row in runs} == {"eap-ig"}
    assert sum(int(str(row["n_examples"])) for row in runs) == 10 + 11 + 12 + 13
    assert sum(int(str(row["n_skipped"])) for row in runs) == 6 + 5 + 4 + 3
    assert {row["seed"] for row in runs} == {0}
    assert {row["software"]: row["version"] for row in software} == {"torch": "2.13", "circuitdb": "0.0, 0.1, 0.2, 0.3"}


def test_the_greedy_accuracy_is_taken(tmp_path: Path) -> None:
    store, rng = Store(tmp_path / "c.duckdb"), np.random.default_rng(0)
    scores = rng.standard_normal(SHAPE.n_edges)
    own = [
        store.write(circuit(name, of=model(shape=SHAPE)), scores, accuracy=Accuracy(0.25, None, 8, filter=how))
        for name, how in (("a", "greedy"), ("b", "choice"))
    ]
    import duckdb

    with duckdb.connect(str(store.path)) as connection:
        connection.execute(
            "INSERT INTO evaluation BY NAME SELECT * REPLACE ('choice' AS filter, 0.75 AS value) FROM evaluation "
            "WHERE circuit_id = ?",
            [own[0]],
        )
    with reading(str(store.path)) as connection:
        rows = named.run(connection, "accuracies", circuits=own).to_pylist()
    assert [(row["circuit_id"], row["value"], row["filter"], row["n"]) for row in rows] == [
        (own[0], 0.25, "greedy", 8), (own[1], 0.25, "choice", 8),
    ]  # fmt: skip
