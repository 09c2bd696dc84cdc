"""Questions to the database: pure functions of arrays over score matrices that SQL hands out."""

from __future__ import annotations

from circuitdb.queries.cuts import Cut
from circuitdb.queries.database import Database
from circuitdb.queries.result import Result

__all__ = ["Cut", "Database", "Result"]
