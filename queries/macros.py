"""The macros of the file, served by the vectorised path in our own connection.

`stability` and `families` read the view pair_similarities, and so may a statement. Before a statement that names one
of them, the pairs are computed by one matrix product and registered under that name, which goes before the view: the
macros are the same, only their pairs come sooner. `similarity(a, b)` and `reliability(circuit)` look up what they say
in tables of the same kind, since folds that are parted in every way take the engine long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb import sqlfiles
from circuitdb.queries import matrix
from circuitdb.queries.coefficients import coefficient
from circuitdb.queries.columns import integers, numbers
from circuitdb.queries.pairing import Matrix
from circuitdb.queries.reliability import Reliabilities, reliabilities
from circuitdb.queries.selection import Selection, select
from circuitdb.queries.similarity import correction

if TYPE_CHECKING:
    from sqlglot import Token

PAIRS = "pair_similarities"
Ids: TypeAlias = "npt.NDArray[np.int64]"
_OF_ALL_PAIRS = frozenset({"stability", "families"})
_BY_NUMBER = {"similarity": 2, "reliability": 1}  # and how many circuits each takes


@dataclass(frozen=True)
class _Part:
    """Circuits of one graph, by their numbers and folds; reliability only where it was asked for."""

    ids: Ids
    n_folds: Ids
    values: Matrix
    n_edges: Ids
    reliability: Reliabilities | None

    def pairs(self, mask: npt.NDArray[np.bool_]) -> dict[str, pa.Array]:
        """Columns of the pairs that the mask [circuit, circuit] lets through."""
        first, second = np.nonzero(mask)
        columns = {
            "a_id": integers(self.ids[first].tolist(), bits=32),
            "b_id": integers(self.ids[second].tolist(), bits=32),
            "similarity": numbers(self.values[mask]),
            "n_edges": integers(self.n_edges[mask].tolist()),
        }
        if self.reliability is None:
            return columns
        ceiling, corrected = correction(self.values, self.reliability, self.reliability)
        return {**columns, "ceiling": numbers(ceiling[mask]), "corrected": numbers(corrected[mask])}

    def circuits(self) -> dict[str, pa.Array]:
        """Columns of the reliabilities."""
        found = self.reliability
        return {
            "circuit_id": integers(self.ids.tolist(), bits=32),
            "fold_correlation": numbers(np.empty(0) if found is None else found.folds),
            "reliability": numbers(np.empty(0) if found is None else found.whole),
            "n_folds": integers(self.n_folds.tolist(), bits=32),
        }


def serve(connection: duckdb.DuckDBPyConnection, tokens: Sequence[Token]) -> None:
    """Compute what a statement of these tokens will ask of pairs, and put it where the statement finds it."""
    called = {token.text.lower() for token, after in pairwise(tokens) if after.text == "(" and _is_name(token)}
    everything = bool(called & _OF_ALL_PAIRS) or PAIRS in names(tokens)
    looked_up = called & _BY_NUMBER.keys()
    if not everything and not looked_up:
        return
    parts = _parts(connection, None if everything else _literals(tokens), folds=bool(looked_up))
    if looked_up:
        connection.register("_similarities", _table(parts, lambda part: part.pairs(np.ones(part.values.shape, bool))))
        connection.register("_reliabilities", _table(parts, _Part.circuits))
        for name in _BY_NUMBER:
            connection.execute(sqlfiles.load("circuitdb.sql", f"served_{name}"))
    if everything:
        connection.register(PAIRS, _table(parts, lambda part: part.pairs(np.triu(np.ones(part.values.shape, bool), 1))))


def names(tokens: Sequence[Token]) -> frozenset[str]:
    """The words of a statement that may name a table, in small letters."""
    return frozenset(token.text.lower() for token in tokens if _is_name(token))


def _parts(connection: duckdb.DuckDBPyConnection, circuits: frozenset[int] | None, *, folds: bool) -> list[_Part]:
    """The circuits of each graph, compared; those of some numbers, or all."""
    chosen = select(connection, {})
    members = [m for m in chosen.members if circuits is None or m.circuit_id in circuits]
    parts = []
    for graph in dict.fromkeys(member.graph_id for member in members):
        own = Selection(tuple(sorted((m for m in members if m.graph_id == graph), key=lambda m: m.circuit_id)))
        scores = matrix.read(connection, own, folds=folds)
        found = coefficient("spearman", scores.scores)
        n_folds = np.array([member.n_folds for member in own.members], np.int64)
        itself = reliabilities(scores) if folds else None
        parts.append(_Part(np.array(own.ids), n_folds, found.values, found.n_edges, itself))
    return parts


def _table(parts: Sequence[_Part], columns: Callable[[_Part], dict[str, pa.Array]]) -> pa.Table:
    """One table of all graphs, of their columns."""
    none = np.empty(0, np.int64)
    nobody = _Part(none, none, np.empty((0, 0)), none.reshape(0, 0), Reliabilities(np.empty(0), np.empty(0), ()))
    return pa.concat_tables(pa.table(columns(part)) for part in (parts or [nobody]))


def _literals(tokens: Sequence[Token]) -> frozenset[int] | None:
    """The circuits that all calls by number name, if each names its own by numbers alone; else None."""
    found: set[int] = set()
    for i, token in enumerate(tokens[:-1]):
        n = _BY_NUMBER.get(token.text.lower(), 0)
        if not n or tokens[i + 1].text != "(":
            continue
        inside = [part.text for part in tokens[i + 2 : i + 2 + 2 * n]]
        if inside[1::2] != [*[","] * (n - 1), ")"] or not all(text.isdecimal() for text in inside[::2]):
            return None
        found |= {int(text) for text in inside[::2]}
    return frozenset(found)


def _is_name(token: Token) -> bool:
    from sqlglot import TokenType

    return token.token_type != TokenType.STRING
