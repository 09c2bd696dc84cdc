"""Tables of a report as texts: few digits, a dash for NULL, and not more rows than a page bears."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from circuitdb.queries.result import Result

MOST_ROWS = 40


@dataclass(frozen=True)
class Page:
    """A table as it is printed.

    Attributes:
        caption: its title.
        head: names of the columns.
        numeric: [column], whether it holds numbers, which stand to the right.
        rows: the texts, row by row.
        n_rows: how many there are in all.
        notes: what stands below it.
    """

    caption: str
    head: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    n_rows: int
    notes: tuple[str, ...]


def page(result: Result) -> Page:
    """The first rows of a result."""
    table = result.table.slice(0, MOST_ROWS)
    columns = [[text(value) for value in column.to_pylist()] for column in table.columns]
    numeric = [pa.types.is_integer(field.type) or pa.types.is_floating(field.type) for field in table.schema]
    rows = tuple(zip(*columns, strict=True)) if columns else ()
    return Page(result.title, tuple(table.column_names), tuple(numeric), rows, len(result.table), result.notes)


def text(value: object) -> str:
    """A value in a cell: three decimals, thousands apart, yes and no."""
    if value is None:
        return "\u2013"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        small = value != 0 and abs(value) < 0.0005
        return (f"{value:.1e}" if small else f"{value:.3f}").replace("-", "\u2212")
    return str(value)
