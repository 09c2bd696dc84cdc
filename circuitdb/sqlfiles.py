"""SQL that lives in `.sql` files: found by package and name, read once."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from circuitdb.errors import UsageError


@cache
def load(package: str, name: str) -> str:
    """The text of `name`.sql in `package`. Raises UsageError if there is none."""
    entry = files(package) / f"{name}.sql"
    if not entry.is_file():
        raise UsageError(f"There is no SQL file {name!r} in {package}; it has: {', '.join(names(package))}.")
    return entry.read_text(encoding="utf-8")


@cache
def names(package: str) -> tuple[str, ...]:
    """Names of all SQL files in `package`, sorted."""
    return tuple(sorted(e.name.removesuffix(".sql") for e in files(package).iterdir() if e.name.endswith(".sql")))
