"""Reads files of evaluations of any known format into one `Imported`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from circuitdb.errors import UsageError
from circuitdb.evals import columns, inspect_log, json_text, lm_eval, tables
from circuitdb.evals.columns import Columns
from circuitdb.evals.rows import Imported, Row, Table, check_text, distinct, missing, number, numeric


def read(paths: Sequence[Path], told: Columns, table: str | None = None) -> Imported:
    """All rows of some files, and where they are tables these too, one below the other, with a column `file`.

    Raises UsageError for a file that is not there, of no known kind, or that contradicts another.
    """
    if not paths:
        raise UsageError("There is no file to add; name one or more.")
    formats: dict[str, None] = {}
    rows: list[Row] = []
    notes: list[str] = []
    raw: list[tuple[str, Table]] = []
    for text in (told.model_column, told.subtask_column, told.model, told.subtask, table):
        check_text(text, "The name")
    for path in paths:
        check_text(str(path.absolute()), "The file")
        if not path.is_file():
            raise UsageError(
                f"There is no file {path}." if not path.is_dir() else f"{path} is a folder; name its files."
            )
        kind, found, said, columns_ = _one(path, told, table)
        formats[kind] = None
        rows += found
        notes += said
        if columns_ is not None:
            raw.append((str(path), columns_))
    whole = _stacked(raw, told) if len(raw) == len(paths) else None
    return Imported(", ".join(formats), distinct(rows), whole, tuple(notes))


def _one(path: Path, told: Columns, table: str | None) -> tuple[str, list[Row], list[str], Table | None]:
    """(format, rows, notes, the table if it is one) of one file."""
    if path.suffix.lower() == ".eval":
        return ("inspect_ai", *inspect_log.rows(path, inspect_log.header(path)), None)
    if tables.kind_of(path) == "json":
        values = json_text.values(path)
        if inspect_log.is_log(values[0] if values else None):
            return ("inspect_ai", *inspect_log.rows(path, dict(values[0])), None)  # type: ignore[call-overload]
        if lm_eval.is_results(values[0] if values else None):
            return ("lm-eval", *lm_eval.results(path, dict(values[0]), told.model), None)  # type: ignore[call-overload]
        if path.suffix.lower() != ".json" and lm_eval.is_samples(path, values):
            return ("lm-eval", *lm_eval.samples(path, values, told.model, told.subtask), None)
    content = tables.read(path, table)
    found, notes = columns.rows(content, told, str(path))
    return tables.kind_of(path), found, notes, content


def _stacked(raw: Sequence[tuple[str, Table]], told: Columns) -> pa.Table:
    """The tables one below the other; a column that one lacks is NULL there. Names stay text, also those of digits."""
    texts = {told.model_column, told.subtask_column, *columns.MODEL, *columns.SUBTASK}
    names = dict.fromkeys(name for _, table in raw for name in table)
    sizes = [len(next(iter(table.values()), [])) for _, table in raw]
    arrays = {
        name: _array(
            [value for (_, table), n in zip(raw, sizes, strict=True) for value in table.get(name, [None] * n)],
            text=name in texts or name.strip().lower() in texts,
        )
        for name in names
    }
    file = "file"
    while file in names:
        file += "_"
    sources = [path for (path, _), n in zip(raw, sizes, strict=True) for _ in range(n)]
    return pa.table({**arrays, file: pa.array(sources, pa.string())})


def _array(values: list[object], *, text: bool) -> pa.Array:
    """BIGINT or DOUBLE where every value is such a number, VARCHAR otherwise or if `text`.

    N/A, NaN and the infinities of a column of numbers are NULL.
    """
    known = [None if missing(value) else value for value in values]
    if not text and all(value is None or _is_whole(value) for value in known):
        return pa.array([None if value is None else int(str(value)) for value in known], pa.int64())
    if not text and all(value is None or (numeric(value) and not isinstance(value, bool)) for value in known):
        return pa.array([None if value is None else number(value) for value in known], pa.float64())
    return pa.array([None if value is None else str(value) for value in known], pa.string())


def _is_whole(value: object) -> bool:
    """Whether it is an integer, or the text of one, that fits 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return False
    digits = str(value).strip().removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 18
