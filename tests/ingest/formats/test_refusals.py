"""A broken file of each kind: one sentence with its name, and a database that is as it was."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tool_files
from circuitdb.ingest.formats import dataset, dataset_in
from circuitdb.ingest.formats.importing import Told, import_files
from circuitdb.store import Store

CONFIG = tool_files.cfg("B_gpt2")
MATRIX = np.ones((11, 27), np.float32)


class Bomb:
    """Runs when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("exploded",)


def content(path: Path, **change: object) -> dict[str, Any]:
    tool_files.eap_ig_json(path, CONFIG, {"input->m0": 1.0})
    return {**json.loads(path.read_text()), **change}


def made(path: Path, **change: object) -> None:
    path.write_text(json.dumps(content(path, **change)))


def cut_short(path: Path, whole: Callable[[Path], object], share: float = 0.6) -> None:
    whole(path)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])


def packed(path: Path) -> None:
    tool_files.eap_ig_pt(path, CONFIG, MATRIX)
    with zipfile.ZipFile(path) as archive:
        parts = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


def missing_part(path: Path) -> None:
    tool_files.eap_ig_pt(path, CONFIG, MATRIX)
    with zipfile.ZipFile(path) as archive:
        parts = {entry.filename: archive.read(entry) for entry in archive.infolist() if "/data/" not in entry.filename}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (lambda p: p.write_bytes(b""), "is empty"),
    "json-cut-short": (lambda p: cut_short(p, lambda q: made(q)), "is no valid JSON"),
    "not-utf-8": (lambda p: p.write_bytes(b'{"cfg": "\xff"}'), "neither JSON in UTF-8 nor"),
    "deeply-nested": (lambda p: p.write_text("[" * 100_000), "nested too deeply"),
    "endless-integer": (lambda p: p.write_text('{"cfg": ' + "9" * 5000 + "}"), "more digits than can be read"),
    "edge-twice": (
        lambda p: p.write_text('{"cfg": {}, "edges": {"a": {"score": 1}, "a": {"score": 2}}}'), "has the key 'a' twice",
    ),
    "real-edge-twice": (
        lambda p: p.write_text(json.dumps(content(p)).replace('"edges": {', '"edges": {"input->m0": {"score": 2}, ')),
        "has the key 'input->m0' twice",
    ),
    "other-json": (lambda p: p.write_text('{"nodes": [], "links": []}'), "of no layout that is known here: it has n"),
    "a-number": (lambda p: p.write_text("17"), "of no layout that is known here; docs/interchange.md"),
    "picture": (lambda p: p.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00"), "of no layout that is known here"),
    "cfg-no-object": (lambda p: made(p, cfg=[1]), "cfg is no object"),
    "no-layers": (lambda p: made(p, cfg={"n_heads": 4}), "cfg has no n_layers"),
    "layers-a-text": (lambda p: made(p, cfg={**CONFIG, "n_layers": "two"}), "has 'two' layers; it must be a number"),
    "layers-true": (lambda p: made(p, cfg={**CONFIG, "n_layers": True}), "has True layers"),
    "no-heads": (lambda p: made(p, cfg={**CONFIG, "n_heads": 0}), "has 0 heads"),
    "huge-layers": (lambda p: made(p, cfg={**CONFIG, "n_layers": 10**9}), "far more edges than its"),
    "huger-heads": (lambda p: made(p, cfg={**CONFIG, "n_heads": 10**300}), "far more edges than its"),
    "parallel-a-text": (lambda p: made(p, cfg={**CONFIG, "parallel_attn_mlp": "no"}), "'no' for parallel_attn_mlp"),
    "width-negative": (lambda p: made(p, cfg={**CONFIG, "d_model": -1}), "-1 for d_model"),
    "edges-a-list": (lambda p: made(p, edges=[1]), "edges is no object"),
    "no-edges": (lambda p: made(p, edges={}), "has no edges"),
    "edge-a-number": (lambda p: made(p, edges={"input->m0": 3.0}), "'input->m0' is no object with a score"),
    "score-a-text": (lambda p: made(p, edges={"input->m0": {"score": "high"}}), "the score of 'input->m0' is 'high'"),
    "score-too-long": (lambda p: made(p, edges={"input->m0": {"score": 10**400}}), "a score too large to be read"),
    "in-graph-a-text": (
        lambda p: made(p, edges={"input->m0": {"in_graph": "yes"}}), "in_graph of 'input->m0' is 'yes'",
    ),
    "nothing-told": (lambda p: made(p, edges={"input->m0": {}}), "neither a score nor a choice of edges"),
    "unknown-edge": (lambda p: made(p, edges={"spam->eggs": {"score": 1.0}}), "'spam->eggs' is no edge name"),
    "pt-cut-short": (lambda p: cut_short(p, lambda q: tool_files.eap_ig_pt(q, CONFIG, MATRIX)), "damaged or cut short"),
    "pt-part-missing": (missing_part, "damaged or cut short"),
    "pt-packed": (packed, "packed parts, as torch.save never makes"),
    "pt-wrong-shape": (lambda p: tool_files.eap_ig_pt(p, CONFIG, MATRIX.T), r"shape [27, 11]; it must be [11, 27]"),
    "pt-huge-view": (
        lambda p: tool_files.eap_ig_pt(p, CONFIG, MATRIX, edges_scores=torch.zeros(1).expand(10**7, 10**7)),
        "shape [10000000, 10000000]",
    ),
    "pt-texts-for-scores": (
        lambda p: tool_files.eap_ig_pt(p, CONFIG, MATRIX, edges_scores="high"), "edges_scores is no plain tensor",
    ),
    "pt-sparse": (
        lambda p: tool_files.eap_ig_pt(p, CONFIG, MATRIX, edges_scores=torch.ones(11, 27).to_sparse()),
        "edges_scores is no plain tensor",
    ),
    "pt-unknown-source": (
        lambda p: tool_files.eap_ig_pt(p, CONFIG, MATRIX, src_nodes=["input", "spam"]), "no source 'spam'",
    ),
    "pt-fewer-sources": (
        lambda p: tool_files.eap_ig_pt(p, CONFIG, MATRIX, src_nodes=["input"]), "not those of its graph, in their",
    ),
    "pt-impossible-edge": (
        lambda p: tool_files.eap_ig_pt(p, CONFIG, MATRIX), "score for a0.h0->a0.h0<q>, and",
    ),
    "pt-no-scores": (
        lambda p: tool_files.eap_ig_pt(p, CONFIG, MATRIX, edges_scores=None, edges_in_graph=None),
        "neither a score nor a choice",
    ),
    "pt-other": (lambda p: torch.save({"state_dict": torch.zeros(3)}, p), "it has state_dict, but neither"),
    "pt-tensor": (lambda p: torch.save(torch.zeros(3), p), "of no layout that is known here"),
    "pt-circuit-tracer": (
        lambda p: torch.save({"adjacency_matrix": torch.zeros(2, 2), "active_features": torch.zeros(1)}, p),
        "circuit-tracer",
    ),
    "pt-bomb": (lambda p: torch.save({"cfg": CONFIG, "src_nodes": Bomb()}, p), "so it is refused"),
    "pickle": (lambda p: p.write_bytes(pickle.dumps([(("a", 1), 0.5)])), "is a Python pickle, and to read a pickle"),
    "pickle-bomb": (lambda p: p.write_bytes(pickle.dumps(Bomb())), "is a Python pickle, and to read a pickle"),
    "acdc-without-shape": (
        lambda p: p.write_text('[[["blocks.0.hook_q_input", [null, null, 0], "hook_embed", [null]], 1.0]]'),
        "say it with --shape",
    ),
    "prune-scores-cut-short": (
        lambda p: torch.save(OrderedDict({"blocks.0.hook_q_input": torch.zeros(4, 1)}), p), "has no scores for",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with one circuit."""
    folder = tmp_path_factory.mktemp("good")
    tool_files.eap_ig_json(folder / "a.json", CONFIG, dict.fromkeys(tool_files.edge_names(CONFIG), 1.0))
    store = Store(folder / "circuits.duckdb")
    import_files(store, [folder / "a.json"], Told(model="m", task="t"))
    return Path(store.path)


@pytest.mark.parametrize("kind", BROKEN)
def test_one_sentence_and_nothing_changes(
    kind: str, good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make, reason = BROKEN[kind]
    path = tmp_path / "broken.json"  # the ending says nothing: what is inside counts
    make(path)
    store = Store(tmp_path / "circuits.duckdb")
    (outcome,) = import_files(store, [path], Told(model="m", task="t"))
    assert outcome.status == "failed"
    assert outcome.reason is not None
    assert reason in outcome.reason
    assert str(path) in outcome.reason
    assert "\n" not in outcome.reason
    assert outcome.reason.endswith(".")
    assert not (tmp_path / "exploded").exists()
    assert not Path(store.path).exists()
    before = good.read_bytes()
    import_files(Store(good), [path], Told(model="m", task="t"))
    assert good.read_bytes() == before


def test_the_bomb_would_explode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the tests above can fail."""
    monkeypatch.chdir(tmp_path)
    pickle.loads(pickle.dumps(Bomb()))
    assert (tmp_path / "exploded").is_dir()


def exported(tmp_path: Path) -> Path:
    store = Store(tmp_path / "source.duckdb")
    for name in ("a", "b"):
        tool_files.eap_ig_json(
            tmp_path / f"{name}.json", CONFIG, dict.fromkeys(tool_files.edge_names(CONFIG), ord(name) / 100)
        )
    import_files(store, [tmp_path / "a.json", tmp_path / "b.json"], Told(model="m", task="t"))
    dataset.write(store.path, tmp_path / "out", [1, 2])
    return tmp_path / "out"


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda out: (out / "circuitdb.json").write_text("{"), "circuitdb.json is damaged"),
        (lambda out: (out / "circuitdb.json").write_text('{"format": "x", "version": 1, "schema": 1}'), "no export of"),
        (lambda out: (out / "circuitdb.json").write_text(
            '{"format": "circuitdb-parquet", "version": 1, "schema": 999}'), "by a newer circuitdb"),
        (lambda out: (out / "model.parquet").unlink(), "model.parquet is damaged or not there"),
        (lambda out: shorten(out / "graph.parquet"), "graph.parquet is damaged or not there"),
        (lambda out: shorten(out / "edge_score/model=m/task=t/part.parquet"), "part.parquet is damaged or not there"),
        (lambda out: (out / "edge_score/model=m/task=t/part.parquet").unlink(), "has 0 scores of a circuit of 110"),
    ],
)  # fmt: skip
def test_a_damaged_export(tmp_path: Path, damage: Callable[[Path], object], reason: str) -> None:
    out = exported(tmp_path)
    damage(out)
    store = Store(tmp_path / "circuits.duckdb")
    found = import_files(store, [out])
    assert [outcome.status for outcome in found] == ["failed"]
    assert reason in str(found[0].reason)
    assert "\n" not in str(found[0].reason)
    assert not Path(store.path).exists()


def test_scores_that_were_changed_are_noticed(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = exported(tmp_path)
    file = out / "edge_score/model=m/task=t/part.parquet"
    table = pq.read_table(file, partitioning=None)
    scores = table["score"].to_pylist()
    scores[150] = 5.0  # of circuit 2
    pq.write_table(table.set_column(2, "score", pa.array(scores, pa.float32())), file)
    store = Store(tmp_path / "circuits.duckdb")
    first, second = import_files(store, [out])
    assert (first.status, second.status) == ("stored", "failed")
    assert "other scores than those that circuit 2 was stored with" in str(second.reason)
    assert dataset_in.Folder(out).n_bytes > 0
