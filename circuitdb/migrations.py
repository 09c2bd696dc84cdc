"""Brings a database file to the schema of this version: numbered SQL files, each applied once."""

from __future__ import annotations

import duckdb

from circuitdb import sqlfiles
from circuitdb.errors import SchemaMismatch

_PACKAGE = "circuitdb.schema"
_RELATIONS = (
    "SELECT table_name FROM duckdb_tables() WHERE NOT temporary AND database_name = current_database() UNION ALL "
    "SELECT view_name FROM duckdb_views() WHERE NOT internal AND NOT temporary AND database_name = current_database()"
)


def latest() -> int:
    """The schema version that this circuitdb writes and reads."""
    return len(sqlfiles.names(_PACKAGE))


def version_of(connection: duckdb.DuckDBPyConnection, path: str) -> int:
    """The file's schema version; 0 for an empty file. Raises SchemaMismatch if it holds something else."""
    try:
        connection.execute("SELECT score FROM edge_score LIMIT 0")
        row = connection.execute("SELECT max(version) FROM schema_version").fetchone()
    except (duckdb.CatalogException, duckdb.BinderException) as error:
        if not connection.execute(_RELATIONS).fetchall():
            return 0
        raise SchemaMismatch(
            f"{path} is a DuckDB file but no circuitdb database; name another file with --db."
        ) from error
    return int(row[0] or 0) if row else 0


def is_older(connection: duckdb.DuckDBPyConnection, path: str) -> bool:
    """Whether the file has a schema, of a version before this one. Raises SchemaMismatch if it holds something else."""
    return 0 < version_of(connection, path) < latest()


def require_current(connection: duckdb.DuckDBPyConnection, path: str) -> None:
    """Raise SchemaMismatch, saying what to do, unless the file is of this version's schema."""
    found, wanted = version_of(connection, path), latest()
    if found > wanted:
        raise SchemaMismatch(
            f"{path} has schema {found}, written by a newer circuitdb; this one knows schema {wanted}: "
            "upgrade circuitdb to read it."
        )
    if found == 0:
        raise SchemaMismatch(f"{path} is an empty database; fill it with `circuitdb ingest --db {path}`.")
    if found < wanted:
        raise SchemaMismatch(
            f"{path} has the older schema {found} and can't be written to; open a copy of it elsewhere, which will be "
            f"brought to schema {wanted}."
        )


def migrate(connection: duckdb.DuckDBPyConnection, path: str) -> None:
    """Apply every migration that the file lacks, all in one transaction."""
    found, wanted = version_of(connection, path), latest()
    if found > wanted:
        require_current(connection, path)
    if found == wanted:
        return
    connection.execute("BEGIN")
    try:
        for number, name in enumerate(sqlfiles.names(_PACKAGE), start=1):
            if number > found:
                connection.execute(sqlfiles.load(_PACKAGE, name))
                connection.execute("INSERT INTO schema_version (version, name) VALUES (?, ?)", [number, name])
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
