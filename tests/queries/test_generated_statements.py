"""Five hundred statements that must be refused, made of hostile ones in every disguise; and as many harmless twins.

A disguise is what a person or a program may wrap a statement in: comments, case, white space, a query around it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from circuitdb.connection import reading
from circuitdb.errors import UsageError
from circuitdb.queries.statement import run

N = 500
# Each with a part that writes, attaches, installs, sets or reads files. FILE stands for a file that is there.
STATEMENTS = [
    "COPY circuit TO 'FILE'", "COPY (SELECT 1) TO 'FILE' (FORMAT parquet)", "COPY note FROM 'FILE'",
    "EXPORT DATABASE 'FILE'", "IMPORT DATABASE 'FILE'", "ATTACH 'FILE' AS other", "DETACH circuits", "USE memory",
    "INSTALL httpfs", "FORCE INSTALL json", "LOAD httpfs", "SET threads = 1", "SET GLOBAL memory_limit = '1GB'",
    "RESET threads",
    "PRAGMA database_size", "PRAGMA threads = 1", "CALL pragma_version()", "CHECKPOINT", "FORCE CHECKPOINT", "VACUUM",
    "ANALYZE circuit", "INSERT INTO note (text) VALUES ('x')", "INSERT OR REPLACE INTO note (text) SELECT 'x'",
    "UPDATE circuit SET method = 'x'", "DELETE FROM circuit", "TRUNCATE circuit", "DROP TABLE circuit",
    "DROP VIEW circuits",
    "CREATE TABLE mine (a INTEGER)", "CREATE OR REPLACE VIEW circuits AS SELECT 1",
    "CREATE TEMP TABLE mine AS SELECT 1",
    "CREATE MACRO f(a) AS a", "CREATE SECRET (TYPE s3)", "ALTER TABLE circuit ADD COLUMN x INTEGER",
    "COMMENT ON TABLE circuit IS 'x'", "BEGIN", "COMMIT", "ROLLBACK", "PREPARE p AS SELECT 1", "EXECUTE p",
    "DEALLOCATE p",
    "MERGE INTO note USING (SELECT 1) ON true WHEN NOT MATCHED THEN INSERT (text) VALUES ('x')",
    "WITH gone AS (DELETE FROM circuit RETURNING *) SELECT * FROM gone",
]  # fmt: skip
QUERIES = [
    "SELECT * FROM 'FILE'", 'SELECT * FROM "FILE"', "FROM 'FILE'", "TABLE 'FILE'", "DESCRIBE 'FILE'",
    "SUMMARIZE 'FILE'", "SELECT * FROM read_csv('FILE')", "SELECT * FROM read_csv_auto(['FILE'])",
    "SELECT * FROM read_text('FILE')",
    "SELECT * FROM read_blob('FILE')", "SELECT * FROM read_json('FILE')", "SELECT * FROM read_parquet('FILE')",
    "SELECT * FROM parquet_metadata('FILE')", "SELECT * FROM sniff_csv('FILE')", "SELECT * FROM glob('/etc/*')",
    "SELECT (SELECT content FROM read_text('FILE'))", "SELECT 1 WHERE EXISTS (FROM 'FILE')",
    "SELECT * FROM circuit, LATERAL read_text('FILE')", "VALUES ((SELECT 1 FROM read_text('FILE')))",
    "SELECT * FROM enable_profiling(save_location = 'FILE')", "FROM hidden_frame", "SELECT * FROM duckdb_secrets()",
]  # fmt: skip
HARMLESS = [
    "SELECT count(*) FROM circuit", "FROM circuits SELECT max(circuit_id)", "VALUES (1), (2)", "SHOW TABLES",
    "SELECT 'insert into circuit; drop table circuit'", "SELECT 'COPY x TO ''FILE'''", "DESCRIBE circuit",
    "SUMMARIZE circuit",
    "WITH two AS (SELECT 2 AS n) FROM two", 'SELECT 1 AS "drop table circuit"', "SELECT replace('a', 'a', 'b')",
    "SELECT edge FROM top_edges(1, 3)", "EXPLAIN SELECT 1", "(SELECT 1) UNION ALL (SELECT 2)", "TABLE circuit",
    "SELECT $$read_text('FILE')$$", "SELECT 1 AS copy, 2 AS attach, 3 AS install",
]  # fmt: skip
SPACES = [" ", "  ", "\n", "\t", " /* x; y */ ", " -- SELECT 1\n", "/**/", "\r\n"]
Wrapper = Callable[[str], str]
CASES: list[Wrapper] = [str, str.upper, str.lower, str.title]
AROUND: list[Wrapper] = [
    str, lambda s: s + ";", lambda s: f"{s} ;; -- SELECT 1", lambda s: f"-- SELECT 1\n{s}",
    lambda s: f"/* ; */{s}",
    lambda s: f"\ufeff{s}", lambda s: f"\n\n  {s}\n",
]  # fmt: skip
BEFORE: list[Wrapper] = [lambda s: f"SELECT 1; {s}", lambda s: f"{s}; SELECT 1", lambda s: f"EXPLAIN {s}",
                         lambda s: f"EXPLAIN ANALYZE {s}", lambda s: f"SELECT ';' ; {s} ;"]  # fmt: skip
INSIDE: list[Wrapper] = [
    lambda s: f"SELECT * FROM ({s})", lambda s: f"WITH a AS ({s}) FROM a", lambda s: f"SELECT 1 UNION ALL ({s})",
    lambda s: f"EXPLAIN {s}", lambda s: f"DESCRIBE ({s})", lambda s: f"SELECT 1; {s}",
]  # fmt: skip


def disguised(rng: random.Random, statement: str, file: Path) -> str:
    """The statement with other spaces and another case of its words, but for what is quoted."""
    pieces = statement.split("'")
    for i in range(0, len(pieces), 2):
        words = [rng.choice(CASES)(word) for word in pieces[i].split(" ")]
        pieces[i] = "".join(word + (rng.choice(SPACES) if j < len(words) - 1 else "") for j, word in enumerate(words))
    return rng.choice(AROUND)("'".join(pieces)).replace("FILE", str(file)).replace("file", str(file))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "there.csv"
    path.write_text("a\n1\n")
    return path


def test_five_hundred_hostile_statements_are_refused_and_nothing_changes(path: Path, file: Path) -> None:
    rng = random.Random(0)
    before = path.read_bytes(), sorted(p.name for p in path.parent.iterdir())
    passed = []
    with reading(path) as connection:
        for _ in range(N):
            hostile = rng.choice(STATEMENTS + QUERIES)
            wrappers = [*(INSIDE if hostile in QUERIES else BEFORE), AROUND[0]]
            statement = disguised(rng, rng.choice(wrappers)(hostile), file)
            try:
                run(connection, statement)
            except UsageError:
                continue
            passed.append(statement)
    assert passed == []
    assert (path.read_bytes(), sorted(p.name for p in path.parent.iterdir())) == before
    assert [(p.name, p.read_text()) for p in file.parent.iterdir()] == [("there.csv", "a\n1\n")]


def test_harmless_statements_in_the_same_disguises_are_answered(path: Path, file: Path) -> None:
    rng = random.Random(1)
    with reading(path) as connection:
        for _ in range(N):
            statement = disguised(rng, rng.choice(HARMLESS), file)
            assert len(run(connection, statement)) >= 1, statement
