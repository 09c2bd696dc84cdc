"""Examines a database file: whether it can be read, whether it agrees with itself, what it takes, and what to do.

1. The file: it is opened as `holding` does, so of any schema, and read whole if all is to be examined; what other runs
   left beside it is named.
2. The schema: its version, its migrations, its tables, views and macros.
3. Rows that refer to rows that are not there.
4. Counts: what circuits, graphs and models say of themselves, against their rows.
5. Digests: scores are read back and their digests computed anew, of a sample or of all circuits.
6. Disk: what each table takes, and whether `compact` would make it less.

Nothing is written. A check that can't be made since an earlier one failed is left out.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import duckdb
import numpy as np

from circuitdb import copies, migrations, sqlfiles
from circuitdb.batches import score_digest
from circuitdb.compaction import ROW_GROUP, fresh_name
from circuitdb.connection import file_name, holding
from circuitdb.errors import MissingDatabase, StoreError

OK, NOTE, WRONG = "ok", "note", "wrong"
SAMPLE = 16
_SQL = "circuitdb.sql"
_SHOWN = 3
# What each row group more than those of a compacted file takes, measured on 64 circuits of 123,211 edges; and what is
# too little to be worth a note.
_GROUP_BYTES, _LITTLE = 90_000, 4 << 20
_AGAIN = (
    "Score them again with `circuitdb ingest ... --replace`, or those of other tools' files import again into a new "
    "file with `circuitdb import`, or take the file from a backup."
)
_CHECKS = {
    "check_graphs": ("graphs", "Take the file from a backup: these rows are never changed."),
    "check_circuits": ("circuits", _AGAIN),
    "check_example_scores": ("example scores", _AGAIN),
    "check_hard_circuits": (
        "hard circuits",
        "Import their files again into a new file with `circuitdb import`, or take the file from a backup.",
    ),
    "check_specs": ("specs", _AGAIN),
}


@dataclass(frozen=True)
class Finding:
    """What one check found: `ok`, a `note`, or `wrong`; and what to do about it."""

    check: str
    status: str
    found: str
    advice: str | None = None


@dataclass(frozen=True)
class TableUse:
    """What a table takes: its rows, row groups and bytes; a block that tables share counts for each of them."""

    table: str
    n_rows: int
    n_row_groups: int
    n_bytes: int


@dataclass(frozen=True)
class Diagnosis:
    """All findings on a file of `n_bytes`, and its tables, the largest first; no tables where it can't be read."""

    path: str
    n_bytes: int
    findings: tuple[Finding, ...]
    tables: tuple[TableUse, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        return all(finding.status != WRONG for finding in self.findings)


def examine(
    path: str | os.PathLike[str], *, every: bool = False, sample: int = SAMPLE, timeout: float = 10.0
) -> Diagnosis:
    """Examine a database file; nothing is written.

    Args:
        path: the file.
        every: read every block, and compute the digests of all circuits anew; else of `sample` drawn at random.
        sample: how many.
        timeout: seconds to wait for a writer.

    Raises:
        MissingDatabase: there is no such file.
        LockedDatabase: another process writes to it for longer than `timeout`.
    """
    name = file_name(path)
    findings: list[Finding] = []
    tables: tuple[TableUse, ...] = ()
    try:
        with holding(name, timeout=timeout) as connection:
            findings += _beside(os.path.realpath(name))
            connection.execute("USE source")
            schema = list(_schema(connection, name))
            findings += schema
            if every:
                _read_all(connection)
            if all(finding.status == OK for finding in schema):
                findings += _references(connection)
                for check, (title, advice) in _CHECKS.items():
                    findings.append(_disagreements(connection, check, title, advice))
                findings.append(_digests(connection, None if every else sample))
            tables = _use(connection)
            findings.append(_disk(connection, tables))
    except MissingDatabase:
        raise
    except StoreError as error:
        if "held by" in str(error) or "in use by" in str(error):
            raise
        findings.append(Finding("file", WRONG, str(error)))
    size = os.path.getsize(name) if os.path.isfile(name) else 0
    return Diagnosis(name, size, tuple(findings), tables)


def _beside(final: str) -> Iterator[Finding]:
    """The file itself, and what a run that was killed has left beside it."""
    yield Finding("file", OK, f"{final} can be read.")
    if os.path.exists(f"{final}.wal"):
        yield Finding("file", NOTE, f"{final}.wal is the log of a writer that was killed; the next writer folds it in.")
    left = [path for path in (fresh_name(final), f"{fresh_name(final)}.wal") if os.path.exists(path)]
    for path in sorted(Path(final).parent.glob(f"{_globbed(Path(final).name)}.*.new*")):
        number = re.search(r"\.(\d+)\.new(\.wal)?$", path.name)
        if number and not copies.runs(int(number[1])):
            left.append(str(path))
    if left:
        what = ", ".join(left)
        yield Finding("file", NOTE, f"A run that was killed has left {what}.", "Delete it, unless `compact` runs now.")


def _read_all(connection: duckdb.DuckDBPyConnection) -> None:
    """Read every value of every table, so that DuckDB compares the checksum of every block."""
    for quoted, _ in connection.execute(sqlfiles.load(_SQL, "tables_of_source")).fetchall():
        connection.execute(f"SELECT sum(hash(t)) FROM source.{quoted} AS t").fetchall()


def _globbed(text: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", text)


def _schema(connection: duckdb.DuckDBPyConnection, name: str) -> Iterator[Finding]:
    found, wanted = migrations.version_of(connection, name), migrations.latest()
    if found > wanted:
        yield Finding(
            "schema", WRONG, f"The file has schema {found}; this circuitdb knows {wanted}.", "Upgrade circuitdb."
        )
        return
    if found < wanted:
        what = f"The file has the older schema {found}; this circuitdb writes {wanted}." if found else "It is empty."
        how = "Ask it anything: it is copied, then brought to this schema." if found else "Fill it: `circuitdb ingest`."
        yield Finding("schema", NOTE, what, how)
        return
    advice = "Take the file from a backup, or copy its circuits to a new one with `circuitdb export` and `import`."
    versions = _disagreements(connection, "check_versions", "schema", advice)
    yield replace(versions, found=f"Version {found}.") if versions.status == OK else versions
    connection.execute("ATTACH ':memory:' AS fresh")
    connection.execute("USE fresh")
    migrations.migrate(connection, "the database in memory")
    connection.execute("USE source")
    yield _disagreements(connection, "check_catalogue", "tables and views", advice)
    connection.execute("DETACH fresh")


def _disagreements(connection: duckdb.DuckDBPyConnection, check: str, title: str, advice: str) -> Finding:
    """What the rows of a `check_*.sql` say, those of one kind in one clause."""
    rows = connection.execute(sqlfiles.load(_SQL, check)).fetchall()
    if not rows:
        return Finding(title, OK, "All of it agrees.")
    clauses = []
    for what, of_kind in groupby(sorted(rows, key=lambda row: str(row[1])), key=lambda row: str(row[1])):
        members = list(of_kind)
        told = [
            str(subject) if recorded is None or seen is None else f"{subject} (said {recorded}, found {seen})"
            for subject, _, recorded, seen in members[:_SHOWN]
        ]
        more = f" and {len(members) - _SHOWN} more" if len(members) > _SHOWN else ""
        clauses.append(f"{what}: {', '.join(told)}{more}")
    return Finding(title, WRONG, "; ".join(clauses) + ".", advice)


def _references(connection: duckdb.DuckDBPyConnection) -> Iterator[Finding]:
    clauses = []
    for name, referring, parent, key in connection.execute(sqlfiles.load(_SQL, "references")).fetchall():
        rows = connection.execute(
            f"SELECT count(*) FROM {name} "
            f"WHERE {referring} IS NOT NULL AND {referring} NOT IN (SELECT {key} FROM {parent})"
        ).fetchall()
        if rows[0][0]:
            clauses.append(f"{rows[0][0]:,} of {name} with a {referring} that is not in {parent}")
    if not clauses:
        yield Finding("orphan rows", OK, "There are none.")
        return
    advice = (
        "They count in no question. Delete them in the `duckdb` shell (DELETE FROM TABLE WHERE COLUMN NOT IN ...), or "
        "take the file from a backup."
    )
    yield Finding("orphan rows", WRONG, "; ".join(clauses) + ".", advice)


def _digests(connection: duckdb.DuckDBPyConnection, sample: int | None) -> Finding:
    known: dict[int, str] = dict(connection.execute(sqlfiles.load(_SQL, "recorded_digests")).fetchall())
    chosen = sorted(known) if sample is None else sorted(random.sample(sorted(known), min(sample, len(known))))
    differing = [i for i in chosen if _digest(connection, i) != known[i]]
    if not differing:
        return Finding("score digests", OK, f"{len(chosen)} of {len(known)} computed anew, and equal.")
    return Finding("score digests", WRONG, f"The scores are not those that were stored: circuit {_listed(differing)}.",
                   _AGAIN)  # fmt: skip


def _digest(connection: duckdb.DuckDBPyConnection, circuit_id: int) -> str:
    stored = connection.execute(sqlfiles.load(_SQL, "stored_scores"), {"circuit": circuit_id}).fetchnumpy()["score"]
    return score_digest(np.ma.filled(stored, np.nan).astype(np.float32))


def _listed(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    return ", ".join(map(str, numbers[:_SHOWN])) + more


def _use(connection: duckdb.DuckDBPyConnection) -> tuple[TableUse, ...]:
    block = connection.execute(
        "SELECT block_size FROM pragma_database_size() WHERE database_name = 'source'"
    ).fetchall()
    found = []
    for quoted, bare in connection.execute(sqlfiles.load(_SQL, "tables_of_source")).fetchall():
        literal = f"source.{quoted}".replace("'", "''")
        rows = connection.execute(sqlfiles.load(_SQL, "table_use").replace("$table", f"'{literal}'")).fetchall()
        n_rows = connection.execute(f"SELECT count(*) FROM source.{quoted}").fetchall()
        found.append(TableUse(bare, int(n_rows[0][0]), int(rows[0][0]), int(rows[0][1]) * int(block[0][0])))
    return tuple(sorted(found, key=lambda use: (-use.n_bytes, -use.n_rows, use.table)))


def _disk(connection: duckdb.DuckDBPyConnection, tables: Sequence[TableUse]) -> Finding:
    _, total, free = map(int, connection.execute(sqlfiles.load(_SQL, "file_use")).fetchall()[0])
    more = sum(use.n_row_groups - -(-use.n_rows // ROW_GROUP) for use in tables)
    saving = free + _GROUP_BYTES * more
    what = f"{total / 1e6:,.1f} MB, of which {free / 1e6:,.1f} MB are free."
    if saving > max(_LITTLE, total // 10):
        return Finding("disk", NOTE, what, f"`circuitdb compact` would save about {saving / 1e6:,.0f} MB.")
    return Finding("disk", OK, what)
