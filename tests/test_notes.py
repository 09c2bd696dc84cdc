"""Notes: whose they are, that they are found, changed and deleted one by one, and what is refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pytest

from circuitdb import migrations, notes, sqlfiles
from circuitdb.errors import MissingDatabase, StoreError, UsageError
from circuitdb.graph import GraphShape
from circuitdb.queries import Database
from circuitdb.store import Store
from stores import SHAPE, circuit, model


@pytest.fixture
def path(shared_store: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(shared_store, tmp_path / "c.duckdb"))


def told(path: Path) -> list[tuple[object, ...]]:
    """(number, circuit, node, edge, text) of each note."""
    keys = ("note_id", "circuit_id", "node", "edge", "text")
    return [tuple(row[key] for key in keys) for row in Database(path).notes().rows()]


def test_a_note_on_each_kind_of_thing(path: Path) -> None:
    assert notes.add(path, "  whole circuit\n", circuit=1) == 1
    assert notes.add(path, "a head", circuit=2, about="a0.h1") == 2
    assert notes.add(path, "an edge", circuit=2, about="a0.h1->logits") == 3
    assert notes.add(path, "everywhere", about=" m1 ") == 4
    assert told(path) == [
        (1, 1, None, None, "whole circuit"),
        (2, 2, "a0.h1", None, "a head"),
        (3, 2, None, "a0.h1->logits", "an edge"),
        (4, None, "m1", None, "everywhere"),
    ]
    rows = Database(path).notes().rows()
    assert [(row["model"], row["task"], row["subtask"], row["method"]) for row in rows] == [
        ("tiny", "addition", "1+1", "eap-ig"), ("tiny", "addition", "1+2", "eap-ig"),
        ("tiny", "addition", "1+2", "eap-ig"), (None, None, None, None),
    ]  # fmt: skip
    assert all(row["created_at"] is not None and row["changed_at"] is None for row in rows)


def test_filters_leave_the_notes_on_circuits(path: Path) -> None:
    for number in (1, 2, 3):
        notes.add(path, f"on {number}", circuit=number)
    notes.add(path, "everywhere", about="input")
    found = Database(path).notes(subtask=["1+1", "1+3"])
    assert [row["text"] for row in found.rows()] == ["on 1", "on 3"]
    assert found.title == "2 notes"


def test_one_is_changed_and_one_deleted_and_no_number_comes_again(path: Path) -> None:
    for text in ("one", "two", "three"):
        notes.add(path, text, circuit=1)
    notes.change(path, 2, "two, rather\nin two lines")
    notes.delete(path, 3)
    assert notes.add(path, "four", circuit=1) == 4
    assert [(number, text) for number, *_, text in told(path)] == [
        (1, "one"), (2, "two, rather\nin two lines"), (4, "four"),
    ]  # fmt: skip
    assert [row["changed_at"] is not None for row in Database(path).notes().rows()] == [False, True, False]


def test_odd_words_are_kept_as_they_are(path: Path) -> None:
    text = '\'; DROP TABLE note; -- [red]\x1b[31m 日本語 "q" $text'
    notes.add(path, text, circuit=1)
    assert told(path)[0][-1] == text


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param({"text": " \n", "circuit": 1}, "The note has no words", id="no words"),
        pytest.param({"text": "a\0", "circuit": 1}, "a character that is no text", id="NUL"),
        pytest.param({"text": "a\udc80", "circuit": 1}, "a character that is no text", id="half a surrogate"),
        pytest.param({"text": "a"}, "What is the note about\\?", id="about nothing"),
        pytest.param({"text": "a", "about": "  "}, "What is the note about\\?", id="about blanks"),
        pytest.param({"text": "a", "circuit": 10}, "There is no circuit 10; `circuitdb circuits`", id="circuit"),
        pytest.param({"text": "a", "circuit": 2**40}, "There is no circuit 1099511627776", id="big number"),
        pytest.param(
            {"text": "a", "circuit": 1, "about": "a0.h9"}, "no node a0.h9 in circuit 1; did you mean a0.h", id="node"
        ),
        pytest.param(
            {"text": "a", "about": "a0.h1->logit"}, "no edge a0.h1->logit; did you mean a0.h1->logits", id="edge"
        ),
        pytest.param({"text": "a", "about": "%"}, "There is no node %; nodes are called like a0.h1", id="far"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_written(path: Path, given: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        notes.add(path, **given)  # type: ignore[arg-type]
    assert told(path) == []


def test_a_node_of_another_graph_is_not_in_this_circuit(path: Path) -> None:
    shape = GraphShape(n_layers=3, n_heads=4)
    number = Store(path).write(circuit("big", of=model("big", shape)), np.ones(shape.n_edges, np.float32))
    notes.add(path, "there", circuit=number, about="a2.h3")
    notes.add(path, "somewhere", about="a2.h3")
    with pytest.raises(UsageError, match=r"no node a2\.h3 in circuit 1; did you mean a1\.h"):
        notes.add(path, "not there", circuit=1, about="a2.h3")


@pytest.mark.parametrize("number", [0, -1, 7, 2**40])
def test_a_number_of_no_note(path: Path, number: int) -> None:
    notes.add(path, "one", circuit=1)
    for act in (partial(notes.change, path, number, "x"), partial(notes.delete, path, number)):
        with pytest.raises(UsageError, match=f"There is no note {number}; `circuitdb notes` lists"):
            act()
    assert told(path) == [(1, 1, None, None, "one")]


def test_no_file_is_made_for_a_note(tmp_path: Path) -> None:
    for act in (
        lambda: notes.add(tmp_path / "none", "x", circuit=1),
        lambda: notes.change(tmp_path / "none", 1, "x"),
        lambda: notes.delete(tmp_path / "none", 1),
    ):
        with pytest.raises(MissingDatabase, match="There is no database"):
            act()
    with pytest.raises(StoreError, match="is a folder"):
        notes.add(tmp_path, "x", circuit=1)
    assert list(tmp_path.iterdir()) == []


def test_a_replaced_circuit_hands_its_notes_on(path: Path) -> None:
    notes.add(path, "kept", circuit=5)
    scores = np.linspace(0, 1, SHAPE.n_edges, dtype=np.float32)
    record = replace(circuit("2+2", {"digits_a": 2, "digits_b": 2}), n_examples=8)
    written = Store(path).write(record, scores, replace=True)
    assert [row[1:] for row in told(path)] == [(written, None, None, "kept")]


def test_notes_of_older_files_get_numbers(tmp_path: Path) -> None:
    file = tmp_path / "old.duckdb"
    names = sqlfiles.names("circuitdb.schema")
    with duckdb.connect(str(file)) as connection:
        for number, name in enumerate(names, start=1):
            if name < "013":
                connection.execute(sqlfiles.load("circuitdb.schema", name))
                connection.execute("INSERT INTO schema_version (version, name) VALUES (?, ?)", [number, name])
        connection.execute("INSERT INTO note (node, text) VALUES ('m0', 'first'), ('m1', 'second')")
        migrations.migrate(connection, str(file))
    notes.change(file, 2, "second, changed")
    assert told(file) == [(1, None, "m0", None, "first"), (2, None, "m1", None, "second, changed")]
