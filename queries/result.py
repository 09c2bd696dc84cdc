"""What every question returns: an Arrow table with named, typed columns, a title and plain-sentence notes."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from circuitdb.errors import UsageError
from circuitdb.queries.columns import distinct, numbers, texts
from circuitdb.words import count as count
from circuitdb.words import enumeration as enumeration

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped, unused-ignore]
    import polars  # type: ignore[import-not-found, unused-ignore]

_TEXT_ROWS, _HTML_ROWS, _TEXT_WIDTH, _CELL_WIDTH = 20, 100, 120, 48


class Answer(ABC):
    """A table with a title and notes; a NULL is None in rows, NaN or NA in frames."""

    title: str
    notes: tuple[str, ...]

    @abstractmethod
    def arrow(self) -> pa.Table:
        """The table."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns.

        >>> db.top_edges(1).columns
        ['place', 'edge', 'source', 'target', 'score', 'edge_id']
        """
        return list(self.arrow().column_names)

    def rows(self) -> list[dict[str, object]]:
        """One dict a row; a date or time that Python has no object for, such as infinity, as text.

        >>> db.sql("SELECT count(*) AS n FROM circuits").rows()
        [{'n': 4}]
        """
        table = self.arrow()
        columns = [_values(column) for column in table.columns]
        return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]

    def df(self) -> pandas.DataFrame:
        """A pandas frame. Raises UsageError where pandas is not installed."""
        try:
            import pandas  # noqa: F401
        except ImportError as error:
            raise UsageError("pandas is not installed: `pip install pandas`, or use .arrow() or .rows().") from error
        return self.arrow().to_pandas()

    def pl(self) -> polars.DataFrame:
        """A polars frame. Raises UsageError where polars is not installed."""
        try:
            import polars
        except ImportError as error:
            raise UsageError("polars is not installed: `pip install polars`, or use .arrow() or .rows().") from error
        return polars.from_arrow(self.arrow())

    def __len__(self) -> int:
        return int(self.arrow().num_rows)

    def __repr__(self) -> str:
        return "\n".join([self.title, *_text_table(self.arrow()), *(f"- {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        table = self.arrow().slice(0, _HTML_ROWS)
        head = "".join(f"<th>{html.escape(name)}</th>" for name in table.column_names)
        cells = zip(*(_texts(column, cut=False) for column in table.columns), strict=True)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in cells)
        more = [f"{len(self):,} rows, the first {_HTML_ROWS} shown."] if len(self) > _HTML_ROWS else []
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in [*more, *self.notes])
        return (
            f"<table><caption>{html.escape(self.title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
            f"</table>{f'<ul>{notes}</ul>' if notes else ''}"
        )


@dataclass(frozen=True, repr=False)
class Result(Answer):
    """A finished answer.

    Attributes:
        table: the Arrow table; NULL where there is no value, never a stand-in.
        title: what it is, in a line.
        notes: warnings and explanations, one sentence each.
    """

    table: pa.Table
    title: str
    notes: tuple[str, ...] = ()

    def arrow(self) -> pa.Table:
        """The table."""
        return self.table


def square(
    labels: Sequence[str],
    values: npt.NDArray[np.float64],
    across: Sequence[str] | None = None,
    **columns: npt.NDArray[np.float64],
) -> pa.Table:
    """A [circuit, circuit] matrix as a table: `label`, the extra columns, then one column a circuit.

    The columns' circuits are those of the rows, or `across`. A circuit whose label is the name of a column before it
    gets a number behind it.
    """
    arrays = [texts(labels), *map(numbers, columns.values()), *map(numbers, values.T)]
    return pa.Table.from_arrays(arrays, names=distinct(["label", *columns, *(labels if across is None else across)]))


def _text_table(table: pa.Table) -> list[str]:
    shown = table.slice(0, _TEXT_ROWS)
    blocks: list[list[str]] = []
    width = 0
    for name, column in zip(shown.column_names, shown.columns, strict=True):
        cells = _texts(column)
        size = max(map(len, [name, *cells]))
        width += size + 2
        if blocks and width > _TEXT_WIDTH:
            break
        right = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        blocks.append([cell.rjust(size) if right else cell.ljust(size) for cell in [name, *cells]])
    lines = ["  ".join(cells).rstrip() for cells in zip_longest(*blocks, fillvalue="")]
    hidden = [
        f"{extra:,} more {what}"
        for extra, what in ((len(table) - _TEXT_ROWS, "rows"), (table.num_columns - len(blocks), "columns"))
        if extra > 0
    ]
    return [*lines, f"... {' and '.join(hidden)}"] if hidden else lines


def _texts(column: pa.ChunkedArray, *, cut: bool = True) -> list[str]:
    texts = [_text(value) for value in _values(column)]
    return [t if len(t) <= _CELL_WIDTH else t[: _CELL_WIDTH - 1] + "…" for t in texts] if cut else texts


def _values(column: pa.ChunkedArray) -> list[object]:
    """The values of a column as Python's, where it has them."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):  # years that datetime does not reach
        return [_value(scalar) for scalar in column]


def _value(scalar: pa.Scalar) -> object:
    kind = scalar.type
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            return [_value(part) for part in scalar.values]
        if pa.types.is_struct(kind):
            return {name: _value(part) for name, part in scalar.items()}
        if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
            return str(scalar)
        last = 2 ** (kind.bit_width - 1) - 1  # DuckDB's infinity
        if abs(scalar.value) == last:
            return "infinity" if scalar.value > 0 else "-infinity"
        unit = kind.unit if pa.types.is_timestamp(kind) else "D"
        return str(np.int64(scalar.value).astype(f"datetime64[{unit}]")).replace("T", " ")


def _text(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e6 else f"{value:.6g}"
    return str(value)
