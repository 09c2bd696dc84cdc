"""Reports of studies: a page to look at, and Markdown with its figures."""

from __future__ import annotations

from circuitdb.queries.report.writing import write

__all__ = ["write"]
