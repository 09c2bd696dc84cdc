"""The user's own words on a circuit, a node or an edge: each written in one short transaction."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import duckdb

from circuitdb import sqlfiles
from circuitdb.connection import file_name, transaction, writing
from circuitdb.errors import MissingDatabase, UsageError

_PACKAGE = "circuitdb.sql"
_ARROW = "->"  # in the name of every edge, and of no node


def add(
    path: str | os.PathLike[str],
    text: str,
    *,
    circuit: int | None = None,
    about: str | None = None,
    timeout: float = 60.0,
) -> int:
    """Write a note and return its number.

    Args:
        path: the database file.
        text: the words.
        circuit: the circuit they are on; None for a node or an edge in general.
        about: the name of a node (a0.h1) or of an edge (a0.h1->logits); None for the circuit as a whole.
        timeout: seconds to wait for the file.

    Raises UsageError for a circuit, node or edge that is not there, and for no words; MissingDatabase for no file.
    """
    words = _words(text)
    name = (about or "").strip() or None
    if circuit is None and name is None:
        raise UsageError("What is the note about? Give a circuit, a node or an edge.")
    with writing(_there(path), timeout=timeout) as connection, transaction(connection):
        if circuit is not None and not _rows(connection, "circuit_numbered", circuit=circuit):
            raise UsageError(f"There is no circuit {circuit}; `circuitdb circuits` lists those there are.")
        is_edge = name is not None and _ARROW in name
        if name is not None and not _rows(connection, "part_named", circuit=circuit, name=name):
            raise _unknown(connection, circuit, name, "edge" if is_edge else "node")
        node, edge = (None, name) if is_edge else (name, None)
        ((number,),) = _rows(connection, "add_note", circuit=circuit, node=node, edge=edge, words=words)
    return int(str(number))


def change(path: str | os.PathLike[str], note: int, text: str, *, timeout: float = 60.0) -> None:
    """Give a note other words. Raises UsageError where there is no note of that number, and for no words."""
    words = _words(text)
    with writing(_there(path), timeout=timeout) as connection, transaction(connection):
        if not _rows(connection, "change_note", note=note, words=words):
            raise _no_note(note)


def delete(path: str | os.PathLike[str], note: int, *, timeout: float = 60.0) -> None:
    """Delete a note. Raises UsageError where there is none of that number."""
    with writing(_there(path), timeout=timeout) as connection, transaction(connection):
        if not _rows(connection, "delete_note", note=note):
            raise _no_note(note)


def _there(path: str | os.PathLike[str]) -> str:
    """The path: a writer would make the file, but there is nothing in a new one to write about."""
    name = file_name(path)
    if not Path(name).exists():
        raise MissingDatabase(f"There is no database {name}; make one with `circuitdb ingest`, or name it with --db.")
    return name


def _words(text: str) -> str:
    words = text.strip()
    if not words:
        raise UsageError("The note has no words; write some.")
    if any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in words):
        raise UsageError("The note holds a character that is no text (NUL, or half of a surrogate pair); leave it out.")
    return words


def _unknown(connection: duckdb.DuckDBPyConnection, circuit: int | None, name: str, kind: str) -> UsageError:
    known = [str(row[0]) for row in _rows(connection, "parts_like", circuit=circuit, name=name, kind=kind)]
    near = difflib.get_close_matches(name, known, n=1)
    whose = "" if circuit is None else f" in circuit {circuit}"
    hint = f"did you mean {near[0]}?" if near else "nodes are called like a0.h1 and m0, edges like a0.h1->logits."
    return UsageError(f"There is no {kind} {name}{whose}; {hint}")


def _no_note(note: int) -> UsageError:
    return UsageError(f"There is no note {note}; `circuitdb notes` lists those there are.")


def _rows(
    connection: duckdb.DuckDBPyConnection, statement: str, /, **parameters: int | str | None
) -> list[tuple[object, ...]]:
    return connection.execute(sqlfiles.load(_PACKAGE, statement), parameters).fetchall()
