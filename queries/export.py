"""Writes an answer that is kept on disk into a file, part by part: CSV, JSON or Parquet, as `circuitdb sql -o` does."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from circuitdb.cells import Cells, plain_text, to_csv
from circuitdb.errors import StoreError, UsageError
from circuitdb.queries.spool import Spool

FORMS = (".csv", ".json", ".parquet")


def save(spool: Spool, path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Write all rows into a new file, whole or not at all; the form is what its name ends in. Gives notes on it.

    Raises UsageError for another ending, for a file that is there, and for no folder; StoreError where it can't be
    written.
    """
    target = Path(path).expanduser()
    form = target.suffix.lower()
    if form not in FORMS:
        raise UsageError(f"{path} ends in none of {', '.join(FORMS)}, which say the form; name it so.")
    if target.exists():
        raise UsageError(f"{path} exists already; name another file.")
    if not target.resolve().parent.is_dir():
        raise UsageError(f"The folder of {path} does not exist; make it, or name another file.")
    try:
        handle, name = tempfile.mkstemp(dir=target.resolve().parent, prefix=f".{target.name}.")
        try:
            os.close(handle)
            notes = _parquet(spool, name) if form == ".parquet" else _text(spool, name, form)
            mask = os.umask(0)
            os.umask(mask)
            Path(name).chmod(0o666 & ~mask)
            os.replace(name, target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StoreError(f"{path} can't be written: {error.strerror or error}.") from error
    return notes


def _text(spool: Spool, name: str, form: str) -> tuple[str, ...]:
    n_infinite = 0
    with open(name, "w", encoding="utf-8", newline="") as file:
        if form == ".json":
            file.write(f'{{"title": {_json(spool.title)},\n "columns": {_json(spool.schema.names)},\n "rows": [')
        for i, cells in enumerate(Cells.of(part) for part in spool.parts()):
            n_infinite += cells.n_infinite
            file.writelines(_json_rows(cells, first=not i) if form == ".json" else _csv_lines(cells, first=not i))
        notes = (*spool.notes, *Cells.told(n_infinite))
        if form == ".json":
            file.write(f'],\n "notes": {_json(notes)}}}\n')
    return notes


def _csv_lines(cells: Cells, *, first: bool) -> Iterator[str]:
    lines = to_csv(cells)
    if not first:
        next(lines)
    return lines


def _json_rows(cells: Cells, *, first: bool) -> Iterator[str]:
    for row in cells.rows():
        yield ("\n  " if first else ",\n  ") + _json(dict(zip(cells.names, row, strict=True)))
        first = False


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _parquet(spool: Spool, name: str) -> tuple[str, ...]:
    """Columns of types that Parquet lacks are text, as in CSV."""
    texts = [field.name for field in spool.schema if not parquet_has(field)]
    schema = pa.schema([pa.field(f.name, pa.string()) if f.name in texts else f for f in spool.schema])
    with pyarrow.parquet.ParquetWriter(name, schema) as writer:
        for part in spool.parts():
            table = part.table
            cells = Cells.of(part) if texts else None
            for i, field in enumerate(schema):
                if cells is not None and field.name in texts:
                    found = [None if value is None else plain_text(value) for value in cells.columns[i]]
                    table = table.set_column(i, field, pa.array(found, pa.string()))
            writer.write_table(table)
    told = (f"Parquet has no such type as that of {', '.join(texts)}; written as text.",) if texts else ()
    return (*spool.notes, *told)


def parquet_has(field: pa.Field) -> bool:
    """Whether Parquet can hold such a column."""
    try:
        pyarrow.parquet.write_table(pa.schema([field]).empty_table(), pa.BufferOutputStream())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return False
    return True
