"""Into the store: names, what is unknown, nothing twice, and imported circuits in the questions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import circuitdb
import tool_files
from circuitdb.errors import UsageError
from circuitdb.graph import GraphShape
from circuitdb.ingest.formats import mib
from circuitdb.ingest.formats.importing import Imported, Told, import_files, import_result
from circuitdb.ingest.formats.pattern import Pattern
from circuitdb.records import Circuit, ImportedModel, Model, Subtask
from circuitdb.store import Store

CONFIG = tool_files.cfg("B_gpt2")
SHAPE = GraphShape(2, 4)


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def scores(seed: int) -> dict[str, float]:
    values = np.random.default_rng(seed).standard_normal(SHAPE.n_edges).astype(np.float32)
    return dict(zip(tool_files.edge_names(CONFIG), values.tolist(), strict=True))


def file(path: Path, seed: int = 0, config: Mapping[str, Any] = CONFIG) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return tool_files.eap_ig_json(path, config, scores(seed))


def one(store: Store, path: Path, told: Told) -> Imported:
    (outcome,) = import_files(store, [path], told)
    return outcome


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "circuits.duckdb")


def test_what_the_file_does_not_say_is_null(store: Store, tmp_path: Path) -> None:
    path = file(tmp_path / "a.json")
    outcome = one(store, path, Told(model="gpt2", task="ioi"))
    assert (outcome.status, outcome.kind, outcome.number, outcome.subtask) == ("stored", "circuit", 1, "a")
    (found,) = circuitdb.open(store.path).show(1).provenance.rows()
    known = {name: value for name, value in found.items() if value is not None}
    for name in ("score_digest", "spec_digest", "imported_digest"):
        assert len(str(known.pop(name))) == 64
    assert known == {
        "circuit_id": 1, "model": "gpt2", "n_layers": 2, "n_heads": 4, "d_model": 32, "parallel": False, "task": "ioi",
        "subtask": "a", "parameters": "{}", "origin": "eap-ig", "n_folds": 0, "n_edges": 110, "n_nonfinite": 0,
        "imported_from": str(path), "imported_layout": "JSON",
    }  # fmt: skip


def test_what_is_told_is_stored(store: Store, tmp_path: Path) -> None:
    told = Told(
        model="gpt2", task="ioi", revision="main", method="eap-ig", metric="kl", steps=5, positions="last",
        ablation="patching", seed=3, shots=2, examples=16, sign="ablated-minus-clean",
    )  # fmt: skip
    one(store, file(tmp_path / "a.json"), told)
    sql = ("SELECT m.revision, method, metric, steps, positions, ablation, seed, shots, n_examples, sign_convention, "
           "started_at FROM circuit JOIN model AS m USING (model_id)")  # fmt: skip
    assert rows(Path(store.path), sql) == [
        ("main", "eap-ig", "kl", 5, "last", "patching", 3, 2, 16, "ablated-minus-clean", None)
    ]


def test_the_opposite_sign_is_turned_round(store: Store, tmp_path: Path) -> None:
    path = file(tmp_path / "a.json")
    one(store, path, Told(model="m", task="t"))
    one(store, path, Told(model="m", task="t", sign="clean-minus-ablated"))
    sql = "SELECT a.score + b.score FROM edge_score AS a JOIN edge_score AS b USING (edge_id) WHERE a.circuit_id = 1 AND b.circuit_id = 2"  # noqa: E501
    assert rows(Path(store.path), sql) == [(0.0,)] * 110
    assert rows(Path(store.path), "SELECT sign_convention FROM circuit ORDER BY circuit_id") == [
        (None,), ("ablated-minus-clean",),
    ]  # fmt: skip


def test_importing_again_keeps_and_a_changed_file_is_another_circuit(store: Store, tmp_path: Path) -> None:
    path, told = file(tmp_path / "a.json"), Told(model="gpt2", task="ioi")
    first = one(store, path, told)
    before = Path(store.path).read_bytes()
    second = one(store, path, told)
    assert (second.status, second.number) == ("kept", first.number) == ("kept", 1)
    assert rows(Path(store.path), "SELECT count(*) FROM edge_score") == [(110,)]
    assert len(before) == Path(store.path).stat().st_size
    file(path, seed=1)
    assert one(store, path, told).number == 2


def test_a_broken_file_among_others_is_told_and_the_others_are_stored(store: Store, tmp_path: Path) -> None:
    good, bad, nameless = file(tmp_path / "a.json"), tmp_path / "b.json", file(tmp_path / "c.json", 1)
    bad.write_text("{")
    found = import_files(store, [good, bad, nameless], Told(model="gpt2", task="ioi"))
    assert [outcome.status for outcome in found] == ["stored", "failed", "stored"]
    assert found[1].reason is not None
    assert found[1].reason.startswith(f"{bad} is no valid JSON")
    assert rows(Path(store.path), "SELECT circuit_id FROM circuit") == [(1,), (2,)]


def test_names_come_from_the_pattern(store: Store, tmp_path: Path) -> None:
    files = [file(tmp_path / f"gemma-add-{a}{b}.json", 10 * a + b) for a in (1, 2) for b in (1, 12)]
    told = Told(
        subtask="{digits_a}+{digits_b}", task="addition", pattern=Pattern("{model}-add-{digits_a}{digits_b}.json")
    )
    found = import_files(store, files, told)
    assert [(o.model, o.task, o.subtask) for o in found] == [
        ("gemma", "addition", "1+1"), ("gemma", "addition", "1+12"), ("gemma", "addition", "2+1"),
        ("gemma", "addition", "2+12"),
    ]  # fmt: skip
    db = circuitdb.open(store.path)
    assert db.circuits(subtask="1+12").rows()[0]["parameters"] == '{"digits_a":1,"digits_b":12}'
    # The parameters are those that questions group by.
    assert {row["digits_a"]: row["n_subtasks"] for row in db.stability(by=["digits_a"]).rows()} == {1: 2, 2: 2}


@pytest.mark.parametrize(
    ("pattern", "path", "told", "parameters"),
    [
        ("{task}_{model}.json", "x/ioi_gpt2.json", {"task": "ioi", "model": "gpt2"}, {}),
        ("{method}_{ablation}_{level}/{task}_{model}/importances.json",
         "EAP-IG_patching_edge/arc-easy_llama3/importances.json",
         {"method": "EAP-IG", "ablation": "patching", "task": "arc-easy", "model": "llama3"}, {"level": "edge"}),
        ("run{seed}-{split}.pt", "run07-dev.pt", {"seed": 7}, {"split": "dev"}),
        ("{a}{b}{c}.json", "1234.json", {}, {"a": 1, "b": 2, "c": 34}),
        ("[x]{a}.json", "[x]1.5.json", {}, {"a": "1.5"}),
    ],
)  # fmt: skip
def test_patterns(pattern: str, path: str, told: dict[str, Any], parameters: dict[str, Any]) -> None:
    names = Pattern(pattern).names(Path(path))
    assert (names.told, names.parameters) == (told, parameters)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [("a.json", "has no field"), ("{a}-{a}.json", "{a} comes twice|comes twice"), ("{}.json", "is no name of letters")],
)
def test_patterns_that_are_none(pattern: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        Pattern(pattern)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (Told(task="ioi"), "Which model is .*a.json of\\? Say --model NAME, or {model} in --pattern"),
        (Told(model="gpt2"), "Which task is "),
        (Told(model="gpt2", task="ioi", subtask="{digits}"), "has the field {digits}, which the pattern has not"),
        (Told(model="m", task="t", pattern=Pattern("b{x}.json")), "a.json is not like the pattern b{x}.json"),
        (Told(model="m", task="t", pattern=Pattern("{seed}.json")), "The seed in a.json is 'a', which is no whole"),
    ],
)
def test_names_that_are_lacking(store: Store, tmp_path: Path, told: Told, reason: str) -> None:
    outcome = one(store, file(tmp_path / "a.json"), told)
    assert outcome.status == "failed"
    with pytest.raises(UsageError, match=reason):
        raise UsageError(outcome.reason)
    assert not Path(store.path).exists()


def test_a_mib_folder_names_task_and_model(store: Store, tmp_path: Path) -> None:
    file(tmp_path / "submission" / "arc-easy_llama3" / "importances.json")
    file(tmp_path / "submission" / "ioi_gpt2" / "importances.json", 1)
    found = import_files(store, [tmp_path / "submission"], Told())
    assert [(o.task, o.model, o.subtask) for o in found] == [("arc-easy", "llama3", "all"), ("ioi", "gpt2", "all")]


def membership(path: Path, n: int) -> Path:
    names = tool_files.edge_names(CONFIG)
    path.parent.mkdir(parents=True, exist_ok=True)
    return tool_files.eap_ig_json(path, CONFIG, {name: {"in_graph": i < n} for i, name in enumerate(names)})


def test_nine_membership_files_are_hard_circuits(store: Store, tmp_path: Path) -> None:
    # At most 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50 % of 110 edges.
    sizes = [0, 0, 0, 1, 2, 5, 11, 22, 55]
    for n, share in zip(sizes, mib.SIZES, strict=True):
        membership(tmp_path / "ioi_gpt2" / f"k{share}.json", n)
    found = import_files(store, [tmp_path / "ioi_gpt2"])
    assert {o.kind for o in found} == {"hard circuit"}
    assert {o.status for o in found} == {"stored"}
    db = circuitdb.open(store.path)
    asked = db.sql("SELECT share, n_edges, circuit_id, model, task, method FROM hard_circuits ORDER BY share").rows()
    assert [(row["share"], row["n_edges"]) for row in asked] == list(zip(mib.SIZES, sizes, strict=True))
    assert {(row["circuit_id"], row["model"], row["task"], row["method"]) for row in asked} == {
        (None, "gpt2", "ioi", None)
    }
    assert db.sql("SELECT count(*) AS n FROM circuit").rows() == [{"n": 0}]
    assert {o.status for o in import_files(store, [tmp_path / "ioi_gpt2"])} == {"kept"}
    # The edges are those of the files: the first of EAP-IG's own order.
    ids = sorted(SHAPE.edge_id(name) for name in tool_files.edge_names(CONFIG)[:5])
    assert [row["edge_id"] for row in db.sql(
        "SELECT edge_id FROM hard_circuit_edge JOIN hard_circuits USING (hard_id) WHERE share = 0.05 ORDER BY 1"
    ).rows()] == ids  # fmt: skip
    assert db.sql("FROM hard_overlap(6, 9)").rows() == [{"shared": 5, "n_a": 5, "n_b": 55}]


def test_nine_files_that_are_no_submission_have_no_share(store: Store, tmp_path: Path) -> None:
    for n in range(20, 29):
        membership(tmp_path / "ioi_gpt2" / f"{n}.json", n)
    assert {o.status for o in import_files(store, [tmp_path / "ioi_gpt2"])} == {"failed"}  # nor is the name told
    import_files(store, [tmp_path / "ioi_gpt2"], Told(model="gpt2", task="ioi"))
    assert rows(Path(store.path), "SELECT DISTINCT share FROM hard_circuits") == [(None,)]
    assert rows(Path(store.path), "SELECT count(*) FROM hard_circuits") == [(9,)]


def test_a_scored_file_with_a_choice_is_both(store: Store, tmp_path: Path) -> None:
    edges = {name: {"score": score, "in_graph": score > 1} for name, score in scores(0).items()}
    one(store, tool_files.eap_ig_json(tmp_path / "a.json", CONFIG, edges), Told(model="gpt2", task="ioi"))
    wanted = sum(score > 1 for score in scores(0).values())
    assert rows(Path(store.path), "SELECT circuit_id, n_edges FROM hard_circuits") == [(1, wanted)]
    sql = "SELECT count(*) FROM hard_circuit_edge JOIN edge_score USING (edge_id) WHERE score > 1 AND circuit_id = 1"
    assert rows(Path(store.path), sql) == [(wanted,)]


def test_imported_circuits_answer_questions_and_are_not_pooled_with_others(store: Store, tmp_path: Path) -> None:
    """Two tools, and an ingest of the same model name, task and subtasks: three groups."""
    for seed in range(2):
        file(tmp_path / f"s{seed}.json", seed)
    told = Told(model="gpt2", task="ioi")
    import_files(store, [tmp_path / "s0.json", tmp_path / "s1.json"], told)
    import torch

    for seed in range(2):
        torch.save(tool_files.prune_scores(CONFIG, scores(seed)), tmp_path / f"s{seed}.pt")
    import_files(store, [tmp_path / "s0.pt", tmp_path / "s1.pt"], told)
    model = Model("gpt2", "GPT2LMHeadModel", SHAPE, 4, 32, weights_digest="x" * 64)
    for seed in range(2):
        values = np.array([scores(seed)[name] for name in SHAPE.edge_names], np.float32)
        store.write(Circuit(model, Subtask("ioi", f"s{seed}"), "eap-ig", "kl", {"seed": seed}), values)
    db = circuitdb.open(store.path)
    found = db.stability()
    rho = float(np.corrcoef([np.argsort(np.argsort(list(scores(s).values()))) for s in range(2)])[0, 1])
    assert [row["n_subtasks"] for row in found.rows()] == [2, 2, 2]
    for row in found.rows():
        assert row["stability"] == pytest.approx(rho, abs=1e-12)
    assert sorted((row["origin"], row["n_subtasks"]) for row in db.sql("FROM stability()").rows()) == [
        ("auto-circuit", 2), ("eap-ig", 2), ("ingest", 2),
    ]  # fmt: skip
    assert any("How 4 imported circuits were made is not known" in note for note in found.notes)
    assert db.similarity(origin="eap-ig").matrix.shape == (2, 2)
    assert "2 origins (auto-circuit, eap-ig)" in " ".join(db.similarity(origin=["eap-ig", "auto-circuit"]).notes)
    assert not any("imported" in note for note in db.stability(origin="ingest").notes)
    assert len(db.families(origin="eap-ig", alpha=0.1).rows()) == 2
    assert db.containment(origin="auto-circuit", top=5).n.tolist() == [5, 5]
    with pytest.raises(UsageError, match="not known how many key-value heads"):
        db.similarity(origin="eap-ig", shared=True)


def test_files_of_one_model_complete_what_is_known_of_it(store: Store, tmp_path: Path) -> None:
    stability = {"n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "parallel_attn_mlp": False}
    told = Told(model="m", task="t")
    one(store, tool_files.eap_ig_json(tmp_path / "a.json", stability, scores(0), plain=True), told)
    one(store, file(tmp_path / "b.json", 1), told)
    sql = "SELECT name, n_kv_heads, d_model FROM model"
    assert rows(Path(store.path), sql) == [("m", 2, 32)]
    one(store, file(tmp_path / "c.json", 2, {**CONFIG, "d_model": 64}), told)  # cannot be the same model
    assert rows(Path(store.path), f"{sql} ORDER BY d_model") == [("m", 2, 32), ("m", None, 64)]
    assert rows(Path(store.path), "SELECT DISTINCT kv_group FROM shared_scores ORDER BY 1") == [(0,), (1,)]
    assert rows(Path(store.path), "SELECT count(DISTINCT circuit_id) FROM shared_scores") == [(2,)]


def test_a_result_is_stored_from_python(store: Store) -> None:
    class Node:
        def __init__(self, kind: str, position: int, layer: int | None = None, head: int | None = None) -> None:
            self.kind, self.position, self.layer, self.head = kind, position, layer, head

    class Result:
        edge_scores: dict[Any, float] = {  # noqa: RUF012
            (Node("embed", 0), Node("q_input", 0, 0, 0)): 1.0,
            (Node("embed", 1), Node("q_input", 1, 0, 0)): 2.5,
            (Node("attn_head_out", 1, 0, 0), Node("mlp_in", 1, 0)): -1.0,
            (Node("mlp_out", 1, 0), Node("logits", 1, 0)): float("nan"),
        }

    outcome = import_result(store, Result(), Told(model="tiny", task="t", metric="logit-difference"))
    assert (outcome.status, outcome.n_edges, outcome.n_missing, outcome.n_null) == ("stored", 8, 5, 6)
    sql = "SELECT edge, score FROM scores WHERE score IS NOT NULL ORDER BY edge_id"
    assert rows(Path(store.path), sql) == [("input->a0.h0<q>", -3.5), ("a0.h0->m0", 1.0)]
    assert import_result(store, Result(), Told(model="tiny", task="t", metric="logit-difference")).status == "kept"
    assert ImportedModel("tiny", GraphShape(1, 1)).d_model is None
