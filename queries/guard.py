"""Lets one statement through that only reads the database, and refuses everything else in a sentence, before it runs.

1. The tokens must be of one statement, its first word one that asks (SELECT, WITH, FROM, ...), and no function among
   them one that reads files or changes the engine.
2. No statement that writes may stand within it, by its tokens (of which no parser has to make sense) and by sqlglot's
   parse, which must name no file as a table either.
3. DuckDB's own parser must see one SELECT or EXPLAIN in it too.

The connection refuses the same things once more: it is read only, without external access, its configuration locked.
These are guard rails, not a sandbox.
"""

from __future__ import annotations

import re
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING

import duckdb

from circuitdb.errors import UsageError
from circuitdb.queries.dialects import quiet

if TYPE_CHECKING:
    from sqlglot import Token

ALLOWED = "SELECT, WITH, FROM, VALUES, DESCRIBE, SUMMARIZE, EXPLAIN or SHOW"
_QUERIES = {"SELECT", "WITH", "FROM", "VALUES", "TABLE", "(", "DESCRIBE", "DESC", "SUMMARIZE"}
_WRITES = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "REPLACE", "COPY", "CREATE", "DROP", "ALTER"})
_CHANGES = _WRITES | {
    "ANALYZE", "ATTACH", "BEGIN", "CALL", "CHECKPOINT", "COMMENT", "COMMIT", "DEALLOCATE", "DETACH", "EXECUTE",
    "EXPORT", "FORCE", "IMPORT", "INSTALL", "LOAD", "PRAGMA", "PREPARE", "REFRESH", "RESET", "ROLLBACK", "SET", "USE",
    "VACUUM",
}  # fmt: skip
_BEFORE_BODY = frozenset({"AS", "MATERIALIZED"})
# What follows a word that is no statement's first, but the name of a column.
_AFTER_NAME = frozenset(
    {"AND", "AS", "ASC", "BETWEEN", "COLLATE", "DESC", "FROM", "ILIKE", "IN", "IS", "LIKE", "NOT", "OR", "ORDER"}
)
_EXPLAIN_OPTIONS = re.compile(r"\s*(?:analyze\b)?\s*(?:\(\s*(?:format|analyze)\b[^()]*\))?", re.IGNORECASE)
_FILE_NAME = re.compile(r"[/\\*?:]|\.\w+$")
_READS_FILES = re.compile(
    r"read_\w+|\w+_scan|arrow_scan_dumb|glob|sniff_csv|parquet_\w+|which_secret|duckdb_secrets", re.IGNORECASE
)
_CHANGES_ENGINE = re.compile(
    r"(enable|disable)_\w+|(force_)?checkpoint|\w+_(external_resource|external_resource_type|grammar_extension)"
    r"|truncate_duckdb_logs|write_log|json_execute_serialized_sql|python_map_function|nextval|setval|set_config",
    re.IGNORECASE,
)


def check(connection: duckdb.DuckDBPyConnection, statement: str) -> str:
    """The one statement in a text, without what surrounds it. Raises UsageError unless it only reads the database.

    Raises duckdb.ParserException where DuckDB can make nothing of it.
    """
    text = _only_statement(statement.removeprefix("\ufeff"))
    if any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in text):
        raise UsageError("The statement holds a character that is no text (NUL, or half of a surrogate pair).")
    with closing(connection.cursor()) as cursor:
        try:
            kinds = [part.type.name for part in cursor.extract_statements(text)]
        except ValueError as error:  # a kind of statement that DuckDB's Python module has no name for
            raise _refusal(text) from error
        except duckdb.ParserException as error:
            if word := _statement_within(text):
                raise _refused_within(word) from error
            raise
    _check_question(text)
    if kinds == ["MULTI"]:
        raise UsageError("A PIVOT without its values is several statements in one; name them: ON column IN (...).")
    if kinds not in (["SELECT"], ["EXPLAIN"]):
        raise _refusal(text)
    return text


def _only_statement(statement: str) -> str:
    from sqlglot import TokenType

    parts: list[list[Token]] = [[]]
    for token in tokens_of(statement):
        if token.token_type == TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1].append(token)
    parts = [part for part in parts if part]
    if not parts:
        raise UsageError(f"There is no statement to run; write one such as {ALLOWED}.")
    if len(parts) > 1:
        raise UsageError(f"These are {len(parts)} statements; one at a time is taken here.")
    return statement[parts[0][0].start : parts[0][-1].end + 1]


def _check_bodies(text: str) -> None:
    """Raise UsageError where WITH names what is written: DuckDB takes such a statement for one that reads."""
    words = _keywords(text)
    for before, bracket, word in zip(words, words[1:], words[2:], strict=False):
        if before in _BEFORE_BODY and bracket == "(" and word in _WRITES:
            raise _refused_within(word)


def _statement_within(text: str) -> str | None:
    """The first word of a statement that is not to be, within one that DuckDB can make nothing of; None without one."""
    words = ["", *_keywords(_explained(text)), ")"]
    for before, bracket, word, after in zip(words, words[1:], words[2:], words[3:], strict=False):
        is_name = after in _AFTER_NAME and (word, after) != ("DELETE", "FROM")
        goes_on = after.isidentifier() or not after or (word, after) == ("COPY", "(")
        begins = bracket in ("(", ")") and goes_on and not is_name
        if word in _CHANGES and (begins or (bracket == "(" and before in _BEFORE_BODY)):
            return word
    return None


def _keywords(text: str) -> list[str]:
    """The tokens in capitals; nothing in the place of what is quoted, and so is no keyword."""
    from sqlglot import TokenType

    quoted = (TokenType.STRING, TokenType.IDENTIFIER)
    return ["" if token.token_type in quoted else token.text.upper() for token in tokens_of(text)]


def _refused_within(word: str) -> UsageError:
    return UsageError(f"{word} is refused, also within a query: nothing is written or set here.")


def _explained(text: str) -> str:
    """The statement that an EXPLAIN is of, or the text itself where it is none."""
    first = tokens_of(text)[0]
    if first.text.upper() != "EXPLAIN":
        return text
    rest = text[first.end + 1 :]
    options = _EXPLAIN_OPTIONS.match(rest)
    return _explained(_only_statement(rest[options.end() if options else 0 :]))


def _check_question(text: str) -> None:
    text = _explained(text)
    tokens = tokens_of(text)
    first = tokens[0].text.upper()
    if first not in _QUERIES and first != "SHOW":
        raise _refusal(text)
    for token, following in pairwise(tokens):
        if following.text == "(" and _READS_FILES.fullmatch(token.text):
            raise UsageError(f"{token.text}() is refused: it reads files, and only the database is read here.")
        if following.text == "(" and _CHANGES_ENGINE.fullmatch(token.text):
            raise UsageError(f"{token.text}() is refused: it changes the engine, and nothing is changed here.")
    if first != "SHOW":
        _check_bodies(text)
        _check_tree(text)
    elif len(tokens) > 1 and _FILE_NAME.search(tokens[1].text):
        raise _names_file(tokens[1].text)


def _check_tree(text: str) -> None:
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        with quiet():
            tree = parse_one(text, dialect="duckdb")
    except (SqlglotError, RecursionError):
        return  # more than sqlglot can read; DuckDB's parser has judged it, and the connection will
    ours = {cte.alias_or_name for cte in tree.find_all(exp.CTE)}
    for node in tree.walk():
        if isinstance(node, exp.Insert | exp.Update | exp.Delete | exp.Merge | exp.Create | exp.Drop | exp.Copy):
            raise _refused_within(node.key.upper())
        named = isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and node.name not in ours
        described = isinstance(node, exp.Literal) and isinstance(node.parent, exp.Describe | exp.Summarize)
        if (named or described) and _FILE_NAME.search(node.name):
            raise _names_file(node.name)


def _names_file(name: str) -> UsageError:
    return UsageError(f"{name!r} is refused: it names a file, and only the database is read here.")


def _refusal(text: str) -> UsageError:
    word = tokens_of(text)[0].text.upper()
    return UsageError(f"{word} is refused: one statement that only reads is taken here, such as {ALLOWED}.")


def tokens_of(text: str) -> list[Token]:
    """The tokens of a statement. Raises UsageError where a string, a quoted name or a comment does not end."""
    from sqlglot import tokenize
    from sqlglot.errors import TokenError

    try:
        return tokenize(text, dialect="duckdb")
    except TokenError as error:
        raise UsageError("The statement ends within a string, a quoted name or a comment; close it.") from error
