"""A statement in the SQL of another engine, put into DuckDB's.

sqlglot translates; what means another number in DuckDB, without an error, is put right before:

- Division: where 7 / 2 of whole numbers is 3 (PostgreSQL, SQL Server, SQLite, Presto, Redshift, ...), it becomes
  DuckDB's //, which drops the fraction towards 0 for whole numbers, as these do, and is plain division for all others.
  Where the mean of whole numbers is one too (SQL Server, Redshift), it becomes the sum // the count.
- Quantile: Spark's percentile is interpolated, DuckDB's quantile is not; quantile_cont is.
- Substring from 0, and from before the text: see `_Before`.
- FLOAT is DuckDB's of 32 bits in the translation, but of 64 in SQL Server, Oracle, Teradata and Exasol: DOUBLE.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any

from circuitdb.errors import UsageError

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.errors import ParseError

DUCKDB = "duckdb"


class _Before(Enum):
    """What a substring from position 0 or less is; DuckDB counts 0 as a place before the text, and less from its end.

    FIRST: 0 is the first character. NOTHING: from 0 there is none. COUNTED: all are places before the text.
    """

    FIRST = "first"
    NOTHING = "nothing"
    COUNTED = "counted"


_SUBSTRING = {
    **dict.fromkeys(("bigquery", "databricks", "hive", "oracle", "spark", "spark2"), _Before.FIRST),
    **dict.fromkeys(("athena", "clickhouse", "doris", "mysql", "presto", "singlestore", "starrocks", "trino"),
                    _Before.NOTHING),
    **dict.fromkeys(("fabric", "materialize", "postgres", "redshift", "risingwave", "tsql"), _Before.COUNTED),
}  # fmt: skip
_WIDE_FLOATS = ("exasol", "fabric", "oracle", "teradata", "tsql")
_WHOLE_MEANS = ("fabric", "redshift", "tsql")
_PAST_ANY_TEXT = 2**31 - 1
# How the parser's messages name its own classes: of a token the text is told, of a class the last part of its name.
_INTERNAL = re.compile(r"<Token token_type: [^,]*, text: (.*?), line: .*?>|<class '(?:\w+\.)*(\w+)'>")


def to_duckdb(statement: str, dialect: str) -> str:
    """The same statement in DuckDB's SQL; one in it already is left as it is.

    Raises UsageError for a dialect that is not known, a statement that is none of it, or what DuckDB has nothing for.
    """
    from sqlglot import ErrorLevel, parse
    from sqlglot.errors import ParseError, SqlglotError, UnsupportedError

    name = dialect.lower()
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        guess = f"; did you mean {near[0]}?" if near else "."
        raise UsageError(f"There is no dialect {dialect}{guess} Known are: {', '.join(names())}.")
    if name == DUCKDB:
        return statement
    try:
        with quiet():
            trees = [tree for tree in parse(statement, dialect=name) if tree is not None]
            for tree in trees:
                _put_right(tree, name)
            parts = [tree.sql(dialect=DUCKDB, copy=False, unsupported_level=ErrorLevel.RAISE) for tree in trees]
    except ParseError as error:
        raise UsageError(_place(name, statement, error)) from error
    except UnsupportedError as error:
        raise UsageError(f"DuckDB has nothing for a part of this {name} statement: {error}.") from error
    except (SqlglotError, RecursionError) as error:
        raise UsageError(f"This can't be read as {name}: {' '.join(str(error).split())}") from error
    return ";\n".join(part for part in parts if part)


@contextmanager
def quiet() -> Iterator[None]:
    """Without what sqlglot logs, which is written to stderr: what it can't read is judged and told elsewhere."""
    logger = logging.getLogger("sqlglot")
    logger.addFilter(_nothing)
    try:
        yield
    finally:
        logger.removeFilter(_nothing)


def _nothing(_: logging.LogRecord) -> bool:
    return False


def _put_right(tree: exp.Expr, dialect: str) -> None:
    from sqlglot import exp

    if dialect in _WHOLE_MEANS:
        for mean in reversed(list(tree.find_all(exp.Avg))):
            _put_mean_right(mean)
    # Inner ones first, so that a division is still in the tree when it is replaced.
    for division in reversed(list(tree.find_all(exp.Div))):
        if division.args.get("typed") and not division.this.find(exp.Interval):
            over = division.expression
            if division.args.get("safe"):
                over = exp.func("NULLIF", over, exp.Literal.number(0))
            division.replace(exp.IntDiv(this=division.this, expression=over))
    for quantile in reversed(list(tree.find_all(exp.Quantile))):
        quantile.replace(exp.Anonymous(this="QUANTILE_CONT", expressions=[quantile.this, quantile.args["quantile"]]))
    if dialect in _WIDE_FLOATS:
        for kind in list(tree.find_all(exp.DataType)):
            if kind.is_type("float"):
                kind.replace(exp.DataType.build("double"))
    if dialect in _SUBSTRING:
        for part in tree.find_all(exp.Substring):
            _put_substring_right(part, _SUBSTRING[dialect])


def _put_mean_right(mean: exp.Avg) -> None:
    """The sum // the count, both over the same window and with the same filter."""
    from sqlglot import exp

    whole: exp.Expr = mean
    while isinstance(whole.parent, exp.Window | exp.Filter) and whole.parent.this is whole:
        whole = whole.parent
    parts = []
    for kind in (exp.Sum, exp.Count):
        part = whole.copy()
        own = part.find(exp.Avg)
        if own is None:
            return
        other = kind(this=own.this)
        if own is part:
            part = other
        else:
            own.replace(other)
        parts.append(part)
    over = exp.func("NULLIF", parts[1], exp.Literal.number(0))
    whole.replace(exp.paren(exp.IntDiv(this=parts[0], expression=over), copy=False))


def _put_substring_right(part: exp.Substring, before: _Before) -> None:
    from sqlglot import exp

    start, length = part.args.get("start"), part.args.get("length")
    if start is None or (isinstance(start, exp.Literal) and start.sql().isdecimal() and int(start.sql()) > 0):
        return
    start = exp.paren(start)
    if before is not _Before.COUNTED:
        place = exp.Literal.number(1 if before is _Before.FIRST else _PAST_ANY_TEXT)
        part.set("start", exp.Case().when(start.eq(0), place).else_(start))
        return
    part.set("start", exp.Case().when(start < 0, exp.Literal.number(0)).else_(start))
    if length is not None:
        length = exp.paren(length)
        left = exp.paren(start + length)
        none = exp.and_(start < 0, left < 0)
        part.set("length", exp.Case().when(none, exp.Literal.number(0)).when(start < 0, left).else_(length))


def names() -> list[str]:
    """The dialects that can be read."""
    from sqlglot.dialects.dialect import Dialects

    return sorted(dialect.value for dialect in Dialects if dialect.value)


def _place(dialect: str, statement: str, error: ParseError) -> str:
    """The parser's first complaint, with the line and a caret below where it is."""
    complaint: dict[str, Any] = next(iter(error.errors), {})
    said = " ".join(_INTERNAL.sub(r"\1\2", str(complaint.get("description") or error)).split()).rstrip(".")
    line, column = complaint.get("line"), complaint.get("col")
    lines = statement.splitlines()
    if not line or not column or line > len(lines):
        return f"This is no valid {dialect}: {said}."
    width = max(1, len(str(complaint.get("highlight") or "")))
    before = f"LINE {line}: "
    caret = " " * (len(before) + max(0, column - width)) + "^" * width
    return f"This is no valid {dialect}: {said}.\n{before}{lines[line - 1]}\n{caret}"
