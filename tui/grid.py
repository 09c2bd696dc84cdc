"""The cells of any answer as a table on the screen has them; free of Textual."""

from __future__ import annotations

import pyarrow as pa

from circuitdb.cells import Cells, Value, plain_text, printable
from circuitdb.queries.result import Result
from circuitdb.tui.widgets.pages import Column

SAMPLE = 100  # rows at either end by which columns are measured
_LEAST, _MOST = 4, 40


def key(place: int) -> str:
    """The name of a column in the tables of `plain`, which differ even where those of an answer confuse."""
    return f"c{place}"


def text(value: Value) -> str:
    """A cell in one line; NULL says so, since an empty text looks like nothing."""
    return "NULL" if value is None else printable(plain_text(value))


def plain(rows: pa.Table) -> pa.Table:
    """Rows with texts for cells, in columns c0, c1, ...: as the commands print them, NaN and infinity by name."""
    cells = Cells.of(Result(rows, ""))
    columns = []
    for place, values in enumerate(cells.columns):
        texts = [text(value) for value in values]
        if pa.types.is_floating(rows.schema.field(place).type):
            texts = [_figure(value) for value in rows.column(place).to_pylist()]
        columns.append(pa.array(texts, pa.string()))
    return pa.table(columns, names=[key(i) for i in range(len(columns))])


def columns(schema: pa.Schema, sample: pa.Table) -> list[Column]:
    """Columns as wide as the sample needs, within bounds; numbers stand at the right."""
    table = plain(sample)
    found = []
    for place, field in enumerate(schema):
        longest = max(map(len, table.column(place).to_pylist()), default=0)
        width = max(_LEAST, len(field.name), longest)
        kind = field.type
        right = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        found.append(Column(key(place), printable(field.name), min(_MOST, width), right=right))
    return found


def _figure(value: float | None) -> str:
    return "NULL" if value is None else f"{value:.6g}"
