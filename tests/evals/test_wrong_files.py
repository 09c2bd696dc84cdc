"""Files of evaluations of which something is wrong, or lacking, in one place: each is told in a sentence of its own."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from circuitdb.errors import UsageError
from circuitdb.evals.columns import Columns
from circuitdb.evals.files import read

Content: TypeAlias = "str | bytes | Callable[[], bytes]"
TOLD = Columns(model="tiny", subtask="1+1")
LOG = {
    "status": "success",
    "eval": {"model": "tiny", "task": "addition"},
    "results": {"scores": [{"name": "match", "metrics": {"accuracy": {"value": 0.75}}}]},
}


def damaged_zip() -> bytes:
    """A ZIP whose one member has another byte than its checksum is of."""
    path = Path("whole.zip")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("header.json", json.dumps(LOG))
    return path.read_bytes().replace(b"success", b"succesS", 1)


def damaged_sqlite() -> bytes:
    """A SQLite file whose first page goes on with something else."""
    path = Path("whole.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (model TEXT, acc REAL)")
    connection.close()
    return path.read_bytes()[:100] + b"\xff" * 400


def zipped(header: object) -> bytes:
    path = Path("zipped.zip")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
    return path.read_bytes()


WRONG: dict[str, tuple[str, Content, str]] = {
    "no CSV": ("a.csv", 'model,subtask,acc\n"tiny"x,1+1,1\n', r"a\.csv is no valid CSV: "),
    "no UTF-8": ("a.json", b'[{"acc": 1, "who": "\xe9"}]', r"a\.json is not in UTF-8; save it so"),
    "no SQLite": ("a.sqlite", damaged_sqlite, r"a\.sqlite can't be read as a SQLite file: "),
    "damaged log": ("a.eval", damaged_zip, r"a\.eval is damaged: Bad CRC-32"),
    "no log": ("a.eval", lambda: zipped([1]), r"its header\.json is no log of inspect_ai"),
    "log without model": ("a.json", json.dumps(LOG | {"eval": {"task": "t"}}), "does not name its model and task"),
    "log without task": ("a.json", json.dumps(LOG | {"eval": {"model": "m"}}), "does not name its model and task"),
    "no sample": (
        "samples_a.jsonl",
        '{"doc_id": 1, "acc": 1}\n{"acc": 1}\n',
        "line 2 is no sample, which has a doc_id",
    ),
    "samples of nothing": ("samples_a.jsonl", '{"doc_id": 1, "f1": 1}\n', "holds no metric"),
    "no result": ("a.json", '{"results": {"sum": [1]}, "model_name": "m"}', "the result of sum is no object"),
}


@pytest.mark.parametrize(("name", "content", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told(
    name: str, content: Content, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = content() if callable(content) else content
    (tmp_path / name).write_bytes(made.encode() if isinstance(made, str) else made)
    with pytest.raises(UsageError, match=message) as caught:
        read([tmp_path / name], TOLD)
    assert str(tmp_path / name) in str(caught.value)


def test_what_is_asked_for_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("model,subtask,acc\ntiny,1+1,1\n")
    with pytest.raises(UsageError, match="There is no file to add; name one or more"):
        read([], TOLD)
    with pytest.raises(UsageError, match="has no column who; it has model, subtask, acc"):
        read([tmp_path / "a.csv"], Columns(model_column="who"))
    with pytest.raises(UsageError, match="is one table; --table is for files of DuckDB and SQLite"):
        read([tmp_path / "a.csv"], TOLD, "t")


def test_a_single_document_has_a_mean_and_no_error_of_it(tmp_path: Path) -> None:
    file = tmp_path / "samples_a.jsonl"
    file.write_text('{"doc_id": 1, "acc": 1}\n')
    (row,) = read([file], TOLD).rows
    assert (row.value, row.n, row.stderr) == (1.0, 1, None)
    file.write_text('{"doc_id": 1, "acc": null}\n')
    (row,) = read([file], TOLD).rows
    assert (row.value, row.n, row.stderr) == (None, 0, None)


@pytest.mark.parametrize(
    ("arguments", "model"),
    [
        ("pretrained=org/tiny,dtype=float32", "org/tiny"),
        ("dtype=float32,model=tiny", "tiny"),
        ("base_model=org/large,pretrained=org/tiny", "org/tiny"),  # not the end of another name
    ],
)
def test_lm_eval_names_its_model_among_its_arguments(arguments: str, model: str, tmp_path: Path) -> None:
    content = {"results": {"1+1": {"acc,none": 0.5}}, "config": {"model_args": arguments}}
    (tmp_path / "a.json").write_text(json.dumps(content))
    assert [row.model for row in read([tmp_path / "a.json"], Columns()).rows] == [model]


def test_words_about_a_task_are_no_metric(tmp_path: Path) -> None:
    content = {"results": {"1+1": {"acc,none": 0.5, "comment,none": "see the paper"}}, "model_name": "tiny"}
    (tmp_path / "a.json").write_text(json.dumps(content))
    assert [row.metric for row in read([tmp_path / "a.json"], Columns()).rows] == ["acc"]


def test_old_samples_do_not_list_their_metrics(tmp_path: Path) -> None:
    file = tmp_path / "samples_a.jsonl"
    file.write_text('{"doc_id": 1, "acc": 1, "exact_match": 0, "f1": 0.5}\n{"doc_id": 2, "acc": 1, "exact_match": 1}\n')
    assert [(row.metric, row.value) for row in read([file], TOLD).rows] == [("acc", 1.0), ("exact_match", 0.5)]


def test_a_column_without_a_value_is_no_metric(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("model,subtask,acc,f1\ntiny,1+1,1,\ntiny,1+2,,N/A\n")
    found = read([tmp_path / "a.csv"], Columns())
    assert [(row.metric, row.value) for row in found.rows] == [("acc", 1.0), ("acc", None)]
    assert found.notes == (f"{tmp_path / 'a.csv'}: columns of text are no metrics, and only in the table itself: f1.",)


def test_spaces_around_the_name_of_a_metric_are_none_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("model,subtask,metric,value\ntiny,1+1, acc ,1\ntiny,1+2,acc,0\n")
    assert [row.metric for row in read([tmp_path / "a.csv"], Columns()).rows] == ["acc", "acc"]
