"""A study's run over models and conditions: one model at a time, what fails left out, what is stored kept."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from transformer_lens.model_bridge import TransformerBridge

import tiny_models
from circuitdb.connection import reading
from circuitdb.errors import UsageError
from circuitdb.ingest import models
from circuitdb.ingest import run as ingest_run
from circuitdb.ingest.studies import run as study_run
from circuitdb.ingest.studies.condition import Condition
from circuitdb.ingest.studies.run import Planned, Quiet, Source, StudyRun
from circuitdb.ingest.tasks.addition import Addition
from circuitdb.ingest.tasks.boolean import Boolean
from circuitdb.store import Store

CONDITIONS = (
    Condition("one digit", Addition((1,)), {"n_examples": 8, "shots": 1}),
    Condition("two digits", Addition((2,)), {"n_examples": 8, "shots": 1}),
)


class Heard(Quiet):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[tuple[object, ...]] = []

    def loading(self, model: str) -> None:
        self.said.append(("loading", Path(model).name))

    def forecast(self, planned: Any) -> None:
        self.said.append(("forecast", *(len(each.subtasks) for each in planned)))

    def condition(self, name: str) -> None:
        self.said.append(("condition", name))

    def finished(self, outcome: ingest_run.Outcome) -> None:
        self.said.append((outcome.status, outcome.subtask))

    def unloadable(self, model: str, reason: str) -> None:
        self.said.append(("unloadable", Path(model).name))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two tiny models, and one whose weights are not to be read."""
    parent = tmp_path_factory.mktemp("models")
    found = {
        name: tiny_models.llama_folder(parent / name, tiny_models.digit_tokenizer(), seed=seed)
        for seed, name in enumerate(("early", "late", "broken"))
    }
    (found["broken"] / "model.safetensors").write_bytes(b"no weights")
    return found


def test_conditions_follow_each_other_in_each_model(folders: dict[str, Path], tmp_path: Path) -> None:
    heard, store = Heard(), Store(tmp_path / "c.duckdb")
    sources = [Source(str(folders[name])) for name in ("late", "broken", "early")]
    scored = StudyRun(store, sources, CONDITIONS, watcher=heard, steps=2).score()
    in_a_model = [
        ("forecast", 1, 1),
        ("condition", "one digit"), ("stored", "1+1"),
        ("condition", "two digits"), ("stored", "2+2"),
    ]  # fmt: skip
    assert heard.said == [
        ("loading", "late"), *in_a_model,
        ("loading", "broken"), ("unloadable", "broken"),
        ("loading", "early"), *in_a_model,
    ]  # fmt: skip
    assert [(Path(each.model).name, each.condition, each.circuits, each.reason is None) for each in scored] == [
        ("late", "one digit", (1,), True),
        ("late", "two digits", (2,), True),
        ("broken", "one digit", (), False),
        ("broken", "two digits", (), False),
        ("early", "one digit", (3,), True),
        ("early", "two digits", (4,), True),
    ]
    assert "can't be loaded as a causal language model" in str(scored[2].reason)
    with reading(store.path) as connection:
        digests = connection.execute("SELECT count(DISTINCT score_digest), count(*) FROM circuit").fetchall()
    assert digests == [(4, 4)]

    again = StudyRun(store, sources, CONDITIONS, steps=2).score()
    assert [[one.status for one in each.subtasks] for each in again] == [["kept"], ["kept"], [], [], ["kept"], ["kept"]]
    assert [each.circuits for each in again] == [each.circuits for each in scored]


def test_a_model_is_gone_before_the_next_is_loaded(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, alive = models.load_model, []
    before = _bridges()

    def counted(*args: Any, **kwargs: Any) -> Any:
        alive.append(_bridges() - before)
        return load(*args, **kwargs)

    monkeypatch.setattr(study_run, "load_model", counted)
    sources = [Source(str(folders[name])) for name in ("early", "late")]
    StudyRun(Store(tmp_path / "c.duckdb"), sources, CONDITIONS, steps=2).score()
    StudyRun(Store(tmp_path / "c.duckdb"), sources, CONDITIONS, steps=2).plan()
    assert alive == [0, 0, 0, 0]


def _bridges() -> int:
    """Models in memory, whether or not anything can reach them."""
    return sum(type(one) is TransformerBridge for one in gc.get_objects())


def test_a_plan_writes_nothing_and_knows_what_is_stored(folders: dict[str, Path], tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    sources = [Source(str(folders["early"]), name="mine"), Source(str(folders["broken"]))]

    def planned() -> list[Planned]:
        return StudyRun(store, sources, CONDITIONS, steps=2).plan()

    def statuses() -> list[list[str]]:
        return [[one.status for one in each.subtasks] for each in planned()]

    assert statuses() == [["missing"], ["missing"], [], []]
    assert list(tmp_path.iterdir()) == []
    assert [each.model for each in planned()] == ["mine", "mine", sources[1].path, sources[1].path]
    StudyRun(store, sources[:1], CONDITIONS[:1], steps=2).score()
    assert statuses() == [["stored"], ["missing"], [], []]
    assert "can't be loaded" in str(planned()[2].reason)


def test_a_condition_that_a_model_can_not_read_is_left_out(folders: dict[str, Path], tmp_path: Path) -> None:
    words = Condition("words", Boolean(operators=("not",)), {"n_examples": 8, "shots": 1})
    found = StudyRun(Store(tmp_path / "c.duckdb"), [Source(str(folders["early"]))], (words, *CONDITIONS), steps=2)
    scored = found.score()
    assert [[one.status for one in each.subtasks] for each in scored] == [["failed"] * 2, ["stored"], ["stored"]]
    assert "tokenizer has no token for a part of" in str(scored[0].subtasks[0].reason)


def test_a_study_needs_models_each_once(tmp_path: Path) -> None:
    for sources in ([], [Source("a"), Source("a")]):
        with pytest.raises(UsageError, match="A study needs models, each named once"):
            StudyRun(Store(tmp_path / "c.duckdb"), sources, CONDITIONS)
