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


WHOLE = ("athena", "postgres", "presto", "redshift", "sqlite", "trino", "tsql")


@pytest.mark.parametrize("dialect", WHOLE)
def test_whole_numbers_are_divided_into_whole_ones_where_the_dialect_does(dialect: str, db: Database) -> None:
    """Towards 0; nine circuits, of which the ninth is 3+3."""
    row = db.sql(
        "SELECT 7/2 AS a, -7/2 AS b, 7/-2 AS c, 7.0/2 AS d, 7/2*2 AS e, 20/3/2 AS f, count(*)/2 AS g, "
        "sum(circuit_id)/2 AS h, max(circuit_id/2) AS i, max(accuracy)/2 AS j, (1+6)/(1+1) AS k FROM circuits",
        dialect=dialect,
    ).rows()[0]
    assert row == {
        "a": 3, "b": -3, "c": -3, "d": 3.5, "e": 6, "f": 3, "g": 4, "h": 22, "i": 4, "j": 0.25, "k": 3,
    }  # fmt: skip
    assert [name for name, value in row.items() if isinstance(value, float)] == ["d", "j"]


@pytest.mark.parametrize("dialect", ["bigquery", "databricks", "duckdb", "mysql", "oracle", "snowflake", "spark"])
def test_elsewhere_a_fraction_is_left(dialect: str, db: Database) -> None:
    assert db.sql("SELECT 7/2 AS a, count(*)/2 AS b FROM circuits", dialect=dialect).rows() == [{"a": 3.5, "b": 4.5}]


@pytest.mark.parametrize(
    ("dialect", "expression", "expected"),
    [
        ("sqlite", "7 / 0", None),
        ("mysql", "-7 DIV 2", -3),
        ("bigquery", "DIV(-7, 2)", -3),
        ("postgres", "extract(hour FROM interval '3 hours' / 2)", 1),
        ("tsql", "avg(x)", 1),
        ("tsql", "avg(x) / 2", 0),
        ("tsql", "avg(x * 1.0)", 1.5),
        ("tsql", "avg(DISTINCT x)", 1),
        ("redshift", "avg(x)", 1),
        ("redshift", "avg(CASE WHEN x > 2 THEN x END)", None),
        ("postgres", "avg(x)", 1.5),
        ("presto", "avg(x)", 1.5),
        ("tsql", "CAST(0.1 AS FLOAT)", 0.1),
        ("oracle", "CAST(0.1 AS FLOAT)", 0.1),
        ("spark", "percentile(x, 0.5)", 1.5),
        ("hive", "percentile(x, array(0.25, 0.5))", [1.25, 1.5]),
        ("clickhouse", "quantile(0.5)(x)", 1.5),
        ("spark", "substring('abc', 0, 2)", "ab"),
        ("bigquery", "substring('abc', 0, 2)", "ab"),
        ("bigquery", "substr('abc', min(x) - 1, 2)", "ab"),
        ("bigquery", "substr('abc', -2, 1)", "b"),
        ("snowflake", "substr('abc', 0, 2)", "ab"),
        ("mysql", "substring('abc', 0, 2)", ""),
        ("mysql", "substring('abc', 0)", ""),
        ("mysql", "substring('abc', -2)", "bc"),
        ("trino", "substr('abc', 0, 2)", ""),
        ("sqlite", "substr('abc', 0, 2)", "a"),
        ("postgres", "substring('abc' FROM 0 FOR 2)", "a"),
        ("postgres", "substring('abc', -1, 4)", "ab"),
        ("postgres", "substring('abc', -1)", "abc"),
        ("tsql", "substring('abc', -5, 2)", ""),
        ("postgres", "substring('abc', 2, 1)", "b"),
        ("postgres", "substring('abc', NULL, 1)", None),
    ],
)
def test_what_would_be_another_value_is_put_right(
    dialect: str, expression: str, expected: object, db: Database
) -> None:
    """Of x = 1 and 2; the values are those of the dialects' manuals."""
    statement = f"SELECT {expression} AS a FROM (SELECT 1 AS x UNION ALL SELECT 2) AS two"
    if dialect == "oracle":
        statement = statement.replace(" AS two", " two")
    assert db.sql(statement, dialect=dialect).rows()[0] == {"a": expected}


def test_a_mean_over_a_window_is_whole_too(db: Database) -> None:
    statement = "SELECT avg(circuit_id) OVER (ORDER BY circuit_id) AS a FROM circuits ORDER BY circuit_id"
    assert [row["a"] for row in db.sql(statement, dialect="tsql").rows()] == [1, 1, 2, 2, 3, 3, 4, 4, 5]
    nested = "SELECT avg(avg(circuit_id)) OVER () AS a FROM circuits GROUP BY circuit_id % 2 ORDER BY 1"
    assert db.sql(nested, dialect="tsql").rows() == [{"a": 5}, {"a": 5}]


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
