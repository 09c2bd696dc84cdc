"""Runs a user's own SQL: guarded, then asked, its errors turned into sentences with the nearest name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

import duckdb
from duckdb.sqltypes import DuckDBPyType

from circuitdb import stopping
from circuitdb.errors import CircuitdbError, StoreError, UsageError
from circuitdb.evals import attached
from circuitdb.evals.attached import Attached
from circuitdb.queries import dialects, guard, macros, named
from circuitdb.queries.columns import distinct
from circuitdb.queries.result import Result, count

_ERROR_LINES = 6
_UNKNOWN = re.compile(r"Error: Table (?P<function>Function )?with name (?P<name>\S+) does not exist")
_GARBLED = re.compile(r"\b(BIT|TIME WITH TIME ZONE)\b")


@dataclass(frozen=True)
class Asked:
    """A statement that is about to run.

    Attributes:
        relation: its answer, run when it is fetched; what Arrow has no type for and would garble (BIT, TIME WITH TIME
            ZONE) as DuckDB's text of it.
        given: the names of its columns, where those that are fetched are others.
        attached: the notes on the attached files that it reads.
    """

    relation: duckdb.DuckDBPyRelation
    given: tuple[str, ...] | None
    attached: tuple[str, ...]

    def columns(self, fetched: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
        """(distinct names for the fetched columns, what must be said of the answer)."""
        names = list(fetched if self.given is None else self.given)
        unique = distinct(names)
        renamed = dict.fromkeys(old for old, new in zip(names, unique, strict=True) if old != new)
        note = f"Several columns are called {', '.join(renamed)}; all but the first are numbered."
        return unique, (*((note,) if renamed else ()), *self.attached)


def run(connection: duckdb.DuckDBPyConnection, statement: str, dialect: str = dialects.DUCKDB) -> Result:
    """Run one statement that only reads, in the SQL of a dialect. Raises UsageError where it is refused or wrong."""
    with asked(connection, statement, dialect) as question:
        table = question.relation.to_arrow_table()
    names, notes = question.columns(table.column_names)
    return Result(table.rename_columns(names), count(len(table), "row"), notes)


@contextmanager
def asked(connection: duckdb.DuckDBPyConnection, statement: str, dialect: str = dialects.DUCKDB) -> Iterator[Asked]:
    """One statement that only reads, to be fetched within. Raises UsageError where it is refused or wrong.

    What is wrong with it may come to light while it is fetched; that is raised in a sentence, too.
    """
    statement = dialects.to_duckdb(statement, dialect)
    there = Attached()
    try:
        text = guard.check(connection, statement)
        tokens = guard.tokens_of(text)
        there = attached.read_for(connection, macros.names(tokens))
        with closing(connection.cursor()) as cursor, stopping.running(cursor):
            there.register(cursor)
            macros.serve(cursor, tokens)
            relation = cursor.sql(text)
            kept = _kept(relation)
            yield Asked(kept, None if kept is relation else tuple(relation.columns), there.notes)
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        raise _explain(connection, statement, there, error) from error


def _kept(answer: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """The answer, with casts where Arrow would garble a column."""
    kinds = [_faithful(kind) for kind in answer.types]
    if kinds == [str(kind) for kind in answer.types]:
        return answer
    chosen = [
        f"#{i}" if wanted == str(kind) else f"CAST(#{i} AS {wanted})"
        for i, (kind, wanted) in enumerate(zip(answer.types, kinds, strict=True), start=1)
    ]
    return answer.project(", ".join(chosen))


def _faithful(kind: DuckDBPyType) -> str:
    """The type to fetch a type as."""
    whole = str(kind)
    if not _GARBLED.search(whole):
        return whole
    if kind.id in ("list", "array", "map", "struct"):
        parts = [
            (name, _faithful(part) if isinstance(part, DuckDBPyType) else str(part)) for name, part in kind.children
        ]
    if kind.id in ("list", "array"):  # an array's second part is its size
        return f"{parts[0][1]}[{parts[1][1] if len(parts) > 1 else ''}]"
    if kind.id == "map":
        return f"MAP({parts[0][1]}, {parts[1][1]})"
    if kind.id == "struct":
        quoted = [(name.replace('"', '""'), part) for name, part in parts]
        return "STRUCT(" + ", ".join(f'"{name}" {part}' for name, part in quoted) + ")"
    return "VARCHAR" if kind.id in ("bit", "time with time zone", "union") else whole


def _explain(
    connection: duckdb.DuckDBPyConnection, statement: str, there: Attached, error: duckdb.Error
) -> CircuitdbError:
    text = str(error)
    if isinstance(error, duckdb.BinderException | duckdb.CatalogException):
        text = _pointed(connection, statement, there) or text
    lines = [line for line in text.splitlines() if line.strip()]
    lines = _own_suggestion(connection, lines)
    kind, _, first = lines[0].partition(" Error: ")
    message = "\n".join([first or kind, *lines[1:_ERROR_LINES]])
    if isinstance(error, duckdb.CatalogException) and first.startswith("Table with name"):
        message += "\nSHOW TABLES lists what there is."
    unusable = isinstance(error, duckdb.InternalException | duckdb.FatalException | duckdb.OutOfMemoryException)
    return StoreError(message) if unusable else UsageError(message)


def _own_suggestion(connection: duckdb.DuckDBPyConnection, lines: list[str]) -> list[str]:
    """The lines of a message with the nearest of the file's own tables or macros, never of DuckDB's catalogs."""
    unknown = _UNKNOWN.search(lines[0])
    if not unknown:
        return lines
    there = named.run(connection, "relations").to_pylist()
    # The name of a macro goes on with its parameters.
    macro = bool(unknown["function"])
    names = [str(row["name"]).partition("(")[0] for row in there if ("(" in str(row["name"])) == macro]
    near = difflib.get_close_matches(unknown["name"].lower(), names, n=1)
    guess = [f'Did you mean "{near[0]}"?'] if near else []
    return [lines[0], *guess, *(line for line in lines[1:] if not line.startswith("Did you mean "))]


def _pointed(connection: duckdb.DuckDBPyConnection, statement: str, there: Attached) -> str | None:
    """The same error with the line and a caret, which a relation leaves out; a name that is wrong is found unrun."""
    with closing(connection.cursor()) as cursor:
        there.register(cursor)
        try:
            cursor.execute(statement)
        except duckdb.Error as error:
            return str(error)
    return None
