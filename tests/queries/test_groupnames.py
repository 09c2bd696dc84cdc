"""Groups are told apart by what they differ in, and by nothing that they lack."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from circuitdb.queries import Database
from circuitdb.queries.groupnames import group_names
from circuitdb.queries.selection import Group
from circuitdb.records import Accuracy
from circuitdb.store import Store
from stores import SHAPE, circuit

ONE = Group(
    model_id=1, model="tiny", revision=None, task="addition", method="eap-ig", steps=5, grid="right", metric="kl",
    positions="last", contrast=None, ablation="patching", sign_convention="drop", prompt_style="few-shot", shots=3,
    seed=0, examples=8, dtype=None,
)  # fmt: skip


def test_a_group_alone_is_its_model_and_task() -> None:
    assert group_names([ONE]) == {ONE: "tiny, addition"}
    assert group_names([ONE], task=False) == {ONE: "tiny"}
    assert group_names([]) == {}


def test_a_field_is_named_where_groups_of_one_model_and_task_differ() -> None:
    other = replace(ONE, model_id=2, model="big", shots=0)  # the model says it all
    assert list(group_names([ONE, other]).values()) == ["tiny, addition", "big, addition"]
    assert list(group_names([ONE, replace(ONE, shots=0), other]).values()) == [
        "tiny, addition, shots 3", "tiny, addition, shots 0", "big, addition, shots 0",
    ]  # fmt: skip


def test_what_a_group_has_not_is_not_in_its_name() -> None:
    plain = replace(ONE, method="eap", steps=None, grid=None)
    typed = replace(ONE, dtype="bfloat16")
    assert list(group_names([ONE, plain, typed]).values()) == [
        "tiny, addition, method eap-ig, steps 5, grid right",
        "tiny, addition, method eap",
        "tiny, addition, method eap-ig, steps 5, grid right, dtype bfloat16",
    ]


def test_no_answer_says_none(tmp_path: Path) -> None:
    """Two methods, of which one has no steps, in every answer that tells groups apart."""
    store, rng = Store(tmp_path / "c.duckdb"), np.random.default_rng(0)
    for method, steps in (("eap", None), ("eap-ig", 5)):
        for name, a, b in (("1+2", 1, 2), ("2+1", 2, 1)):
            one = replace(circuit(name, {"a": a, "b": b}, salt=method), method=method, steps=steps)
            folds = rng.standard_normal((2, SHAPE.n_edges))
            store.write(one, folds.mean(0), folds, accuracy=Accuracy(0.5, None, 8))
    db = Database(tmp_path / "c.duckdb")
    labels = {"tiny, addition, method eap", "tiny, addition, method eap-ig, steps 5"}
    assert {row["of"] for row in db.correlate().rows()} == labels
    for answer in (db.correlate(), db.commutativity()):
        assert {note.partition(": ")[0] for note in answer.notes if "median reliability" in note} == labels
    for answer in (db.stability(), db.stability(by="steps"), db.correlate(), db.neighbours(), db.commutativity()):
        assert not any("None" in text for text in (answer.title, *answer.notes))
