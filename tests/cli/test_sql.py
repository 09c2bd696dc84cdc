"""`circuitdb sql`: forms, files, standard input, refusals."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from terminals import Cli, run, run_in_terminal

STATEMENT = "select circuit_id, subtask, accuracy, revision from circuits order by circuit_id limit 2"
ROWS: list[dict[str, object]] = [
    {"circuit_id": 1, "subtask": "1+1", "accuracy": 0.5, "revision": None},
    {"circuit_id": 2, "subtask": "1+2", "accuracy": 1 / 3, "revision": None},
]
CSV = "circuit_id,subtask,accuracy,revision\n1,1+1,0.5,\n2,1+2,0.3333333333333333,\n"


def test_each_format_on_standard_output(cli: Cli) -> None:
    assert cli("sql", STATEMENT).table == [
        {"circuit_id": "1", "subtask": "1+1", "accuracy": "0.500", "revision": "-"},
        {"circuit_id": "2", "subtask": "1+2", "accuracy": "0.333", "revision": "-"},
    ]
    assert cli("sql", STATEMENT, "--format", "csv").out == cli("sql", STATEMENT, "--csv").out == CSV
    assert json.loads(cli("sql", STATEMENT, "--format", "json").out) == {
        "title": "2 rows", "columns": ["circuit_id", "subtask", "accuracy", "revision"], "rows": ROWS, "notes": [],
    }  # fmt: skip


def test_parquet_keeps_types_through_a_pipe(shared_store: Path, tmp_path: Path) -> None:
    code = (
        "import io, subprocess, sys, pyarrow.parquet as pq; from terminals import MAIN; "
        "out = subprocess.run([sys.executable, '-c', MAIN, *sys.argv[1:]], stdout=subprocess.PIPE, check=True).stdout; "
        "table = pq.read_table(io.BytesIO(out)); print(table.to_pylist(), table.schema.field('score').type)"
    )
    support = Path(__file__).parents[1] / "support"
    statement = "select 1 as n, 'nan'::double as x, 0.25::float as score"
    done = run(
        ["sql", statement, "--format", "parquet"],
        tmp_path,
        code=code,
        settings={"CIRCUITDB": str(shared_store), "PYTHONPATH": str(support)},
    )
    assert done.stdout == "[{'n': 1, 'x': nan, 'score': 0.25}] float\n"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("a.csv", []),
        ("a.json", []),
        ("a.parquet", []),
        ("a.CSV", []),
        ("plain", ["--format", "csv"]),
        ("b.txt", ["--csv"]),
    ],
)
def test_a_file_in_the_form_of_its_name_or_of_the_option(cli: Cli, name: str, arguments: list[str]) -> None:
    done = cli("sql", STATEMENT, "-o", name, *arguments)
    assert (done.code, done.out, done.err) == (0, "", "")
    if name == "a.parquet":
        assert pq.read_table(name).to_pylist() == ROWS
    elif name == "a.json":
        assert json.loads(Path(name).read_text())["rows"] == ROWS
    else:
        assert Path(name).read_text() == CSV
    assert [path.name for path in Path().iterdir()] == [name]


def test_a_file_is_replaced_only_by_force_and_only_by_an_answer(cli: Cli) -> None:
    Path("a.csv").write_text("mine")
    refused = cli("sql", STATEMENT, "-o", "a.csv")
    assert (refused.code, refused.err) == (
        2, "Error: a.csv exists already; name another file, or replace it with --force.\n",
    )  # fmt: skip
    assert cli("sql", "select wrong", "-o", "a.csv", "--force").code == 2
    assert Path("a.csv").read_text() == "mine"
    assert cli("sql", STATEMENT, "-o", "a.csv", "--force").code == 0
    assert Path("a.csv").read_text() == CSV


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "none/a.csv"], "The folder of none/a.csv does not exist; make it, or name another file with -o."),
        (["-o", "."], ". is a folder; name a file with -o."),
        (["--force"], "--force replaces the file of -o; name one, or leave --force out."),
        (["--format", "csv", "--json"], "--format csv and --json contradict each other; give one of them."),
    ],
)
def test_impossible_outputs_are_refused_before_the_question(cli: Cli, arguments: list[str], message: str) -> None:
    done = cli("sql", "select wrong", *arguments)
    assert (done.code, done.out, done.err) == (2, "", f"Error: {message}\n")


def test_parquet_is_not_for_a_terminal(shared_store: Path, tmp_path: Path) -> None:
    code, said = run_in_terminal(
        ["sql", "select 1", "--format", "parquet", "--db", str(shared_store)], tmp_path, columns=200
    )
    assert code == 2
    assert "Parquet is not for a terminal; name a file with -o, or send the output on with a pipe." in said


def test_a_statement_from_standard_input(shared_store: Path, tmp_path: Path) -> None:
    done = run(["sql", "-", "--csv"], tmp_path, settings={"CIRCUITDB": str(shared_store)}, given="select 1 as a;\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "a\n1\n", "")


def test_what_is_wrong_with_a_statement_is_pointed_at(cli: Cli) -> None:
    done = cli("sql", "select accuracyy from circuits")
    lines = done.err.splitlines()
    assert done.code == 2
    assert lines[0].startswith('Error: Referenced column "accuracyy" not found')
    assert lines[-2:] == ["LINE 1: select accuracyy from circuits", "               ^^^^^^^^^"]


def test_a_plan_is_drawn_as_duckdb_draws_it(cli: Cli) -> None:
    done = cli("sql", "explain from circuits")
    assert done.code == 0
    assert done.out.startswith("╭─")
    assert len(done.out.splitlines()) > 10
    assert list(json.loads(cli("sql", "explain from circuits", "--json").out)["rows"][0]) == [
        "explain_key", "explain_value",
    ]  # fmt: skip


@pytest.mark.parametrize("statement", ["drop table circuit", "copy circuit to 'x.csv'", "from 'a.csv'"])
def test_only_reading_the_database_is_allowed(cli: Cli, statement: str) -> None:
    done = cli("sql", statement)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "is refused" in done.err


def test_columns_of_one_name_and_numbers_that_are_none(cli: Cli) -> None:
    done = cli("sql", "select 1 as a, 2 as a, 'inf'::double as x, 'nan'::float as y", "--json")
    whole = json.loads(done.out)
    assert whole["rows"] == [{"a": 1, "a_1": 2, "x": None, "y": None}]
    assert whole["notes"][-1] == "Infinite numbers and NaN are given as NULL here; there are 2 of them."


def test_every_type_of_the_database_has_a_form(cli: Cli) -> None:
    values = {
        "1::hugeint": (1, "1"),
        "1.25::decimal(9, 4)": (1.25, "1.250"),
        "12345678901234567890.5::decimal(38, 1)": ("12345678901234567890.5", "12345678901234567890.5"),
        "date '2026-01-02'": ("2026-01-02", "2026-01-02"),
        "time '03:04:05'": ("03:04:05", "03:04:05"),
        "timestamp '2026-01-02 03:04:05.6'": ("2026-01-02T03:04:05.600000", "2026-01-02 03:04:05"),
        "interval '1 month 2 days 500 milliseconds'": ("P1M2DT0.5S", "P1M2DT0.5S"),
        "'\\xFF'::blob": ("ff", "ff"),
        "[1.5, null]": ([1.5, None], "1.5, -"),
        "{'a': [1]}": ({"a": [1]}, '{"a": [1]}'),
        "map {'k': 2}": ([["k", 2]], '[["k", 2]]'),
        "'{\"a\": 1}'::json": ('{"a": 1}', '{"a": 1}'),
        "'x'::enum('x', 'y')": ("x", "x"),
        "null": (None, "-"),
        "''": ("", ""),
    }
    statement = "select " + ", ".join(f"{sql} as c{i}" for i, sql in enumerate(values))
    (row,) = json.loads(cli("sql", statement, "--json").out)["rows"]
    assert list(row.values()) == [value for value, _ in values.values()]
    (shown,) = cli("sql", statement).table
    assert list(shown.values()) == [text for _, text in values.values()]
    (line,) = csv.reader(io.StringIO(cli("sql", statement, "--csv").out.split("\n", 1)[1]))
    assert line[:3] == ["1", "1.25", "12345678901234567890.5"]


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("interval '12345.678 seconds'", "PT12345.678S"),
        ("interval '1234567.000001 seconds'", "PT1234567.000001S"),
        ("interval '-1 month -0.5 seconds'", "P-1MT-0.5S"),
        ("interval '0 days'", "PT0S"),
        ("[interval '1 day']", ["P1D"]),
        ("'2026-01-02 03:04:05.123456789'::timestamp_ns", "2026-01-02T03:04:05.123456789"),
        ("'12:00:00+05:30'::timetz", "12:00:00+05:30"),
        ("time '24:00:00'", "24:00:00"),
        ("'101'::bit", "101"),
        ("{'a b': ['101'::bit], 't': time '24:00:00'}", {"a b": ["101"], "t": "24:00:00"}),
        ("array_value('1'::bit, '0'::bit)", ["1", "0"]),
        ("map {'k': '01'::bit}", [["k", "01"]]),
        ("union_value(k := 1)", 1),
        ("'infinity'::date", "infinity"),
        ("'-infinity'::timestamp", "-infinity"),
        ("'infinity'::timestamptz", "infinity"),
        ("'infinity'::timestamp_ns", "infinity"),
        ("'-infinity'::timestamp_s", "-infinity"),
        ("'0044-03-15 (BC)'::date", "0044-03-15 (BC)"),
        ("'10000-02-29'::date", "10000-02-29"),
        ("'0044-03-15 (BC) 12:00:00.5'::timestamp", "0044-03-15 (BC) 12:00:00.5"),
        ("'12000-03-15 12:00:00+00'::timestamptz", "12000-03-15 12:00:00+00"),
        ("[date '0001-01-01', date '9999-12-31']", ["0001-01-01", "9999-12-31"]),
        ("timestamptz '1969-12-31 23:59:59.25+00'", "1969-12-31T23:59:59.250000Z"),
    ],
)
def test_values_that_python_lacks_are_printed_right(cli: Cli, sql: str, value: object) -> None:
    statement = f"select {sql} as a, {sql} as a"
    assert json.loads(cli("sql", statement, "--json").out)["rows"] == [{"a": value, "a_1": value}]
    assert cli("sql", statement).code == 0
    (line,) = csv.reader(io.StringIO(cli("sql", statement, "--csv").out.split("\n", 1)[1]))
    assert line[0] == (value if isinstance(value, str) else json.dumps(value))


def test_parquet_has_text_where_it_lacks_the_type(cli: Cli) -> None:
    done = cli("sql", "select interval '90 seconds' as i, union_value(k := 1) as u, 2 as n", "-o", "a.parquet")
    assert (done.code, done.err) == (0, "Note: Parquet has no such type as that of i, u; written as text.\n")
    assert pq.read_table("a.parquet").to_pylist() == [{"i": "PT90S", "u": "1", "n": 2}]


def test_a_pipe_gets_every_row_and_every_character(cli: Cli) -> None:
    done = cli("sql", "select range as n, repeat('x', 300) as long from range(20000)")
    assert len(done.table) == 20_000
    assert done.table[-1] == {"n": "19999", "long": "x" * 300}
