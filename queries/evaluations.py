"""Added evaluations: what their names stand for, on both sides."""

from __future__ import annotations

from collections import Counter

import duckdb

from circuitdb.errors import UsageError
from circuitdb.queries import named
from circuitdb.queries.result import Result, count, enumeration


def mapping(connection: duckdb.DuckDBPyConnection, name: str | None) -> Result:
    """The map of the evaluations of a name, or of all: see `Database.evaluation_map`."""
    sources = named.run(connection, "evaluation_sources")["source"].to_pylist()
    if name is not None and name not in sources:
        there = enumeration(sources) or "none; `circuitdb evals add` adds some"
        raise UsageError(f"There are no evaluations {name}; the database has {there}.")
    table = named.run(connection, "evaluation_map", source=name)
    rows = table.to_pylist()
    matched = Counter(row["kind"] for row in rows if row["external"] is not None and row["internal"] is not None)
    given = Counter(row["kind"] for row in rows if row["external"] is not None)
    ours = [row for row in rows if row["external"] is None]
    parts = [f"{matched[kind]} of {count(given[kind], kind)} matched" for kind in ("model", "subtask")]
    title = f"{', '.join(parts)}; {count(len(ours), 'name')} of the database without a row"
    return Result(table, title, tuple(_notes(rows)))


def _notes(rows: list[dict[str, object]]) -> list[str]:
    notes = []
    lost: dict[tuple[object, object], list[str]] = {}
    for row in rows:
        if row["internal"] is None:
            lost.setdefault((row["source"], row["kind"]), []).append(str(row["external"]))
    for (source, kind), names in lost.items():
        told = f"{count(len(names), str(kind))} of {source} matched nothing: {enumeration(names)}"
        notes.append(f"{told}. To say what one stands for: `circuitdb evals map {source} --{kind} '{names[0]}=OURS'`.")
    return notes
