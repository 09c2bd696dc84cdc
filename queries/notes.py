"""Questions about notes, as methods of the database: what there is, and writing, changing and deleting one."""

from __future__ import annotations

from typing import Unpack, cast

from circuitdb import notes
from circuitdb.connection import reading
from circuitdb.queries import arguments, named
from circuitdb.queries.asking import Asking, with_models
from circuitdb.queries.filters import Where, wanted
from circuitdb.queries.result import Result, count
from circuitdb.queries.selection import select


class Notes(Asking):
    """The user's own words on circuits, nodes and edges."""

    def notes(self, **where: Unpack[Where]) -> Result:
        """The notes, oldest first, times in UTC; filters choose circuits, and without them all notes are given.

        >>> _ = db.add_note("copies the first digit", circuit=1, about="a0.h0")
        >>> [(row["circuit_id"], row["node"], row["text"]) for row in db.notes().rows()]
        [(1, 'a0.h0', 'copies the first digit')]
        """
        asked = wanted(where)
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, cast("Where", asked))
            table = named.run(connection, "notes", circuits=chosen.ids, everything=not asked)
            table = with_models(connection, table)
        return Result(table, count(len(table), "note"), chosen.notes)

    def add_note(self, text: str, *, circuit: int | None = None, about: str | None = None) -> int:
        """Write a note on a circuit, or `about` a node or an edge of it, or on one in general; returns its number.

        Raises UsageError for a circuit, node or edge that is not there, and for no words.

        >>> number = db.add_note("the same in both models", about="m0")
        >>> db.change_note(number, "much the same in both models")
        >>> [row["text"] for row in db.notes().rows()]
        ['much the same in both models']
        """
        chosen = None if circuit is None else arguments.whole("circuit", circuit)
        return notes.add(self.path, text, circuit=chosen, about=about, timeout=self.timeout)

    def change_note(self, note: int, text: str) -> None:
        """Give a note other words. Raises UsageError where there is none of that number, and for no words.

        >>> db.change_note(db.add_note("copies", circuit=1), "copies the first digit")
        >>> db.notes().rows()[0]["text"]
        'copies the first digit'
        """
        notes.change(self.path, arguments.whole("note", note), text, timeout=self.timeout)

    def delete_note(self, note: int) -> None:
        """Delete a note. Raises UsageError where there is none of that number.

        >>> db.delete_note(db.add_note("wrong", circuit=1))
        >>> len(db.notes())
        0
        """
        notes.delete(self.path, arguments.whole("note", note), timeout=self.timeout)
