"""Files of evaluations at the edge of their formats: read as the format says, or refused in a sentence."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pytest

from circuitdb.errors import UsageError
from circuitdb.evals.columns import Columns
from circuitdb.evals.files import read
from circuitdb.evals.rows import Imported

TOLD = Columns()
INSPECT = {
    "status": "success", "eval": {"model": "hf/org/tiny", "task": "addition"},
    "results": {"scores": [{"name": "match", "metrics": {"accuracy": {"value": 0.75}}}]},
}  # fmt: skip


def plain(found: Imported) -> list[tuple[str, str, str, float | None, int | None]]:
    return [(row.model, row.subtask, row.metric, row.value, row.n) for row in found.rows]


def save(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


INFINITE = {
    "a.csv": "model,subtask,acc,acc_stderr\ntiny,1+1,0.5,0.1\ntiny,1+2,-inf,1e999\n",
    "long.csv": "model,subtask,metric,value,stderr\ntiny,1+1,acc,0.5,0.1\ntiny,1+2,acc,Infinity,inf\n",
    "a.json": json.dumps([{"model": "tiny", "subtask": "1+1", "acc": 0.5, "acc_stderr": 0.1},
                          {"model": "tiny", "subtask": "1+2", "acc": 10**400, "acc_stderr": float("inf")}]),
    "results.json": json.dumps({"model_name": "tiny", "results": {
        "1+1": {"acc": 0.5, "acc_stderr": 0.1}, "1+2": {"acc": float("inf"), "acc_stderr": "inf"}}}),
}  # fmt: skip


@pytest.mark.parametrize("name", INFINITE)
def test_an_infinity_is_null_in_its_cell_alone_and_counted(name: str, tmp_path: Path) -> None:
    file = save(tmp_path / name, INFINITE[name])
    found = read([file], TOLD)
    assert [(r.subtask, r.metric, r.value, r.stderr) for r in found.rows] == [
        ("1+1", "acc", 0.5, 0.1), ("1+2", "acc", None, None),
    ]  # fmt: skip
    assert found.notes == (f"{file}: 2 cells are infinite and count as NULL.",)
    if found.table is not None:
        column = "value" if name == "long.csv" else "acc"
        assert found.table[column].to_pylist() == [0.5, None]


def test_an_infinity_of_samples_and_of_a_log_is_counted_too(tmp_path: Path) -> None:
    lines = [{"doc_id": i, "metrics": ["ppl"], "ppl": value} for i, value in enumerate((2.0, float("inf"), 4.0))]
    file = save(tmp_path / "samples_x.jsonl", "\n".join(map(json.dumps, lines)))
    found = read([file], Columns(model="tiny", subtask="addition"))
    assert plain(found) == [("tiny", "addition", "ppl", 3.0, 2)]
    assert found.notes == (f"{file}: 1 cell is infinite and counts as NULL.",)
    scores = [{"name": "m", "metrics": {"accuracy": {"value": 0.5}, "ppl": {"value": float("inf")}}}]
    file = save(tmp_path / "log.json", json.dumps(INSPECT | {"results": {"scores": scores}}))
    found = read([file], TOLD)
    assert [(r.metric, r.value) for r in found.rows] == [("accuracy", 0.5), ("ppl", None)]
    assert found.notes == (f"{file}: 1 cell is infinite and counts as NULL.",)


def test_lines_end_where_the_format_says(tmp_path: Path) -> None:
    """U+2028, U+0085 and others are ends of lines to Python's splitlines(), and stand in strings here."""
    marks = "a\u2028b\x85c\u2029d\x0be\x1cf"
    sample = {"doc": marks, "filter": "none", "metrics": ["acc"], "acc": 1.0, "filtered_resps": []}
    for end in ("\n", "\r\n"):
        lines = [json.dumps(sample | {"doc_id": i}, ensure_ascii=False) for i in range(2)]
        file = save(tmp_path / "samples_a_2026-01-01T00-00-00.0.jsonl", end.join([*lines, ""]))
        (row,) = read([file], Columns(model="tiny")).rows
        assert (row.subtask, row.value, row.n) == ("a", 1.0, 2)
        file = save(
            tmp_path / "a.csv", end.join(["model,subtask,acc,doc", f"tiny,1+1,0.5,{marks}", 'tiny,1+2,1,"x\ry"'])
        )
        found = read([file], TOLD)
        assert plain(found) == [("tiny", "1+1", "acc", 0.5, None), ("tiny", "1+2", "acc", 1.0, None)]
        assert found.table is not None
        assert found.table["doc"].to_pylist() == [marks, "x\ry"]
    assert plain(read([save(tmp_path / "mac.csv", "model,subtask,acc\rtiny,1+1,0.5\r")], TOLD)) == [
        ("tiny", "1+1", "acc", 0.5, None)
    ]


def test_text_of_python_is_no_number(tmp_path: Path) -> None:
    found = read([save(tmp_path / "a.csv", "model,subtask,acc,f1\ntiny,1+1,0.5,1_0\n")], TOLD)
    assert plain(found) == [("tiny", "1+1", "acc", 0.5, None)]
    assert found.notes == (f"{tmp_path / 'a.csv'}: columns of text are no metrics, and only in the table itself: f1.",)


def test_a_number_of_questions_may_be_large(tmp_path: Path) -> None:
    (row,) = read([save(tmp_path / "a.csv", "model,subtask,acc,n\ntiny,1+1,0.5,99999999999\n")], TOLD).rows
    assert row.n == 99_999_999_999


@pytest.mark.parametrize("first", ["PAR1,model,subtask", "model,xxDUCK,subtask", "ARROW1,model,subtask"])
def test_text_that_begins_like_another_format_is_text(first: str, tmp_path: Path) -> None:
    names = first.split(",")
    cells = ["tiny" if name == "model" else "1+1" if name == "subtask" else "0.5" for name in names]
    found = read([save(tmp_path / "a.csv", f"{first}\n{','.join(cells)}\n")], TOLD)
    assert [row.value for row in found.rows] == [0.5]
    table = pa.table({"model": ["tiny"], "subtask": ["1+1"], "acc": [0.25]})
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.register("arriving", table)
        connection.execute("CREATE TABLE t AS FROM arriving")
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    for kind in ("duckdb", "parquet"):  # the others are still what they are, whatever their name
        assert plain(read([(tmp_path / f"a.{kind}").rename(tmp_path / f"{kind}.csv")], TOLD)) == [
            ("tiny", "1+1", "acc", 0.25, None)
        ]


def test_a_table_of_another_schema_is_found(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute(
            "CREATE SCHEMA other; CREATE TABLE other.t AS SELECT 'tiny' AS model, '1+1' AS task, 0.5 AS acc"
        )
    assert plain(read([tmp_path / "a.duckdb"], TOLD)) == [("tiny", "1+1", "acc", 0.5, None)]
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'tiny' AS model, '1+1' AS task, 0.25 AS acc")
    with pytest.raises(UsageError, match=r"has 2 tables \(t, other\.t\); name one with --table"):
        read([tmp_path / "a.duckdb"], TOLD)
    for table, value in (("t", 0.25), ("other.t", 0.5)):
        assert plain(read([tmp_path / "a.duckdb"], TOLD, table)) == [("tiny", "1+1", "acc", value, None)]


def _header(content: bytes) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("header.json", content)

    return write


def _corrupt(path: Path) -> None:
    _header(json.dumps(INSPECT).encode())(path)
    content = bytearray(path.read_bytes())
    content[45:60] = b"\xff" * 15
    path.write_bytes(content)


def _times(kind: pa.DataType) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        table = pa.table({"model": ["tiny"], "subtask": ["1+1"], "acc": [0.5], "when": pa.array([2**52], kind)})
        if path.suffix == ".parquet":
            pyarrow.parquet.write_table(table, path)
        else:
            pyarrow.feather.write_feather(table, path)

    return write


def _far_date(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT 'a' AS model, 'b' AS task, 1 AS acc, DATE '200000-01-01' AS \"when\""
        )


def _twice(path: Path) -> None:
    table = pa.Table.from_arrays(
        [pa.array(["a"]), pa.array(["b"]), *[pa.array([1])] * 2], names=["model", "task", "c", "c"]
    )
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize("document", [[1], {"a": 1}])
def test_a_document_goes_by_a_number_or_a_name(document: object, tmp_path: Path) -> None:
    sample = {"doc_id": document, "metrics": ["acc"], "acc": 1, "filtered_resps": []}
    with pytest.raises(UsageError, match=r"the doc_id of line 1 is a list or an object"):
        read([save(tmp_path / "a.jsonl", json.dumps(sample))], Columns(model="tiny", subtask="addition"))


DEEP = "[" * 200_000
HALF = r'[{"model": "a", "task": "b", "acc": 1, "x\ud800": 2}]'
NO_METRIC = INSPECT | {"results": {"scores": [{"name": "m", "metrics": {}}]}}


@pytest.mark.parametrize(
    ("name", "write", "message"),
    [
        ("a.csv", lambda p: save(p, "model,task,acc,n\na,b,1,1e300\n"), r"questions of 1e\+300 is none"),
        ("a.csv", lambda p: save(p, gzip.compress(b"model,task,acc\na,b,1\n")), r"is compressed with gzip; unpack it"),
        ("a.jsonl", lambda p: save(p, '{"model": "a"}\n{"model"\n'), r"Expecting ':' .* at line 2, column 9"),
        ("a.json", lambda p: save(p, f'[{{"acc": {"9" * 5000}}}]'), r"has an integer of more digits than can be read"),
        ("a.json", lambda p: save(p, DEEP), r"is nested too deeply to be read"),
        ("a.json", lambda p: save(p, HALF), r"has half of a character, '\\ud800'"),
        ("a.json", lambda p: save(p, '[{"acc": 1, "acc": 2}]'), r"has the key 'acc' twice in one object"),
        ("a.jsonl", lambda p: save(p, '{"acc": 1}\n{"f1": 1, "f1": 2}'), r"key 'f1' twice in one object in line 2"),
        ("a.json", lambda p: save(p, '[{"model": ["a"], "task": "b", "acc": 1}]'), r"the model of row 1, .* is a list"),
        ("a.json", lambda p: save(p, '{"results": {"a": {"acc": 1}}, "model_name": ["a"]}'), r"its model is a list or"),
        ("a.json", lambda p: save(p, json.dumps(INSPECT | {"eval": {"model": ["a"], "task": "b"}})), r"task is a list"),
        ("a.json", lambda p: save(p, json.dumps(NO_METRIC)), r"has scores, but none with a metric"),
        ("a.eval", _header(b'{"eval": "\xff\xfe"}'), r"its header.json is not in UTF-8"),
        ("a.eval", _header(b"{"), r"its header.json is no valid JSON"),
        ("a.eval", _header(DEEP.encode()), r"its header.json is nested too deeply"),
        ("a.eval", _header(b'{"n": ' + b"9" * 5000 + b"}"), r"its header.json has an integer of more digits"),
        ("a.eval", _corrupt, r"its header.json can't be unpacked: Error -3 "),
        ("a.parquet", _times(pa.timestamp("s")), r"column when, of timestamp\[ms\], has values that can't be read"),
        ("a.arrow", _times(pa.timestamp("s")), r"column when, of timestamp\[s\], has values that can't be read"),
        ("a.arrow", _times(pa.duration("s")), r"column when, of duration\[s\], has values that can't be read"),
        ("a.duckdb", _far_date, r"column when, of date32\[day\], has values that can't be read"),
        ("a.arrow", _twice, r"several columns are called 'c'"),
    ],
)  # fmt: skip
def test_what_python_fails_over_is_told(
    name: str, write: Callable[[Path], object], message: str, tmp_path: Path
) -> None:
    write(tmp_path / name)
    with pytest.raises(UsageError, match=message) as caught:
        read([tmp_path / name], TOLD)
    assert str(tmp_path / name) in str(caught.value)


def test_names_of_the_command_line_are_text() -> None:
    with pytest.raises(UsageError, match=r"The name 'ti.*ny' is not in UTF-8"):
        read([Path("a.csv")], Columns(model="ti\udcffny"))
    with pytest.raises(UsageError, match=r"The file .* is not in UTF-8; rename it"):
        read([Path("\udcff.csv")], TOLD)
