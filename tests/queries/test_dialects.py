from __future__ import annotations

import pytest

from circuitdb.errors import UsageError
from circuitdb.queries import Database
from circuitdb.queries.dialects import to_duckdb


@pytest.mark.parametrize(
    ("dialect", "statement", "expected"),
    [
        ("postgres", "SELECT circuit_id::text || '!' AS a FROM circuits ORDER BY 1 LIMIT 1", "1!"),
        ("Postgres", "SELECT string_agg(subtask, '|' ORDER BY subtask) AS a FROM circuits WHERE subtask ~ '^1'",
         "1+1|1+2|1+3"),
        ("bigquery", "SELECT SAFE_CAST('x' AS INT64) AS a FROM `circuits` LIMIT 1", None),
        ("spark", "SELECT array(5, 6)[0] AS a", 5),
        ("spark", "SELECT percentile(circuit_id, 0.5) AS a FROM circuits", 5.0),
        ("mysql", "SELECT IFNULL(NULL, circuit_id) AS a FROM `circuits` WHERE subtask = '2+2'", 5),
        ("tsql", "SELECT TOP 1 circuit_id AS a FROM [circuits] ORDER BY circuit_id DESC", 9),
        ("snowflake", "SELECT IFF(1 > 2, 'a', 'b') AS a", "b"),
        ("postgres", "SELECT n_edges AS a FROM similarity(1, 2)", 75),
        ("duckdb", "FROM range(3) SELECT max(range) AS a", 2),
    ],
)  # fmt: skip
def test_statements_of_other_engines_are_answered(dialect: str, statement: str, expected: object, db: Database) -> None:
    assert db.sql(statement, dialect=dialect).rows() == [{"a": expected}]


@pytest.mark.parametrize(
    ("dialect", "statement", "message"),
    [
        ("postgress", "SELECT 1", "There is no dialect postgress; did you mean postgres? Known are: athena, bigquery,"),
        ("postgres", "SELECT FROM WHERE",
         "This is no valid postgres: Expected table name but got WHERE.\nLINE 1: SELECT FROM WHERE\n"
         "                    ^^^^^"),
        ("postgres", "SELECT 'open", "This can't be read as postgres: "),
        ("postgres", "DELETE FROM circuit", "DELETE is refused: one statement that only reads"),
        ("postgres", "SELECT 1; SELECT 2", "These are 2 statements"),
        ("postgres", "COPY circuit TO '/tmp/x'", "COPY is refused"),
        ("spark", "SELECT * FROM parquet.`/etc/passwd`", "names a file"),
        ("postgres", "SELECT subtsk FROM circuits", '"subtsk" not found'),
    ],
)  # fmt: skip
def test_what_is_wrong_is_pointed_at(dialect: str, statement: str, message: str, db: Database) -> None:
    with pytest.raises(UsageError) as caught:
        db.sql(statement, dialect=dialect)
    assert message in str(caught.value)


def test_duckdbs_own_is_left_as_it_is() -> None:
    statement = "FROM circuits -- not a word of it changed"
    assert to_duckdb(statement, "duckdb") is statement
