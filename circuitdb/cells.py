"""The cells of an answer as plain values: the table, the JSON and the CSV are all made of these."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"
Kind: TypeAlias = Literal["number", "time", "text"]


class Answer(Protocol):
    """What the query layer answers with, as far as cells are concerned."""

    @property
    def title(self) -> str:
        """What it is, in a line."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings and explanations."""

    def arrow(self) -> pa.Table:
        """The table."""


_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}
_FOREVER = {32: 2**31 - 1, 64: 2**63 - 1}  # DuckDB's infinite dates and timestamps, by bits
_DAY_2000, _PERIOD = 10_957, 146_097


@dataclass(frozen=True)
class Cells:
    """An answer column by column: NULL, NaN and infinities are None, times are ISO 8601 text (UTC where zoned).

    `names` differ from each other, as those of every answer do; `n_infinite` numbers were not finite.
    """

    title: str
    names: tuple[str, ...]
    columns: tuple[list[Value], ...]
    kinds: tuple[Kind, ...]
    notes: tuple[str, ...] = ()
    n_infinite: int = 0

    @classmethod
    def of(cls, answer: Answer) -> Cells:
        """Take them from an answer; a note counts the numbers that were not finite."""
        table = answer.arrow()
        plain = _Plain()
        columns = tuple(plain.column(column) for column in table.columns)
        notes = tuple(answer.notes)
        notes += cls.told(plain.infinite)
        names = tuple(table.column_names)
        return cls(
            answer.title, names, columns, tuple(_kind(column.type) for column in table.columns), notes, plain.infinite
        )

    @staticmethod
    def told(n_infinite: int) -> tuple[str, ...]:
        """A note on so many numbers that were not finite; nothing where there are none."""
        said = f"Infinite numbers and NaN are given as NULL here; there are {n_infinite:,} of them."
        return (said,) if n_infinite else ()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0]) if self.columns else 0

    def head(self, n: int, note: str) -> Cells:
        """The first `n` rows, with a note that says so."""
        return replace(self, columns=tuple(column[:n] for column in self.columns), notes=(*self.notes, note))

    def rows(self) -> Iterator[tuple[Value, ...]]:
        """Row by row."""
        return zip(*self.columns, strict=True)


def to_json(cells: Cells) -> dict[str, Value]:
    """The JSON object of an answer: title, columns, rows as objects, notes."""
    return {
        "title": cells.title,
        "columns": list(cells.names),
        "rows": [dict(zip(cells.names, row, strict=True)) for row in cells.rows()],
        "notes": list(cells.notes),
    }


def to_csv(cells: Cells) -> Iterator[str]:
    """Lines of CSV: a header, numbers at full precision, NULL as nothing, an empty text as two quotes."""
    yield ",".join(_csv(name) for name in cells.names) + "\n"
    for row in cells.rows():
        yield ",".join(_csv(value) for value in row) + "\n"


def to_text(values: Sequence[Value], kind: Kind) -> list[str | None]:
    """One column for people: numbers with decimals that suit the column, times to the second, NULL as None."""
    if kind == "number":
        return figures(values)
    if kind == "time":
        return [None if value is None else _moment(str(value)) for value in values]
    return [None if value is None else printable(_words(value)) for value in values]


def figures(values: Sequence[Value]) -> list[str | None]:
    """Numbers of one column with the same decimals: at least three significant digits of the largest.

    A value other than zero that these decimals would show as zero is written with an exponent.
    """
    numbers = [value for value in values if isinstance(value, float)]
    largest = max(map(abs, numbers), default=0.0)
    if all(isinstance(value, int) or value is None for value in values):
        return [None if value is None else str(value) for value in values]
    if largest >= 1e7:
        return [_number(value, ".4g") for value in values]
    magnitude = math.floor(math.log10(largest)) if largest > 0 else 0
    decimals = max(1, 3 - magnitude) if magnitude > 0 else max(3, 2 - magnitude)
    if decimals > 6:
        return [_number(value, ".2e") for value in values]
    least = 0.5 * 10.0**-decimals
    return [
        _number(value, ".1e" if isinstance(value, float) and 0 < abs(value) < least else f".{decimals}f")
        for value in values
    ]


def printable(text: str) -> str:
    """Text without control characters: a line break is shown as backslash n, an escape as its code."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def plain_text(value: Value) -> str:
    """A value as CSV has it, unquoted."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return repr(value)
    return value if isinstance(value, str) else _compact(value)


def _number(value: Value, form: str) -> str | None:
    if value is None:
        return None
    if isinstance(value, (int, float)):
        return format(value + 0.0, form)  # + 0.0 makes -0.0 a plain zero
    return str(value)


def _moment(text: str) -> str:
    date, _, clock = text.partition("T")
    zone = "Z" if clock.endswith("Z") else ""
    return f"{date} {clock[:8]}{zone}" if clock else text


def _words(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and not any(isinstance(item, (list, dict)) for item in value):
        return ", ".join("-" if item is None else _words(item) for item in value)
    return value if isinstance(value, str) else _compact(value)


def _compact(value: Value) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _csv(value: Value) -> str:
    if value is None:
        return ""
    text = plain_text(value)
    if not text or any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _kind(form: pa.DataType) -> Kind:
    import pyarrow as pa

    if pa.types.is_integer(form) or pa.types.is_floating(form) or pa.types.is_decimal(form):
        return "number"
    return "time" if pa.types.is_timestamp(form) else "text"


class _Plain:
    """Turns Arrow columns into plain values and counts the numbers that were not finite."""

    def __init__(self) -> None:
        self.infinite = 0

    def column(self, column: pa.ChunkedArray) -> list[Value]:
        import pyarrow as pa

        form = column.type
        if pa.types.is_integer(form) or pa.types.is_boolean(form):
            return list(column.to_pylist())
        if pa.types.is_floating(form) or pa.types.is_string(form) or pa.types.is_decimal(form):
            return [self.value(value) for value in column.to_pylist()]
        return [self.scalar(scalar) for scalar in column]

    def scalar(self, scalar: pa.Scalar) -> Value:
        """One value of any type; times from their numbers, since Python's own have no year 0 and no nanoseconds."""
        import pyarrow as pa

        form = scalar.type
        if not scalar.is_valid:
            return None
        if pa.types.is_interval(form):
            return _duration(*scalar.as_py())
        if pa.types.is_date32(form):
            return _date(scalar.value)
        if pa.types.is_time(form):
            return _clock(scalar.value * _NANOSECONDS[form.unit])
        if pa.types.is_timestamp(form):
            return _timestamp(scalar.value, form.unit, zoned=form.tz is not None)
        if pa.types.is_map(form):
            return [[self.scalar(entry["key"]), self.scalar(entry["value"])] for entry in scalar.values]
        if pa.types.is_struct(form):
            return {name: self.scalar(part) for name, part in scalar.items()}
        if pa.types.is_union(form):
            return self.scalar(scalar.value)
        if pa.types.is_nested(form):
            return [self.scalar(part) for part in scalar.values]
        return self.value(scalar.as_py())

    def value(self, value: object) -> Value:
        if isinstance(value, float):
            if math.isfinite(value):
                return value
            self.infinite += 1
            return None
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, Decimal):
            return _decimal(value)
        if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
            return value.isoformat()
        if isinstance(value, bytes):
            return value.hex()
        if isinstance(value, dict):
            return {str(key): self.value(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in value]
        return str(value)


def _duration(months: int, days: int, nanoseconds: int) -> str:
    """ISO 8601 without loss, for example P1M2DT0.5S; parts below zero have a sign each (ISO 8601-2)."""
    whole, rest = divmod(abs(nanoseconds), 10**9)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    date = "".join(f"{n}{unit}" for n, unit in ((months, "M"), (days, "D")) if n)
    clock = f"T{'-' if nanoseconds < 0 else ''}{whole}{fraction}S" if nanoseconds or not date else ""
    return f"P{date}{clock}"


def _date(days: int) -> str:
    """The date so many days after 1970, as DuckDB prints those before year 1 (BC), after 9999 and at infinity."""
    if abs(days) == _FOREVER[32]:
        return "infinity" if days > 0 else "-infinity"
    # Every 400 years, of 146,097 days, are alike; 2000 is a year of them that Python has.
    periods, day = divmod(days - _DAY_2000, _PERIOD)
    found = datetime.date(2000, 1, 1) + datetime.timedelta(day)
    year = found.year + 400 * periods
    return f"{year if year > 0 else 1 - year:04d}-{found:%m-%d}{'' if year > 0 else ' (BC)'}"


def _clock(nanoseconds: int) -> str:
    """Time of day, 24:00:00 too; six decimals if it has any, nine if it needs them."""
    seconds, rest = divmod(nanoseconds, 10**9)
    fraction = f".{rest:09d}" if rest % 1000 else f".{rest // 1000:06d}" if rest else ""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"


def _timestamp(value: int, unit: str, *, zoned: bool) -> str:
    """ISO 8601, or DuckDB's own form where that has none."""
    if abs(value) == _FOREVER[64]:
        return "infinity" if value > 0 else "-infinity"
    days, nanoseconds = divmod(value * _NANOSECONDS[unit], 86_400 * 10**9)
    date, clock = _date(days), _clock(nanoseconds)
    if len(date) == len("2026-01-02"):
        return f"{date}T{clock}{'Z' if zoned else ''}"
    if "." in clock:
        clock = clock.rstrip("0")
    return f"{date} {clock}{'+00' if zoned else ''}"


def _decimal(value: Decimal) -> Value:
    """A whole number, the float that says the same, or else text: JSON readers would round it."""
    if value == value.to_integral_value():
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else str(value)
