"""`circuitdb compact`: write the database file anew, smaller."""

from __future__ import annotations

from circuitdb.cli import output
from circuitdb.cli.options import DEFAULT_DATABASE, DatabaseFile, Json, Patience, form_of


def compact(db: DatabaseFile = DEFAULT_DATABASE, timeout: Patience = 60.0, json: Json = False) -> None:
    """Write the database file anew, smaller.

    Nothing in it changes. Others can read it meanwhile, and none can write; it takes as much disk again until it is
    done. Stopped at any moment, the file is the old one or the new one, whole.

    Example: circuitdb compact --db circuits.duckdb
    """
    import pyarrow as pa

    from circuitdb.compaction import compact as write_anew
    from circuitdb.queries.result import Result

    done = write_anew(db, timeout=timeout)
    table = pa.table({"mb_before": [done.before / 1e6], "mb_after": [done.after / 1e6], "n_scores": [done.n_scores]})
    output.answer(Result(table, f"{db} is compact"), form_of(json=json, csv=False))
