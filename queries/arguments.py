"""What a caller may hand over, checked before anything runs: the wrong type is a UsageError in a sentence."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import SupportsFloat, SupportsIndex, cast

from circuitdb.errors import UsageError

_BIG = 2**31 - 1  # as many as the SQL can count, and seconds that nobody waits for


def several(what: str, values: object, *, numbers: bool) -> tuple[int | str, ...]:
    """The values of a filter, one or several; None and nothing are none.

    Whole numbers may be NumPy's. Raises UsageError for what is no name, or no whole number.
    """
    if values is None:
        return ()
    if getattr(values, "shape", None) == ():  # NumPy's, which calls itself iterable
        values = cast("object", getattr(values, "item", lambda: values)())
    one = isinstance(values, str | bytes) or not isinstance(values, Iterable)
    given = (values,) if one else tuple(cast("Iterable[object]", values))
    return tuple(whole(what, value) if numbers else _name(what, value) for value in given)


def whole(what: str, value: object) -> int:
    """A whole number. Raises UsageError for anything else, also for True and for 2.0."""
    if not isinstance(value, bool) and isinstance(value, SupportsIndex):
        try:
            return operator.index(value)
        except TypeError:  # an array that has several
            pass
    raise UsageError(f"A {what} is a whole number, not {_shown(value)}.")


def amount(what: str, value: object) -> int:
    """How many of something, one or more, and not more than SQL can count. Raises UsageError."""
    n = whole(what, value)
    if n < 1:
        raise UsageError(f"n={n} is too few; ask for one {what} or more.")
    return min(n, _BIG)


def real(what: str, value: object) -> float:
    """A finite number. Raises UsageError for anything else."""
    if not isinstance(value, str | bytes | bool) and isinstance(value, SupportsFloat):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if math.isfinite(number):
            return number
    raise UsageError(f"{what}, not {_shown(value)}.")


def patience(value: object) -> float:
    """A timeout in seconds. Raises UsageError."""
    seconds = real("timeout is a number of seconds, such as 10.0", value)
    if seconds < 0:
        raise UsageError(f"timeout is a number of seconds from 0 on, not {_shown(value)}.")
    return min(seconds, float(_BIG))


def _name(what: str, value: object) -> str:
    if isinstance(value, str):
        return str(value)
    raise UsageError(f"A {what} is a name, that is a text, not {_shown(value)}.")


def _shown(value: object) -> str:
    text = repr(value)
    return text if isinstance(value, str | bytes | bool | int | float) and len(text) < 40 else type(value).__name__
