"""Numbers with their nouns, and lists of names, for sentences that a person reads."""

from __future__ import annotations

from collections.abc import Iterable


def count(n: int, one: str, several: str = "") -> str:
    """`n` with its noun: 1 circuit, 2 circuits."""
    return f"{n:,} {one if n == 1 else several or f'{one}s'}"


def enumeration(names: Iterable[object], *, most: int = 20) -> str:
    """Names in a row, the rest counted."""
    texts = [str(name) for name in names]
    shown = ", ".join(texts[:most])
    return shown if len(texts) <= most else f"{shown} and {len(texts) - most:,} more"
