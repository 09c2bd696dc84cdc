"""Work lists and shards: the scores of a plain ingest to the bit, and refusals before any work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tiny_models
from circuitdb.connection import reading
from circuitdb.doctor import examine
from circuitdb.errors import ModelError, UsageError
from circuitdb.ingest import LoadedModel, Options, ingest, load_model
from circuitdb.ingest.tasks.file_task import FileTask
from circuitdb.ingest.work import ModelSource, TaskSource, WorkList, read_shard, score_shard, work_list
from circuitdb.merging import merge
from circuitdb.store import Store

TASK = TaskSource("addition", ("digits=1-2",))
OPTIONS = Options(
    method="eap-ig", steps=2, shots=1, n_examples=6, metric="logit-difference", against=("7", "12"), by_example=True
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a tiny model."""
    return str(tiny_models.llama_folder(tmp_path_factory.mktemp("work") / "tiny", tiny_models.digit_tokenizer()))


@pytest.fixture(scope="module")
def model(source: str) -> LoadedModel:
    """It, loaded."""
    return load_model(source)


@pytest.fixture
def work(source: str, model: LoadedModel) -> WorkList:
    """The list of four circuits."""
    return work_list(model, ModelSource.of(source, None, model), TASK, OPTIONS, {})[0]


def contents(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What is stored, by names and not by ids, without times."""
    by_name = "JOIN circuit AS c USING (circuit_id) JOIN subtask AS s USING (subtask_id)"
    with reading(path) as connection:
        return {
            question: connection.execute(question).fetchall()
            for question in (
                f"SELECT s.name, edge_id, score FROM edge_score {by_name} ORDER BY ALL",
                f"SELECT s.name, fold, edge_id, score FROM fold_score {by_name} ORDER BY ALL",
                f"SELECT s.name, position, edge_id, score FROM example_score {by_name} ORDER BY ALL",
                f"SELECT s.name, x.* EXCLUDE (circuit_id) FROM example AS x {by_name} ORDER BY ALL",
                "SELECT s.name, metric, filter, value, stderr, n FROM evaluation JOIN subtask AS s USING (subtask_id) "
                "ORDER BY ALL",
                "SELECT s.name, s.parameters, c.* EXCLUDE (circuit_id, subtask_id, started_at, wall_time_s) "
                "FROM circuit AS c JOIN subtask AS s USING (subtask_id) ORDER BY ALL",
                "SELECT * EXCLUDE (model_id) FROM model",
                "SELECT name, description FROM task",
                "SELECT digest, template FROM chat_template",
            )
        }


def test_shards_that_are_merged_are_a_plain_ingest_to_the_bit(
    source: str, model: LoadedModel, work: WorkList, tmp_path: Path
) -> None:
    ingest(Store(tmp_path / "plain.duckdb"), model, TASK.make(), OPTIONS)
    work.write(tmp_path / "plan.json")
    read = WorkList.read(tmp_path / "plan.json")
    assert read == work
    for number in (1, 2, 3):  # each on a machine of its own, so of a model that is loaded anew
        outcomes = score_shard(read, (number, 3), tmp_path / f"shard{number}", model=read.model.load())
        assert [o.subtask for o in outcomes] == {1: ["1+1", "2+2"], 2: ["1+2"], 3: ["2+1"]}[number]
        assert {(o.status, o.circuit_id) for o in outcomes} == {("stored", None)}
    path = tmp_path / "merged.duckdb"
    list(merge(Store(path), [tmp_path / f"shard{number}" for number in (3, 1, 2)]))
    found, wanted = contents(path), contents(tmp_path / "plain.duckdb")
    for question, rows in wanted.items():
        assert rows or "chat_template" in question, question
        assert found[question] == rows, question
    assert examine(path, every=True).healthy
    # What a plain ingest finds there is not scored again.
    again = ingest(Store(path), model, TASK.make(), OPTIONS)
    assert [o.status for o in again] == ["kept"] * 4


def test_chains_of_thought_through_a_template_are_scored_in_shards_too(tmp_path: Path) -> None:
    """What the model writes is known to the worker alone; the list knows the circuit before it."""
    source = str(tiny_models.llama_folder(tmp_path / "talking", tiny_models.chat_tokenizer(), n_context=512))
    model = load_model(source)
    options = Options(
        steps=2, shots=1, shots_drawn="per-example", n_examples=6, chain_of_thought=True, reasoning_tokens=4,
        positions="all", chat=True, align="left-pad",
    )  # fmt: skip
    task = TaskSource("addition", ("digits=1",))
    ingest(Store(tmp_path / "plain.duckdb"), model, task.make(), options)
    made, outcomes = work_list(model, ModelSource.of(source, None, model), task, options, {})
    assert [o.status for o in outcomes] == ["listed"]
    made.write(tmp_path / "plan.json")
    read = WorkList.read(tmp_path / "plan.json")
    assert [o.status for o in score_shard(read, (1, 1), tmp_path / "shard", model=read.model.load())] == ["stored"]
    list(merge(Store(tmp_path / "merged.duckdb"), [tmp_path / "shard"]))
    found, wanted = contents(tmp_path / "merged.duckdb"), contents(tmp_path / "plain.duckdb")
    assert found == wanted
    with reading(tmp_path / "merged.duckdb") as connection:
        assert connection.execute(
            "SELECT prompt_style, shots_drawn, reasoning_tokens, chat, template, c.spec_digest FROM circuit AS c "
            "JOIN chat_template ON spec ->> 'chat_template' = digest"
        ).fetchall() == [
            ("chain-of-thought", "per-example", 4, True, tiny_models.TEMPLATE, made.circuits["1+1"])
        ]  # fmt: skip
        assert connection.execute("SELECT count(reasoning) FROM example").fetchall() == [(6,)]
    assert examine(tmp_path / "merged.duckdb", every=True).healthy
    again = ingest(Store(tmp_path / "merged.duckdb"), model, task.make(), options)
    assert [o.status for o in again] == ["kept"]


def test_a_worker_goes_on_where_it_was(model: LoadedModel, work: WorkList, tmp_path: Path) -> None:
    folder = tmp_path / "shard"
    score_shard(work, (1, 2), folder, model=model)
    times = {path: path.stat().st_mtime_ns for path in folder.glob("*.parquet")}
    next(iter(times)).unlink()
    outcomes = score_shard(work, (1, 2), folder, model=model)
    assert sorted(o.status for o in outcomes) == ["kept", "stored"]
    kept = list(times)[1]
    assert kept.stat().st_mtime_ns == times[kept]
    assert {path.name for path in folder.glob("*.parquet")} == {path.name for path in times}


def test_several_shards_may_share_a_folder(model: LoadedModel, work: WorkList, tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    for number, n_lacking in ((2, 0), (1, 0)):
        score_shard(work, (number, 2), tmp_path / "all", model=model)
        done = list(merge(store, [tmp_path / "all"]))
        assert sum(one.status == "refused" for one in done) == n_lacking
    assert len(store.finished()) == 4


def test_shards_have_every_circuit_once(work: WorkList) -> None:
    for of in (1, 2, 3, 4, 7):
        parts = [work.shard(number, of) for number in range(1, of + 1)]
        assert sorted(name for part in parts for name in part) == ["1+1", "1+2", "2+1", "2+2"]
        assert {name: spec for part in parts for name, spec in part.items()} == dict(work.circuits)


def test_a_model_of_other_weights_is_refused(source: str, work: WorkList, tmp_path: Path) -> None:
    other = str(tiny_models.llama_folder(tmp_path / "tiny", tiny_models.digit_tokenizer(), seed=1))
    with pytest.raises(ModelError, match=r"has other weights than the work list was made with \(digest \w{12}, not"):
        work.model.load(other)
    same = str(tiny_models.llama_folder(tmp_path / "elsewhere", tiny_models.digit_tokenizer()))
    assert work.model.load(same).record == work.model.load().record


def test_what_is_stored_is_not_listed(source: str, model: LoadedModel, tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    ingest(store, model, TaskSource("addition", ("digits=1",)).make(), OPTIONS)
    made, outcomes = work_list(model, ModelSource.of(source, None, model), TASK, OPTIONS, store.finished())
    assert [(o.subtask, o.status, o.circuit_id) for o in outcomes] == [
        ("1+1", "kept", 1), ("1+2", "listed", None), ("2+1", "listed", None), ("2+2", "listed", None),
    ]  # fmt: skip
    assert list(made.circuits) == ["1+2", "2+1", "2+2"]


def test_questions_of_another_file_are_refused_before_any_work(model: LoadedModel, source: str, tmp_path: Path) -> None:
    file = tmp_path / "sums.csv"
    lines = [f"{a} + {b} =,{a + b},all" for a in range(1, 5) for b in range(1, 5)]
    file.write_text("\n".join(["prompt,answer,subtask", *lines]))
    options = Options(steps=2, shots=0, n_examples=6)
    task = TaskSource.of(str(file), [], FileTask(file))
    made, _ = work_list(model, ModelSource.of(source, None, model), task, options, {})
    moved = tmp_path / "moved.csv"
    file.rename(moved)
    (outcome,) = score_shard(made.with_task(str(moved)), (1, 1), tmp_path / "shard", model=model)
    assert (outcome.subtask, outcome.status) == ("all", "stored")
    others = [f"{a} + {b} =,{a + b},all" for a in range(3, 7) for b in range(1, 5)]
    moved.write_text("\n".join(["prompt,answer,subtask", *others]))
    (outcome,) = score_shard(made.with_task(str(moved)), (1, 1), tmp_path / "other", model=model)
    assert (outcome.status, outcome.reason) == (
        "failed", "Its questions or their tokens are not those of the work list: another file, or another circuitdb.",
    )  # fmt: skip
    assert not list((tmp_path / "other").glob("*.parquet"))


LISTS: list[tuple[Any, str]] = [
    ("{", "is no work list that `circuitdb ingest --plan` wrote: "),
    ([1], "is no work list that `circuitdb ingest --plan` wrote."),
    ({"a": 1}, "is no work list that `circuitdb ingest --plan` wrote."),
    ({"circuitdb": "9.9"}, r"was written by circuitdb 9\.9, this is .*: use one version on all machines"),
    ({"options": {"colour": "red"}}, "is no whole work list: .*colour"),
    ({"options": {"steps": 0}}, "steps"),
    ({"circuits": [{"subtask": "1+1"}]}, "is no whole work list: 'spec_digest'; make it again."),
    ({"model": {}}, "is no whole work list: "),
    ({"task": None}, "is no whole work list: "),
]


@pytest.mark.parametrize(("change", "told"), LISTS, ids=[case[1][:40] for case in LISTS])
def test_lists_that_are_none(change: Any, told: str, work: WorkList, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    work.write(path)
    whole = json.loads(path.read_text())
    if isinstance(change, dict) and "a" not in change:
        change = whole | change
    path.write_text(change if isinstance(change, str) else json.dumps(change))
    with pytest.raises(UsageError, match=told):
        WorkList.read(path)


def test_no_list(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"There is no work list .*; make one with `circuitdb ingest \.\.\. --plan`"):
        WorkList.read(tmp_path / "none.json")


@pytest.mark.parametrize("text", ["", "2", "0/4", "5/4", "1/0", "-1/4", "1/4/4", "a/b", "1.0/2"])
def test_what_is_no_shard(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no shard; the second of four is 2/4\."):
        read_shard(text)


def test_shards_as_text() -> None:
    assert [read_shard(text) for text in ("1/1", "2/4", "12/12")] == [(1, 1), (2, 4), (12, 12)]
