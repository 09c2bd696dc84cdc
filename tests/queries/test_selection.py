from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from circuitdb.connection import reading
from circuitdb.errors import UsageError
from circuitdb.graph import GraphShape
from circuitdb.queries import Database
from circuitdb.queries.filters import Where
from circuitdb.queries.selection import Selection, select
from circuitdb.records import Circuit, Subtask
from circuitdb.store import Store
from stores import SHAPE, circuit, model


def write(path: Path, *circuits: Circuit) -> Path:
    """Store circuits of random scores, each its own unless the spec says so."""
    store = Store(path)
    for i, one in enumerate(circuits):
        rng = np.random.default_rng(i)
        store.write(one, rng.standard_normal(one.model.shape.n_edges).astype(np.float32))
    return path


def chosen(path: Path, where: Where | None = None) -> Selection:
    with reading(path) as connection:
        return select(connection, where or {})


def sums(*cells: tuple[int, int], salt: str = "") -> list[Circuit]:
    return [circuit(f"{a}+{b}", {"digits_a": a, "digits_b": b}, salt=salt) for a, b in cells]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        pytest.param({}, (1, 2, 3, 4, 5, 6, 7, 8, 9), id="all"),
        pytest.param({"subtask": "2+2"}, (5,), id="one-name"),
        pytest.param({"subtask": ["2+2", "1+3"]}, (3, 5), id="two-names"),
        pytest.param({"circuits": [9, 1]}, (1, 9), id="ids"),
        pytest.param({"circuits": 4, "model": "tiny", "method": "eap-ig"}, (4,), id="together"),
        pytest.param({"model": None, "subtask": [], "circuits": ()}, (1, 2, 3, 4, 5, 6, 7, 8, 9), id="empty-filters"),
    ],
)
def test_filters(path: Path, where: Where, ids: tuple[int, ...]) -> None:
    assert chosen(path, where).ids == ids


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"model": "tinny"}, "There is no model tinny; did you mean tiny? The database has: tiny."),
        ({"task": "zzz"}, "There is no task zzz. The database has: addition."),
        ({"method": "eapig"}, "There is no method eapig; did you mean eap-ig? The database has: eap-ig."),
        (
            {"subtask": ["1+1", "4+4"]},
            "There is no subtask 4+4. The database has: 1+1, 1+2, 1+3, 2+1, 2+2, 2+3, 3+1, 3+2, 3+3.",
        ),
        ({"circuits": 12}, "There is no circuit 12. The database has: 1, 2, 3, 4, 5, 6, 7, 8, 9."),
        (
            {"circuits": [1], "subtask": "2+2"},
            "No circuit has circuit 1 and subtask 2+2: the names exist, but not together; drop a filter.",
        ),
    ],
)
def test_wrong_names_are_answered_with_the_right_ones(path: Path, where: Where, message: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        chosen(path, where)


def test_unknown_filters_are_refused(db: Database) -> None:
    with pytest.raises(TypeError, match="no filter 'modle'; filters are model, task"):
        db.circuits(modle="tiny")  # type: ignore[call-arg]


def test_a_name_that_adds_nothing_is_noted(tmp_path: Path) -> None:
    other = replace(circuit("7+7", of=model("other")))
    path = write(tmp_path / "c.duckdb", *sums((1, 1)), other)
    notes = chosen(path, {"model": "tiny", "subtask": ["1+1", "7+7"]}).notes
    assert notes == ("No circuit of the selection has subtask 7+7.",)


def test_an_empty_database_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "c.duckdb"
    Store(path).create()
    found = chosen(path, {"model": "tiny"})
    assert found.members == ()
    assert found.notes == ("The database holds no circuit yet; `circuitdb ingest` fills it.",)


def test_numbers_sort_as_numbers(tmp_path: Path) -> None:
    named = [circuit(name, task="parts") for name in ("part 10", "part 2")]
    path = write(tmp_path / "c.duckdb", *sums((10, 1), (1, 10), (2, 1), (1, 2)), *named)
    labels = ["addition/1+2", "addition/1+10", "addition/2+1", "addition/10+1", "parts/part 2", "parts/part 10"]
    assert list(chosen(path).labels) == labels


def test_labels_say_what_differs(tmp_path: Path) -> None:
    one = circuit("1+1", salt="a")
    path = write(
        tmp_path / "c.duckdb",
        one,
        circuit("1+1", salt="b"),
        replace(one, method="eap", spec={"x": 1}),
        replace(one, model=model("other"), spec={"x": 2}),
    )
    assert chosen(path).labels == ("other/eap-ig/1+1", "tiny/eap/1+1", "tiny/eap-ig/1+1#1", "tiny/eap-ig/1+1#2")
    assert chosen(path, {"model": "other"}).labels == ("1+1",)


def test_groups_part_what_must_not_be_compared(tmp_path: Path) -> None:
    one = circuit("1+1")
    others = [
        replace(one, steps=10, spec={"x": 1}),
        replace(one, metric="logit-difference", spec={"x": 2}),
        replace(one, prompt_style="zero-shot", shots=0, spec={"x": 3}),
        replace(one, subtask=Subtask("addition", "1+2"), spec={"x": 4}),
    ]
    found = chosen(write(tmp_path / "c.duckdb", one, *others))
    assert sorted(part.ids for part in found.groups().values()) == [(1, 5), (2,), (3,), (4,)]
    assert found.compared().notes == (
        "The selection mixes 2 numbers of steps (5, 10) and 2 metrics (kl, logit-difference) and 2 prompt styles "
        "(few-shot, zero-shot) and 2 numbers of shots (3, 0): a low similarity may come from that alone.",
    )


def test_ways_to_ask_are_never_mixed_unsaid(tmp_path: Path) -> None:
    """Each alone parts the circuits; a limit of reasoning tokens is not said again where prompt styles are compared."""
    one = replace(circuit("1+1"), chat=False, shots_drawn="fixed")
    thought = replace(one, prompt_style="chain-of-thought", reasoning_tokens=64, spec={"x": 1})
    ways = [
        one,
        thought,
        replace(thought, reasoning_tokens=32, spec={"x": 2}),
        replace(one, chat=True, spec={"x": 3}),
        replace(one, shots_drawn="per-example", spec={"x": 4}),
    ]
    path = write(tmp_path / "c.duckdb", *ways)
    found = chosen(path)
    assert sorted(part.ids for part in found.groups().values()) == [(1,), (2,), (3,), (4,), (5,)]
    (note,) = found.compared().notes
    for mixed in (
        "2 prompt styles (few-shot, chain-of-thought)", "2 ways of drawing shots (fixed, per-example)",
        "3 limits of reasoning tokens (none, 64, 32)", "2 choices of chat template (no, yes)",
    ):  # fmt: skip
        kinds = note.removeprefix("The selection mixes ").split(":")[0].split(" and ")
        assert sorted(mixed) in [sorted(kind) for kind in kinds]
    assert chosen(path, {"circuits": [1, 2]}).compared(apart_from="prompt_style").notes == ()
    assert chosen(path, {"chat": "yes"}).ids == (4,)
    assert chosen(path, {"chat": "no", "prompt_style": "chain-of-thought", "reasoning_tokens": 32}).ids == (3,)
    assert chosen(path, {"shots_drawn": "per-example"}).ids == (5,)
    with pytest.raises(
        UsageError, match=r"There is no choice of chat template maybe; did you mean yes\? The database has: no, yes\."
    ):
        chosen(path, {"chat": "maybe"})


@pytest.mark.parametrize("field", ["positions", "contrast", "ablation", "grid", "dtype"])
def test_ways_of_scoring_can_be_chosen(tmp_path: Path, field: str) -> None:
    one = circuit("1+1")
    path = write(tmp_path / "c.duckdb", one, replace(one, **{field: "another"}, spec={"x": 1}))  # type: ignore[arg-type]
    assert chosen(path, cast("Where", {field: "another"})).ids == (2,)
    shown = Database(path).circuits(**{field: "another"}).rows()  # type: ignore[arg-type]
    assert [row[field] for row in shown] == ["another"]
    with pytest.raises(UsageError, match="another"):
        chosen(path, cast("Where", {field: "anothr"}))


def test_steps_can_be_chosen(tmp_path: Path) -> None:
    """Of an integrating method with 5 and with 10 steps, and of one that has none."""
    one = circuit("1+1")
    others = [
        replace(one, steps=10, spec={"x": 1}), replace(one, method="eap", steps=None, grid=None, spec={"x": 2}),
    ]  # fmt: skip
    path = write(tmp_path / "c.duckdb", one, *others)
    assert chosen(path, {"steps": 10}).ids == (2,)
    assert chosen(path, {"steps": [5, 10], "grid": "right"}).ids == (1, 2)
    with pytest.raises(UsageError, match=r"There is no number of steps 7\. The database has: 5, 10\."):
        chosen(path, {"steps": 7})


def test_the_same_scores_twice_are_noted(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    scores = np.arange(SHAPE.n_edges, dtype=np.float32)
    store.write(circuit("1+1", salt="a"), scores)
    store.write(circuit("1+1", salt="b"), scores)
    store.write(circuit("1+2"), -scores)
    (note,) = chosen(tmp_path / "c.duckdb").compared().notes
    assert note == (
        "Circuits 1 (1+1#1), 2 (1+1#2) have identical scores, as if one run was stored twice: they are no independent "
        "evidence."
    )


def test_equal_constants_are_not_called_similar(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    for subtask in ("1+1", "1+2"):
        store.write(circuit(subtask), np.zeros(SHAPE.n_edges))
    found = Database(tmp_path / "c.duckdb").similarity()
    assert found.rows()[0]["similarity"] is None
    assert not any("similarity of 1" in note for note in found.notes)
    lacking = "1 pair of 1 have no similarity; "
    assert f"{lacking}the reason is beside each." in found.result().notes
    elsewhere = f"{lacking}`similarity --long`, or .result() in Python, gives the reason of each."
    assert elsewhere in found.wide().notes
    assert elsewhere in Database(tmp_path / "c.duckdb").families().notes


def sized(examples: int, *, skipped: int = 0, **changes: object) -> Circuit:
    fields: dict[str, object] = {"n_examples": examples - skipped, "n_skipped": skipped, **changes}
    return replace(circuit("1+1"), spec={"fields": str(fields)}, **fields)  # type: ignore[arg-type]


def test_runs_of_other_examples_seeds_and_formats_are_groups(tmp_path: Path) -> None:
    circuits = [
        sized(16), sized(64), sized(16, seed=7), sized(16, dtype="bfloat16"),
        replace(sized(16, skipped=2), subtask=Subtask("addition", "1+2")),
    ]  # fmt: skip
    path = write(tmp_path / "c.duckdb", *circuits)
    assert sorted(part.ids for part in chosen(path).groups().values()) == [(1, 5), (2,), (3,), (4,)]
    said = (
        "The selection mixes 2 seeds (0, 7) and 2 numbers of examples (16, 64) and 2 number formats (none, bfloat16): "
        "a low similarity may come from that alone.",
    )
    db = Database(path)
    for answer in (db.similarity(), db.families(), db.family_sweep(), db.containment()):
        assert set(said) <= set(answer.notes)


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        pytest.param({"examples": 16}, {1, 3}, id="examples"),
        pytest.param({"examples": [16, 64], "seed": 0}, {1, 2}, id="seed"),
        pytest.param({"shots": 0}, {4}, id="no-shots"),
        pytest.param({"shots": [0, 3]}, {1, 2, 3, 4}, id="shots"),
    ],
)
def test_filters_of_numbers(tmp_path: Path, where: Where, ids: set[int]) -> None:
    circuits = [sized(16), sized(64), sized(16, skipped=3, seed=7), sized(8, shots=0)]
    assert set(chosen(write(tmp_path / "c.duckdb", *circuits), where).ids) == ids


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"shots": 5}, "There is no number of shots 5. The database has: 3."),
        ({"seed": 1}, "There is no seed 1. The database has: 0."),
        ({"examples": 9}, "There is no number of examples 9. The database has: 8."),
    ],
)
def test_wrong_numbers_are_answered_with_the_right_ones(path: Path, where: Where, message: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        chosen(path, where)


def namesakes(*marks: tuple[str | None, str | None]) -> list[Circuit]:
    """Circuits of models that are all called tiny, of the given weights digests and revisions."""
    return [
        replace(circuit("1+1"), model=replace(model(), weights_digest=digest, revision=revision), spec={"n": i})
        for i, (digest, revision) in enumerate(marks)
    ]


def test_models_of_one_name_are_told_apart_and_noted(tmp_path: Path) -> None:
    path = write(tmp_path / "c.duckdb", *namesakes(("1a2b3c4d5e", None), ("99aabbccdd", None)), *sums((1, 2)))
    db = Database(write(path, replace(circuit("3+3", of=model("other")), spec={"o": 1})))
    note = (
        "3 different models are called tiny: tiny@1a2b3c4d, tiny@99aabbcc, tiny@digest o. They are kept apart; "
        "filter by such a name to have one of them."
    )
    assert db.similarity(subtask="1+1").labels == ("tiny@1a2b3c4d/1+1", "tiny@99aabbcc/1+1")
    for ask in (db.circuits, db.reliability, db.stability, db.similarity, db.containment, db.evaluations):
        assert note in ask().notes
    models = ["other", "tiny@1a2b3c4d", "tiny@99aabbcc", "tiny@digest o"]
    for table in (db.circuits(), db.reliability(), db.stability()):
        assert [row["model"] for row in table.rows()] == models
    one = db.circuits(model="tiny@99aabbcc")
    assert [row["circuit_id"] for row in one.rows()] == [2]
    assert one.notes == ()
    assert len(db.circuits(model="tiny")) == 3


@pytest.mark.parametrize(
    ("marks", "shown"),
    [
        ([("a", "step1"), ("b", "step2")], ["tiny@step1", "tiny@step2"]),
        ([("a", "main"), ("b", "main")], ["tiny@a", "tiny@b"]),
        ([(None, "step1"), ("d", None)], ["tiny#1", "tiny#2"]),
        ([("12345678aaaa", None), ("12345678bbbb", None)], ["tiny#1", "tiny#2"]),
        ([("abc", None)], ["tiny"]),
    ],
    ids=["revisions", "same-revision", "ids", "digests-begin-alike", "only-one"],
)
def test_what_tells_namesakes_apart(
    tmp_path: Path, marks: list[tuple[str | None, str | None]], shown: list[str]
) -> None:
    path = write(tmp_path / "c.duckdb", *namesakes(*marks))
    assert [row["model"] for row in Database(path).circuits().rows()] == shown


def test_graph_shapes_do_not_mix(tmp_path: Path) -> None:
    flat = model("flat", GraphShape(2, 3, parallel=True))
    path = write(tmp_path / "c.duckdb", *sums((1, 1), (1, 2)), circuit("1+1", of=flat))
    message = (
        r"different graph shapes: 1 circuit of 2 layers x 3 heads, parallel blocks \(flat\); 2 circuits of 2 layers "
        r"x 3 heads \(tiny\)\. .* for example model='flat'"
    )
    db = Database(path)
    for ask in (db.similarity, db.families, db.family_sweep, db.containment):
        with pytest.raises(UsageError, match=message):
            ask()
    assert db.similarity(model="tiny").labels == ("1+1", "1+2")
    assert len(db.stability()) == 2  # a group is of one graph
    assert len(db.reliability()) == 3


@pytest.mark.parametrize(
    "where",
    [
        {"circuits": 1.5}, {"circuits": "1"}, {"circuits": True}, {"circuits": [1, 2.0]}, {"circuits": np.array([1.5])},
        {"circuits": [None]}, {"model": Ellipsis}, {"model": 1.5}, {"subtask": (1, 2)}, {"task": b"addition"},
        {"seed": np.bool_(True)}, {"shots": np.float64(3)},
    ],
    ids=str,
)  # fmt: skip
def test_a_filter_of_the_wrong_type_is_refused(db: Database, where: Where) -> None:
    for ask in (db.circuits, db.evaluations, db.containment):
        with pytest.raises(UsageError, match=r"^A .+ is a (whole number|name, that is a text), not .+\.$"):
            ask(**where)


@pytest.mark.parametrize(
    "ids", [np.array([1, 2]), {1, 2}, range(1, 3), [np.int64(1), np.uint8(2)], np.array([[1, 2]])[0]], ids=repr
)
def test_ids_of_any_sequence(db: Database, ids: object) -> None:
    assert [row["circuit_id"] for row in db.circuits(circuits=ids).rows()] == [1, 2]  # type: ignore[arg-type]
    assert len(db.evaluations(circuits=iter([1, 2]))) == len(db.evaluations(circuits=[1, 2]))
    for one in (np.int64(2), np.array(2)):
        assert [row["circuit_id"] for row in db.circuits(circuits=one).rows()] == [2]


@pytest.mark.parametrize("number", [2**40, -1, 10**30])
def test_an_id_out_of_range_is_that_of_no_circuit(db: Database, number: int) -> None:
    for where in ({"circuits": number}, {"circuits": [1, number]}):
        with pytest.raises(UsageError, match=f"^There is no circuit {number}"):
            db.circuits(**where)
    with pytest.raises(UsageError, match=f"^There is no circuit {number}"):
        db.show(number)
    with pytest.raises(UsageError, match=f"^There is no seed {10**30}"):
        db.circuits(seed=10**30)
    assert len(db.top_edges(1, 2**40)) == SHAPE.n_edges


def test_arguments_of_the_wrong_type_are_refused(db: Database, path: Path) -> None:
    asks: list[Callable[[], object]] = [
        lambda: db.sql(None),  # type: ignore[arg-type]
        lambda: db.families("0.5"),  # type: ignore[arg-type]
        lambda: db.families(float("nan")),
        *(lambda top=top: db.containment(top=top) for top in (1.5, "a", True)),
        *(lambda t=t: Database(path, timeout=t) for t in ("1", None, -1, float("inf"), float("nan"))),
        lambda: db.show(None),  # type: ignore[arg-type]
        lambda: db.top_edges(1, 1.5),  # type: ignore[arg-type]
    ]
    for ask in asks:
        with pytest.raises(UsageError, match=r"^\w.* not .+\.$"):
            ask()
