"""A statement in the SQL of another engine, put into DuckDB's."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

from circuitdb.errors import UsageError

if TYPE_CHECKING:
    from sqlglot.errors import ParseError

DUCKDB = "duckdb"
# How the parser's messages name its own classes: of a token the text is told, of a class the last part of its name.
_INTERNAL = re.compile(r"<Token token_type: [^,]*, text: (.*?), line: .*?>|<class '(?:\w+\.)*(\w+)'>")


def to_duckdb(statement: str, dialect: str) -> str:
    """The same statement in DuckDB's SQL; one in it already is left as it is.

    Raises UsageError for a dialect that is not known, a statement that is none of it, or what DuckDB has nothing for.
    """
    from sqlglot import ErrorLevel, transpile
    from sqlglot.errors import ParseError, SqlglotError, UnsupportedError

    name = dialect.lower()
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=1)
        guess = f"; did you mean {near[0]}?" if near else "."
        raise UsageError(f"There is no dialect {dialect}{guess} Known are: {', '.join(names())}.")
    if name == DUCKDB:
        return statement
    try:
        parts = transpile(statement, read=name, write=DUCKDB, unsupported_level=ErrorLevel.RAISE)
    except ParseError as error:
        raise UsageError(_place(name, statement, error)) from error
    except UnsupportedError as error:
        raise UsageError(f"DuckDB has nothing for a part of this {name} statement: {error}.") from error
    except (SqlglotError, RecursionError) as error:
        raise UsageError(f"This can't be read as {name}: {' '.join(str(error).split())}") from error
    return ";\n".join(part for part in parts if part)


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
