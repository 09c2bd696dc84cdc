"""Questions in Parquet; the first row is row 1."""

from __future__ import annotations

from pathlib import Path

from circuitdb.errors import UsageError
from circuitdb.ingest.tasks.files.sheet import Line, Sheet, sheet

# What pandas calls the index that it writes beside the columns.
_INDEX = "__index_level_0__"


def read(path: Path) -> Sheet:
    """The rows. Raises UsageError."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.ParquetFile(path).read()
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise UsageError(f"{path.name} can't be read as Parquet: {reason}.") from error
    names = ["" if name == _INDEX else name for name in table.column_names]
    columns = [table.column(i).to_pylist() for i in range(table.num_columns)]
    lines = [Line(number, tuple(map(_cell, values))) for number, values in enumerate(zip(*columns, strict=True), 1)]
    return sheet(path.name, names, lines, typed=True)


def _cell(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value
