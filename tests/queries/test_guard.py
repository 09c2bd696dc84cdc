from __future__ import annotations

from datetime import date
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from circuitdb.connection import reading
from circuitdb.errors import UsageError
from circuitdb.queries import Database

READS_ONLY = "is refused: one statement that only reads is taken here"
SECRET = pa.table({"password": ["hunter2"]})  # a Python variable that must not be a table

HOSTILE = {
    "COPY circuit TO '{file}'": f"COPY {READS_ONLY}",
    "EXPORT DATABASE '{file}'": f"EXPORT {READS_ONLY}",
    "ATTACH '{file}' AS other": f"ATTACH {READS_ONLY}",
    "INSTALL httpfs": f"INSTALL {READS_ONLY}",
    "LOAD httpfs": f"LOAD {READS_ONLY}",
    "SET memory_limit = '1GB'": f"SET {READS_ONLY}",
    "PRAGMA enable_profiling": f"PRAGMA {READS_ONLY}",
    "CREATE TABLE mine AS SELECT 1": f"CREATE {READS_ONLY}",
    "create temp table mine as select 1": f"CREATE {READS_ONLY}",
    "INSERT INTO note (text) VALUES ('x')": f"INSERT {READS_ONLY}",
    "UPDATE circuit SET method = 'x'": f"UPDATE {READS_ONLY}",
    "DELETE FROM circuit": f"DELETE {READS_ONLY}",
    "DROP TABLE circuit": f"DROP {READS_ONLY}",
    "CHECKPOINT": f"CHECKPOINT {READS_ONLY}",
    "VACUUM": f"VACUUM {READS_ONLY}",
    "CALL enable_logging()": f"CALL {READS_ONLY}",
    "UPDATE EXTENSIONS": f"UPDATE {READS_ONLY}",
    "EXPLAIN ANALYZE INSERT INTO note (text) VALUES ('x')": f"INSERT {READS_ONLY}",
    "EXPLAIN COPY circuit TO '{file}'": f"COPY {READS_ONLY}",
    "SELECT 1; DROP TABLE circuit": "These are 2 statements",
    "SELECT 1; SELECT 2": "These are 2 statements",
    **{
        statement: f"{word} is refused, also within a query: nothing is written or set here"
        for word, statements in {
            "COPY": (
                "WITH x AS (COPY circuit TO '{file}') SELECT 1",
                "with x as not materialized (/* here */ copy circuit to '{file}') from x",
                "WITH x AS (WITH y AS (COPY (FROM circuit) TO '{file}') SELECT 1) FROM x",
                "EXPLAIN ANALYZE WITH x AS (COPY circuit TO '{file}') SELECT 1",
                "WITH x AS (SELECT 1) COPY circuit TO '{file}'",
                "FROM (COPY (SELECT 1) TO '{file}')",
            ),
            "INSERT": (
                "WITH x AS (INSERT INTO note (text) VALUES ('x') RETURNING *) FROM x",
                "WITH x AS (SELECT 1) INSERT INTO note FROM x",
                "SELECT (INSERT INTO note (text) VALUES ('x') RETURNING text)",
                f"WITH x AS (INSERT INTO note (text) SELECT {'(' * 500}1{')' * 500}) FROM x",  # sqlglot gives this up
            ),
            "UPDATE": (
                "WITH x AS (UPDATE note SET text = 'x' RETURNING *) FROM x",
                "FROM (UPDATE note SET text = 'x')",
            ),
            "DELETE": (
                "WITH gone AS (DELETE FROM circuit RETURNING *) SELECT * FROM gone",
                "SELECT * FROM (DELETE FROM circuit RETURNING *)",
                "EXPLAIN SELECT * FROM (DELETE FROM circuit)",
            ),
            "TRUNCATE": ("WITH x AS (TRUNCATE note) SELECT 1",),
            "MERGE": ("WITH x AS (MERGE INTO note USING note AS n ON true WHEN MATCHED THEN DELETE) SELECT 1",),
            "REPLACE": ("WITH x AS (REPLACE INTO note (text) VALUES ('x')) SELECT 1",),
            "CREATE": ("WITH x AS (CREATE TABLE mine (i INTEGER)) SELECT 1",),
            "ALTER": ("WITH x AS (ALTER TABLE note ADD COLUMN i INTEGER) SELECT 1",),
            "DROP": ("WITH x AS (DROP TABLE circuit) SELECT 1", "SELECT 1 FROM (DROP TABLE circuit)"),
            "ATTACH": ("WITH x AS (ATTACH '{file}') SELECT 1",),
            "EXPORT": ("WITH x AS (EXPORT DATABASE '{file}') SELECT 1",),
            "INSTALL": ("WITH x AS (INSTALL json) SELECT 1",),
            "SET": ("WITH x AS (SET threads = 1) SELECT 1",),
            "PRAGMA": ("FROM (PRAGMA version)",),
            "CALL": ("WITH x AS (CALL pragma_version()) FROM x",),
            "CHECKPOINT": ("WITH x AS (CHECKPOINT) SELECT 1",),
        }.items()
        for statement in statements
    },
    "SELECT * FROM read_csv('{file}')": "read_csv.. is refused: it reads files",
    "SELECT (SELECT content FROM READ_TEXT('{file}'))": "READ_TEXT.. is refused: it reads files",
    "SELECT * FROM glob('/etc/*')": "glob.. is refused: it reads files",
    "SELECT * FROM parquet_scan('{file}')": "parquet_scan.. is refused: it reads files",
    "EXPLAIN SELECT * FROM \"read_blob\"('{file}')": "read_blob.. is refused: it reads files",
    "FROM enable_profiling(save_location = '{file}')": "enable_profiling.. is refused: it changes the engine",
    "SELECT * FROM '{file}'": "names a file",
    'FROM circuit JOIN "{file}" USING (a)': "names a file",
    "DESCRIBE '{file}'": "names a file",
    "SUMMARIZE '{file}'": "names a file",
    "SHOW '{file}'": "names a file",
    "SELECT * FROM SECRET": "Table with name SECRET does not exist",
    "": "There is no statement",
    "-- nothing but a comment": "There is no statement",
    "SELECT 'open": "ends within a string",
    "SELECT 1 \0 FROM circuit": "a character that is no text",
    "SELECT '\ud800'": "a character that is no text",
    "FROM (PIVOT circuit ON method)": "name them: ON column IN",
}
HARMLESS = {
    "WITH two AS (SELECT 2 AS n) SELECT n FROM two": 2,
    "SELECT 'insert into circuit; drop table circuit' AS n": "insert into circuit; drop table circuit",
    "SELECT 1 AS n; -- a comment after the semicolon": 1,
    "/* before; */ SELECT count(*) AS n FROM circuit;;": 9,
    "FROM circuit SELECT count(*) AS n": 9,
    "VALUES (3)": 3,
    "(SELECT 4) UNION ALL (SELECT 4) LIMIT 1": 4,
    'SELECT "update" AS n FROM (SELECT 5 AS "update")': 5,
    "WITH copy AS (SELECT 7 AS delete) SELECT (copy.delete) AS n FROM copy": 7,
    "SELECT count(load) AS n FROM (SELECT 8 AS load) WHERE (load IS NOT NULL)": 1,
    'WITH x AS (SELECT \'copy circuit to\' AS "insert") SELECT ("insert") AS n FROM x': "copy circuit to",
    'WITH "a/b.csv" AS (SELECT 6 AS n) FROM "a/b.csv"': 6,
    "SELECT count(*) AS n FROM top_edges(1, 7)": 7,
    "SELECT max(replace(subtask, '+', '')) AS n FROM circuits": "33",
    "DESCRIBE SELECT 1 AS n": "n",
    "DESCRIBE circuit": "circuit_id",
    "SUMMARIZE SELECT 1 AS n": "n",
    "SHOW TABLES": "attached_file",
    "\ufeffSELECT 1": 1,
    f"SELECT {'(' * 500}1{')' * 500}": 1,
    "FROM (PIVOT circuit ON method IN ('eap-ig') USING count(*)) SELECT \"eap-ig\"": 1,
    "EXPLAIN SELECT 1": "physical_plan",
    "explain (format json) select ';'": "physical_plan",
    "EXPLAIN ANALYZE SELECT 1": "analyzed_plan",
}


@pytest.mark.parametrize(("statement", "message"), HOSTILE.items(), ids=str)
def test_hostile_statements_are_refused_and_nothing_changes(
    statement: str, message: str, path: Path, db: Database, tmp_path: Path
) -> None:
    file = tmp_path / "stolen.csv"
    file.write_text("a\n1\n")
    before = path.read_bytes(), sorted(p.name for p in path.parent.iterdir())
    with pytest.raises(UsageError, match=message):
        db.sql(statement.format(file=file))
    assert (path.read_bytes(), sorted(p.name for p in path.parent.iterdir())) == before
    assert [p.name for p in tmp_path.iterdir()] == ["stolen.csv"]
    assert file.read_text() == "a\n1\n"


@pytest.mark.parametrize(
    "statement",
    [
        "COPY circuit TO '{file}'",
        "EXPORT DATABASE '{file}'",
        "ATTACH '{file}' AS other",
        "INSTALL httpfs",
        "SET threads = 1",
        "INSERT INTO note (text) VALUES ('x')",
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM '{file}'",
        "FROM enable_profiling(save_location = '{file}')",
        "WITH gone AS (DELETE FROM circuit RETURNING *) SELECT * FROM gone",
        "WITH x AS (COPY circuit TO '{file}') SELECT 1",
        "WITH x AS (TRUNCATE note) SELECT 1",
        "SELECT * FROM SECRET",
    ],
)
def test_the_connection_refuses_them_too(statement: str, path: Path, tmp_path: Path) -> None:
    file = tmp_path / "stolen.csv"
    file.write_text("a\n1\n")
    with reading(path) as connection, pytest.raises(duckdb.Error):
        connection.execute(statement.format(file=file)).fetchall()


@pytest.mark.parametrize(("statement", "value"), HARMLESS.items(), ids=str)
def test_harmless_statements_are_answered(statement: str, value: object, db: Database) -> None:
    assert next(iter(db.sql(statement).rows()[0].values())) == value


@pytest.mark.parametrize(
    ("statement", "parts"),
    [
        ("SELECT subtsk FROM circuits", ['"subtsk" not found', '"subtask"', "SELECT subtsk", "       ^"]),
        ("SELECT *\nFROM circuitz", ["circuitz does not exist", '"circuit"', "FROM circuitz\n", "SHOW TABLES lists"]),
        ("SELECT nr FROM", ['syntax error at or near "FROM"', "          ^"]),
        ("SELEC 1", ['syntax error at or near "SELEC"', "        ^^^^^"]),
        ("SELECT 'a'::INTEGER", ["Could not convert string 'a'"]),
        ("SELECT $1", ["Values were not provided"]),
    ],
)
def test_mistakes_are_explained(statement: str, parts: list[str], db: Database) -> None:
    with pytest.raises(UsageError) as caught:
        db.sql(statement)
    message = str(caught.value)
    assert "Error:" not in message.splitlines()[0]
    assert [part for part in parts if part not in message] == []
    assert len(message.splitlines()) <= 7


@pytest.mark.parametrize(
    ("statement", "guess"),
    [
        ("FROM dual", None),
        ("FROM information_schema.tablez", None),
        ("FROM duckdb_setings()", None),
        ("FROM Circuitz", "circuit"),
        ("FROM main.modle", "model"),
        ("FROM top_edgs(1, 2)", "top_edges"),
        ("SELECT lenth('a')", "length"),
    ],
)
def test_what_is_suggested_is_in_the_file(statement: str, guess: str | None, db: Database) -> None:
    with pytest.raises(UsageError, match="does not exist") as caught:
        db.sql(statement)
    lines = [line for line in str(caught.value).splitlines() if line.startswith("Did you mean ")]
    assert lines == ([] if guess is None else [f'Did you mean "{guess}"?'])


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_what_the_parser_cannot_read_is_told_by_the_error_alone(
    dialect: str, db: Database, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError):
        db.sql(f"SELECT {'(' * 500}nothing{')' * 500}", dialect=dialect)
    assert (caplog.records, capfd.readouterr().err) == ([], "")


def test_times_that_python_has_no_object_for_are_texts(db: Database) -> None:
    found = db.sql(
        "SELECT 'infinity'::DATE AS a, '-infinity'::TIMESTAMP AS b, DATE '294247-01-10' AS c, "
        "TIMESTAMP '20000-01-02 03:04:05' AS d, [DATE '2024-02-29', 'infinity'::DATE] AS e, "
        "{'x': 'infinity'::DATE} AS f, DATE '2024-02-29' AS g"
    )
    assert found.rows() == [
        {
            "a": "infinity", "b": "-infinity", "c": "294247-01-10", "d": "20000-01-02 03:04:05.000000",
            "e": [date(2024, 2, 29), "infinity"], "f": {"x": "infinity"}, "g": date(2024, 2, 29),
        }
    ]  # fmt: skip
    assert "infinity" in repr(found)
    everything = db.sql("FROM test_all_types()")
    assert len(everything.rows()) == 3
    assert everything.rows()[1]["timestamp"] == "294247-01-10 04:00:54.775806"
    assert "294247-01-10" in everything._repr_html_()


def test_columns_of_one_name_are_numbered(db: Database) -> None:
    found = db.sql("SELECT 1 AS a, 2 AS a, 3 AS b, 4 AS a_1, 5 AS a")
    assert found.rows() == [{"a": 1, "a_2": 2, "b": 3, "a_1": 4, "a_3": 5}]
    assert found.notes == ("Several columns are called a; all but the first are numbered.",)
    assert db.sql("SELECT x.circuit_id, y.circuit_id FROM circuit x JOIN circuit y USING (circuit_id)").columns == [
        "circuit_id", "circuit_id_1",
    ]  # fmt: skip


def test_values_of_any_type_come_through(db: Database) -> None:
    row = db.sql(
        "SELECT NULL AS a, {'x': [1, 2]} AS b, 1::HUGEINT AS c, DATE '2024-02-29' AS d, 'x'::BLOB AS e"
    ).rows()[0]
    assert row["a"] is None
    assert row["b"] == {"x": [1, 2]}
    assert str(row["d"]) == "2024-02-29"
    assert db.sql("SELECT parameters FROM circuits WHERE circuit_id = 2").rows() == [
        {"parameters": '{"digits_a":1,"digits_b":2}'}
    ]
    assert len(db.sql("SELECT 1 WHERE false")) == 0
