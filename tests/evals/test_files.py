"""Files of evaluations whose right answer is known by hand."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from circuitdb.errors import UsageError
from circuitdb.evals.columns import Columns
from circuitdb.evals.files import read
from circuitdb.evals.rows import Imported, Row

PLAIN = {"model": ["tiny", "tiny"], "subtask": ["1+1", "1+2"], "acc": [0.5, None], "n": [8, 9]}
PLAIN_ROWS = [("tiny", "1+1", "acc", 0.5, 8), ("tiny", "1+2", "acc", None, 9)]
TOLD = Columns()


def plain(found: Imported) -> list[tuple[str, str, str, float | None, int | None]]:
    return [(row.model, row.subtask, row.metric, row.value, row.n) for row in found.rows]


def save(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def _sqlite(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (model TEXT, subtask TEXT, acc REAL, n INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", zip(*PLAIN.values(), strict=True))
    connection.close()


def _duckdb(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES ('tiny', '1+1', 0.5, 8), ('tiny', '1+2', NULL, 9)) "
                           "AS t(model, subtask, acc, n)")  # fmt: skip


RECORDS = [dict(zip(PLAIN, cells, strict=True)) for cells in zip(*PLAIN.values(), strict=True)]
WRITERS: dict[str, Callable[[Path], object]] = {
    "a.csv": lambda p: save(p, "model,subtask,acc,n\ntiny,1+1,0.5,8\ntiny,1+2,,9\n"),
    "bom-crlf.csv": lambda p: save(p, b"\xef\xbb\xbfmodel,subtask,acc,n\r\ntiny,1+1,0.5,8\r\ntiny,1+2,N/A,9\r\n"),
    "semicolon.csv": lambda p: save(p, 'model;subtask;acc;n\n"tiny";1+1;0.5;8\n\ntiny;1+2;NaN;9'),
    "a.tsv": lambda p: save(p, "model\tsubtask\tacc\tn\ntiny\t1+1\t0.5\t8\ntiny\t1+2\tnull\t9\n"),
    "a.json": lambda p: save(p, json.dumps(RECORDS)),
    "nan.json": lambda p: save(p, json.dumps(RECORDS).replace("null", "NaN")),
    "ours.json": lambda p: save(p, json.dumps({"title": "x", "rows": RECORDS, "notes": []})),
    "a.jsonl": lambda p: save(p, "\n".join(map(json.dumps, RECORDS))),
    "a.parquet": lambda p: pyarrow.parquet.write_table(pa.table(PLAIN), p),
    "a.arrow": lambda p: pyarrow.feather.write_feather(pa.table(PLAIN), p, compression="uncompressed"),
    "a.db": _sqlite,
    "a.duckdb": _duckdb,
}


@pytest.mark.parametrize("name", WRITERS)
def test_one_table_in_every_format(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    found = read([tmp_path / name], TOLD)
    assert plain(found) == PLAIN_ROWS
    assert found.table is not None
    expected = [{**record, "file": str(tmp_path / name)} for record in RECORDS]
    assert found.table.to_pylist() == expected
    assert str(found.table.schema.field("n").type) == "int64"


def test_a_long_table_has_a_metric_a_row(tmp_path: Path) -> None:
    text = "Model,Task,Metric,Value,Filter,StdErr,N\ntiny,1+1,acc,0.5,strict,0.1,8\ntiny,1+1,f1,N/A,,,\n"
    found = read([save(tmp_path / "a.csv", text)], TOLD)
    file = str(tmp_path / "a.csv")
    assert found.rows == (
        Row("tiny", "1+1", "acc", 0.5, "strict", 0.1, 8, file=file), Row("tiny", "1+1", "f1", None, file=file),
    )  # fmt: skip


def test_columns_of_text_are_no_metrics_and_a_stderr_belongs_to_its_metric(tmp_path: Path) -> None:
    text = "id,llm,dataset,acc,acc_stderr,when\n1,007,1,0.5,0.1,today\n2,007,2,0.25,,\n"
    found = read([save(tmp_path / "a.csv", text)], TOLD)
    assert [(r.model, r.subtask, r.metric, r.value, r.stderr) for r in found.rows] == [
        ("007", "1", "acc", 0.5, 0.1), ("007", "2", "acc", 0.25, None),
    ]  # fmt: skip
    assert found.notes == (
        f"{tmp_path / 'a.csv'}: columns of text are no metrics, and only in the table itself: when.",
    )
    assert found.table is not None
    assert found.table["llm"].to_pylist() == ["007", "007"]


def test_a_column_of_the_same_name_as_ours_stays(tmp_path: Path) -> None:
    found = read([save(tmp_path / "a.csv", "model,task,acc,file\ntiny,1+1,0.5,mine\n")], TOLD)
    assert found.table is not None
    assert found.table["file"].to_pylist() == ["mine"]
    assert found.table["file_"].to_pylist() == [str(tmp_path / "a.csv")]


def test_what_holds_for_all_rows_is_told(tmp_path: Path) -> None:
    file = save(tmp_path / "a.csv", "which,acc\n1+1,0.5\n")
    found = read([file], Columns(subtask_column="which", model="tiny"))
    assert plain(found) == [("tiny", "1+1", "acc", 0.5, None)]


def test_a_row_that_is_there_twice_counts_once_and_a_contradiction_is_refused(tmp_path: Path) -> None:
    same = save(tmp_path / "a.csv", "id,model,subtask,acc\n1,tiny,1+1,0.5\n1,tiny,1+1,0.5\n")
    assert plain(read([same, same], TOLD)) == [("tiny", "1+1", "acc", 0.5, None)]
    other = save(tmp_path / "b.csv", "id,model,subtask,acc\n1,tiny,1+1,0.75\n")
    with pytest.raises(
        UsageError, match=r"a.csv and .*b.csv: two values of acc for model 'tiny', subtask '1\+1': 0.5 and"
    ):
        read([same, other], TOLD)


LM_EVAL = {
    # everything (group) -> easy (group) -> 1+1, 1+2; everything -> 2+2
    "results": {
        "everything": {"alias": "everything", "acc,none": 0.5, "acc_stderr,none": "N/A"},
        "easy": {" ": " ", "alias": " - easy", "acc,none": 0.75, "acc_stderr,none": 0.05},
        "1+1": {"alias": "  - 1+1", "name": "1+1", "sample_len": 10, "acc,none": 0.9, "acc_stderr,none": 0.1,
                "exact_match,strict": 0.8, "exact_match_stderr,strict": "N/A"},
        "1+2": {"alias": "  - 1+2", "acc,none": 0.6, "acc_stderr,none": float("nan")},
        "2+2": {"alias": " - 2+2", "acc,none": "N/A", "acc_stderr,none": "N/A"},
    },
    "groups": {"everything": {"acc,none": 0.5}, "easy": {"acc,none": 0.75}},
    "group_subtasks": {"everything": ["easy", "2+2"], "easy": ["1+1", "1+2"], "1+1": []},
    "n-samples": {"1+1": {"original": 1000, "effective": 10}, "1+2": {"original": 7}},
    "config": {"model": "hf", "model_args": "dtype=float32,pretrained=org/tiny,revision=main"},
}  # fmt: skip


def test_lm_eval_groups_stand_apart_from_their_members(tmp_path: Path) -> None:
    found = read([save(tmp_path / "results_2026-01-02T03-04-05.json", json.dumps(LM_EVAL))], TOLD)
    assert [(r.subtask, r.metric, r.filter, r.value, r.stderr, r.n, r.is_group) for r in found.rows] == [
        ("everything", "acc", "none", 0.5, None, None, True),
        ("easy", "acc", "none", 0.75, 0.05, None, True),
        ("1+1", "acc", "none", 0.9, 0.1, 10, False),
        ("1+1", "exact_match", "strict", 0.8, None, 10, False),
        ("1+2", "acc", "none", 0.6, None, 7, False),
        ("2+2", "acc", "none", None, None, None, False),
    ]
    assert {row.model for row in found.rows} == {"org/tiny"}
    assert (found.format, found.table) == ("lm-eval", None)


def test_old_lm_eval_without_filters(tmp_path: Path) -> None:
    old = {"results": {"1+1": {"acc": 0.5, "acc_stderr": 0.1}}, "config": {"model_args": {"pretrained": "tiny"}}}
    (row,) = read([save(tmp_path / "old.json", json.dumps(old))], TOLD).rows
    assert (row.model, row.metric, row.filter, row.value, row.stderr) == ("tiny", "acc", None, 0.5, 0.1)


def test_samples_count_each_document_once_a_filter(tmp_path: Path) -> None:
    """Each of two documents is logged once a filter; then the first run's line of document 0 is written again, as 1."""

    def line(document: int, reader: str, value: float) -> str:
        sample = {"doc_id": document, "filter": reader, "metrics": ["exact_match"], "exact_match": value,
                  "filtered_resps": []}  # fmt: skip
        return json.dumps(sample)

    lines = [line(0, "strict", 0), line(0, "loose", 1), line(1, "strict", 1), line(1, "loose", 1), line(0, "strict", 1)]
    file = save(tmp_path / "samples_two_digit_sum_2026-01-02T03-04-05.678901.jsonl", "\n".join(lines))
    found = read([file], Columns(model="tiny"))
    assert [(r.subtask, r.metric, r.filter, r.value, r.n, r.stderr) for r in found.rows] == [
        ("two_digit_sum", "exact_match", "strict", 1.0, 2, 0.0), ("two_digit_sum", "exact_match", "loose", 1.0, 2, 0.0),
    ]  # fmt: skip
    assert found.notes == (f"{file}: 1 value is of a document and filter that came before; the last of them counts.",)
    half = save(tmp_path / "samples_x_2026-01-02T03-04-05.jsonl", "\n".join([line(0, "none", 0), line(1, "none", 1)]))
    (row,) = read([half], Columns(model="tiny")).rows
    assert (row.value, row.stderr) == (0.5, 0.5)  # sd of 0, 1 is sqrt(1/2), over sqrt(2)
    with pytest.raises(UsageError, match="does not name its model, as files of samples do not"):
        read([half], TOLD)


INSPECT = {
    "version": 2, "status": "success",
    "eval": {"model": "hf/org/tiny", "task": "addition"},
    "results": {"completed_samples": 20, "scores": [
        {"name": "match", "reducer": "mean", "scorer": "match", "metrics": {
            "accuracy": {"name": "accuracy", "value": 0.75}, "stderr": {"name": "stderr", "value": 0.125}}},
    ]},
}  # fmt: skip


def test_inspect_logs_as_zip_and_as_json(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.eval", "w") as archive:
        archive.writestr("header.json", json.dumps(INSPECT))
        archive.writestr("samples/1_epoch_1.json", "{}")
    for file in (tmp_path / "a.eval", save(tmp_path / "a.json", json.dumps(INSPECT))):
        found = read([file], TOLD)
        assert found.rows == (
            Row("hf/org/tiny", "addition", "accuracy", 0.75, "match/mean", 0.125, 20, file=str(file)),
        )
        assert found.notes == ()


def test_an_inspect_log_of_another_status_is_noted(tmp_path: Path) -> None:
    found = read([save(tmp_path / "a.json", json.dumps(INSPECT | {"status": "cancelled"}))], TOLD)
    assert found.notes == (
        f"{tmp_path / 'a.json'}: the run ended with status cancelled; its results may be of a part of the samples.",
    )


def _zstd(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(INSPECT))
    # Method 93 is zstd: in the local header at byte 8, in the central directory at byte 10.
    content = bytearray(path.read_bytes())
    content[8:10] = (93).to_bytes(2, "little")
    central = content.index(b"PK\1\2")
    content[central + 10 : central + 12] = (93).to_bytes(2, "little")
    path.write_bytes(content)


def _headless(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", "{}")


@pytest.mark.parametrize(
    ("name", "write", "message"),
    [
        ("none.csv", lambda p: None, "There is no file"),
        ("a.docx", lambda p: save(p, "x"), "what kind of file it is can't be told"),
        ("a.csv", lambda p: save(p, ""), "is empty"),
        ("a.csv", lambda p: save(p, b"model,acc\n\xff,1\n"), "is not in UTF-8"),
        ("a.csv", lambda p: save(p, "model,task,acc\ntiny,1+1\n"), "row 2 has 2 cells, the header 3"),
        ("a.csv", lambda p: save(p, "model,acc,acc\na,1,2\n"), "several columns are called 'acc'"),
        ("a.csv", lambda p: save(p, "name,task,acc\na,b,1\n"), "has no column that names the model"),
        ("a.csv", lambda p: save(p, "model,task,note\na,b,good\n"), "no column of numbers is left for a metric"),
        ("a.csv", lambda p: save(p, "model,task,acc\n,b,1\n"), "row 1 names no model in column model"),
        ("a.csv", lambda p: save(p, "model,task,metric,value\na,b,acc,1,5\n"), "row 2 has 5 cells"),
        ("a.csv", lambda p: save(p, "model,task,metric,value\na,b,acc,good\n"), "value of row 1 is 'good'"),
        ("a.csv", lambda p: save(p, "model,task,metric,value\na,b,,1\n"), "row 1 names no metric"),
        ("a.json", lambda p: save(p, "{"), "is no valid JSON"),
        ("a.json", lambda p: save(p, "[1]"), "row 1 is no object"),
        ("logs.json", lambda p: save(p, json.dumps({"a.eval": {"status": "success"}})), "has no column that names the"),
        ("a.parquet", lambda p: save(p, b"PAR1 and no more"), "can't be read as parquet"),
        ("a.duckdb", lambda p: save(p, b"12345678DUCKxxxx"), "can't be read as a DuckDB file"),
        ("results.json", lambda p: save(p, '{"results": {}, "model_name": "a"}'), "holds no result of any task"),
        ("results.json", lambda p: save(p, '{"results": {"a": {"acc": 1}}}'), "does not name its model"),
        ("a.eval", lambda p: save(p, "no zip"), "it is no ZIP file"),
        ("a.eval", _headless, "its run did not come to an end"),
        ("a.eval", _zstd, "zstd needs Python 3.14"),
        ("a.json", lambda p: save(p, json.dumps(INSPECT | {"results": None})), "has no results .status success"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told(name: str, write: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    write(tmp_path / name)
    with pytest.raises(UsageError, match=message) as caught:
        read([tmp_path / name], TOLD)
    assert str(tmp_path / name) in str(caught.value)


def test_a_table_of_several_is_named(tmp_path: Path) -> None:
    _sqlite(tmp_path / "a.db")
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE other (a INTEGER)")
    connection.close()
    with pytest.raises(UsageError, match=r"has 2 tables \(other, t\); name one with --table"):
        read([tmp_path / "a.db"], TOLD)
    assert plain(read([tmp_path / "a.db"], TOLD, "t")) == PLAIN_ROWS
    with pytest.raises(UsageError, match="has no table x; it has other, t"):
        read([tmp_path / "a.db"], TOLD, "x")
