"""Numbers as they stand in a sentence of a study."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def number(value: float) -> str:
    """A similarity, with two decimals: 0.42."""
    return "unknown" if math.isnan(value) else f"{value + 0.0:.2f}".replace("-0.00", "0.00")


def percent(value: float) -> str:
    """A share as 34%; not rounded to 0% or 100% where it is neither."""
    if math.isnan(value):
        return "an unknown share"
    if 0 < value < 0.0005:
        return "less than 0.1%"
    if 0.9995 <= value < 1:
        return "more than 99.9%"
    if 0 < value < 0.01 or 0.99 < value < 1:
        return f"{value:.1%}"
    return f"{value:.0%}"


def points(value: float) -> str:
    """A difference of two shares: 12 points, or +12 points where its sign matters."""
    rounded = round(100 * value, 1 if abs(value) < 0.1 else 0)
    text = f"{rounded:g}"
    return f"{text} point" if text in ("1", "-1") else f"{text} points"


def interval(low: float, high: float, write: str = "number") -> str:
    """(95% interval 0.10 to 0.30), with a space before it; nothing where there is none."""
    if math.isnan(low) or math.isnan(high):
        return ""
    if write == "points":
        return f" (95% interval {100 * low:.0f} to {100 * high:.0f} points)"
    if write == "percent":
        return f" (95% interval {percent(max(low, 0.0))} to {percent(min(high, 1.0))})"
    return f" (95% interval {number(low)} to {number(high)})"


def p_value(p: float) -> str:
    """P = 0.012, p < 0.001, or p unknown."""
    if math.isnan(p):
        return "p unknown"
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}" if p < 0.1 else f"p = {p:.2f}"


def listed(names: Iterable[object], *, most: int = 8) -> str:
    """a, b and c; the rest counted."""
    texts = [str(name) for name in names]
    if len(texts) > most:
        return f"{', '.join(texts[:most])} and {len(texts) - most:,} more"
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}" if texts else "none"


def joined(sentences: Sequence[str]) -> str:
    """Sentences one after the other; empty ones fall out."""
    return " ".join(sentence for sentence in sentences if sentence)
