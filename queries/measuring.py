"""From the file to measures: found in the cache, or made of the scores once the file is closed, and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from circuitdb import cache
from circuitdb.queries import matrix, measures
from circuitdb.queries.asking import Asking
from circuitdb.queries.comparison import Comparison
from circuitdb.queries.matrix import ScoreMatrix, require_side
from circuitdb.queries.measures import Measures
from circuitdb.queries.selection import Selection


@dataclass(frozen=True)
class Pending:
    """A set of circuits and their measures: from the cache, or still to be made of the scores."""

    key: str | None
    kept: Measures | None
    scores: tuple[ScoreMatrix, ...]


class Measuring(Asking):
    """A database file whose measures can be had; `keeps` says whether they may be kept in it."""

    def _look(
        self, connection: duckdb.DuckDBPyConnection, parts: Sequence[Selection], how: Comparison, on: str, what: str
    ) -> Pending:
        """The measures of circuits from the cache, else their scores from the file."""
        require_side(on)
        for part in parts:
            part.require_alike(how)
        key = measures.key(parts, how, on, what) if self.keeps and measures.worth_keeping(parts) else None
        content = cache.find(connection, key) if key else None
        kept = measures.unpacked(content) if content else None
        scores = () if kept else tuple(matrix.read(connection, part, folds=True, how=how) for part in parts)
        return Pending(key, kept, scores)

    def _measure(self, pending: Pending, how: Comparison, on: str, what: str) -> Measures:
        """The measures, made and kept if they were not found. The file must be closed."""
        if pending.kept is not None:
            return pending.kept
        seen = [scores.seen(on) for scores in pending.scores]
        if what == "between":
            made = measures.measured_between(seen[0], seen[1], how)
        else:
            made = measures.measured(seen[0], how, pairs=what != "reliability", deleted=what == "deleted")
        if pending.key:
            cache.keep(self.path, pending.key, measures.packed(made))
        return made
