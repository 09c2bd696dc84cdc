"""The macros of the file, served by the vectorised path in our own connection.

`stability` and `families` read the view pair_similarities, and so may a statement. Before a statement that names one
of them, the pairs are computed by one matrix product and registered under that name, which goes before the view: the
macros are the same, only their pairs come sooner. `similarity(a, b)` looks its pair up there too.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from circuitdb.queries.selection import Selection, select

if TYPE_CHECKING:
    from sqlglot import Token

PAIRS = "pair_similarities"
Ids: TypeAlias = "npt.NDArray[np.int64]"
Columns: TypeAlias = "tuple[Ids, Ids, Matrix, Ids]"
_OF_ALL_PAIRS = frozenset({"stability", "families"})


def serve(connection: duckdb.DuckDBPyConnection, tokens: Sequence[Token]) -> None:
    """Compute what a statement of these tokens will ask of pairs, and put it where the statement finds it."""
    called = {token.text.lower() for token, after in pairwise(tokens) if after.text == "(" and _is_name(token)}
    everything = called & _OF_ALL_PAIRS or PAIRS in names(tokens)
    if not everything and "similarity" not in called:
        return
    a, b, rho, n_edges = _pairs(connection, None if everything else _literals(tokens))
    connection.register("_similarities", _table(a, b, rho, n_edges))
    connection.execute(sqlfiles.load("circuitdb.sql", "served_similarity"))
    if everything:
        once = a < b
        connection.register(PAIRS, _table(a[once], b[once], rho[once], n_edges[once]))


def names(tokens: Sequence[Token]) -> frozenset[str]:
    """The words of a statement that may name a table, in small letters."""
    return frozenset(token.text.lower() for token in tokens if _is_name(token))


def _pairs(connection: duckdb.DuckDBPyConnection, circuits: frozenset[int] | None) -> Columns:
    """Ordered pairs of circuits of one graph, each with itself too: ids of both, similarity, edges compared."""
    chosen = select(connection, {})
    members = [m for m in chosen.members if circuits is None or m.circuit_id in circuits]
    parts = []
    for graph in dict.fromkeys(member.graph_id for member in members):
        own = Selection(tuple(member for member in members if member.graph_id == graph))
        found = coefficient("spearman", matrix.read(connection, own).scores)
        ids = np.array(own.ids)
        first, second = np.indices(found.values.shape).reshape(2, -1)
        parts.append((ids[first], ids[second], found.values.ravel(), found.n_edges.ravel()))
    empty = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64))
    a, b, rho, n_edges = (np.concatenate(column) for column in zip(empty, *parts, strict=True))
    return a, b, rho, n_edges


def _table(a: Ids, b: Ids, rho: Matrix, n_edges: Ids) -> pa.Table:
    return pa.table(
        {
            "a_id": integers(a.tolist(), bits=32),
            "b_id": integers(b.tolist(), bits=32),
            "similarity": numbers(rho),
            "n_edges": integers(n_edges.tolist()),
        }
    )


def _literals(tokens: Sequence[Token]) -> frozenset[int] | None:
    """The circuits that all calls of similarity() name, if each names two by their numbers; else None."""
    found: set[int] = set()
    for i, token in enumerate(tokens[:-1]):
        if token.text.lower() != "similarity" or tokens[i + 1].text != "(":
            continue
        inside = [part.text for part in tokens[i + 2 : i + 6]]
        if len(inside) < 4 or inside[1::2] != [",", ")"] or not (inside[0].isdecimal() and inside[2].isdecimal()):
            return None
        found |= {int(inside[0]), int(inside[2])}
    return frozenset(found)


def _is_name(token: Token) -> bool:
    from sqlglot import TokenType

    return token.token_type != TokenType.STRING
