"""From a table of any shape to rows: which column is the model, which the subtask, which are metrics.

A table is long, with a column `metric` and a column `value`, or wide, with one column of numbers a metric; then
`acc_stderr` is the standard error of `acc`. A column of which one cell is text is no metric; the notes name it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from circuitdb.errors import UsageError
from circuitdb.evals.rows import Row, Table, infinities, missing, number, numeric, whole

MODEL = ("model", "model_name", "model_id", "llm")
SUBTASK = ("subtask", "task", "task_name", "dataset", "benchmark")
_LONG = ("metric", "value", "filter", "stderr", "n")
_COUNT = ("n", "n_samples", "n_examples", "n_questions", "count", "samples")
_IGNORED = ("id", "index", "")
_STDERR = "_stderr"


@dataclass(frozen=True)
class Columns:
    """What the user says of a table: names of its columns, or what holds for all of its rows."""

    model_column: str | None = None
    subtask_column: str | None = None
    model: str | None = None
    subtask: str | None = None


def rows(table: Table, columns: Columns, file: str) -> tuple[list[Row], list[str]]:
    """(rows, notes). Raises UsageError where the model, the subtask or any metric is not to be found."""
    n = len(next(iter(table.values()), []))
    by_name = {name.strip().lower(): name for name in table}
    models, model_column = _names(table, by_name, "model", columns.model_column, columns.model, MODEL, file)
    subtasks, subtask_column = _names(table, by_name, "subtask", columns.subtask_column, columns.subtask, SUBTASK, file)
    used = {model_column, subtask_column}
    if "metric" in by_name and "value" in by_name:
        found = _long(table, by_name, models, subtasks, file)
        return found, infinities(
            file, _cells(table, (by_name[name] for name in ("value", "stderr") if name in by_name))
        )
    count = next((by_name[name] for name in _COUNT if name in by_name), None)
    counts = [whole(value) for value in table[count]] if count else [None] * n
    measured, texts = _metrics(table, used | {count})
    if not measured:
        raise UsageError(
            f"{file}: no column of numbers is left for a metric beside {', '.join(sorted(filter(None, used)))}; it has "
            f"{', '.join(table)}."
        )
    rows_: list[Row] = []
    for name in measured:
        errors = table.get(f"{name}{_STDERR}", [None] * n)
        rows_ += [
            Row(model, subtask, name, number(value), None, number(error), size, file=file)
            for model, subtask, value, error, size in zip(models, subtasks, table[name], errors, counts, strict=True)
        ]
    notes = (
        [f"{file}: columns of text are no metrics, and only in the table itself: {', '.join(texts)}."] if texts else []
    )
    beside = [f"{name}{_STDERR}" for name in measured if f"{name}{_STDERR}" in table]
    return rows_, notes + infinities(file, _cells(table, [*measured, *beside]))


def _cells(table: Table, names: Iterable[str]) -> Iterator[object]:
    return (value for name in names for value in table[name])


def _metrics(table: Table, used: set[str | None]) -> tuple[list[str], list[str]]:
    """(names of the columns of numbers, names of those of text)."""
    measured: list[str] = []
    texts: list[str] = []
    for name, values in table.items():
        beside = name.endswith(_STDERR) and name.removesuffix(_STDERR) in table
        if name in used or name.strip().lower() in _IGNORED or beside:
            continue
        of_numbers = all(missing(value) or numeric(value) for value in values)
        (measured if of_numbers and not all(map(missing, values)) else texts).append(name)
    return measured, texts


def _long(table: Table, by_name: dict[str, str], models: list[str], subtasks: list[str], file: str) -> list[Row]:
    metric, value, kind, stderr, n = (
        table[by_name[name]] if name in by_name else [None] * len(models) for name in _LONG
    )
    wrong = next((i for i, v in enumerate(value) if not missing(v) and not numeric(v)), None)
    if wrong is not None:
        raise UsageError(f"{file}: the value of row {wrong + 1} is {value[wrong]!r}, which is no number.")
    lacking = next((i for i, m in enumerate(metric) if missing(m)), None)
    if lacking is not None:
        raise UsageError(f"{file}: row {lacking + 1} names no metric.")
    return [
        Row(
            model, subtask, str(metric[i]).strip(), number(value[i]), None if missing(kind[i]) else str(kind[i]),
            number(stderr[i]), whole(n[i]), file=file,
        )
        for i, (model, subtask) in enumerate(zip(models, subtasks, strict=True))
    ]  # fmt: skip


def _names(
    table: Table,
    by_name: dict[str, str],
    what: str,
    column: str | None,
    constant: str | None,
    guesses: Sequence[str],
    file: str,
) -> tuple[list[str], str | None]:
    """(the name of the model or subtask in each row, the column it is from)."""
    n = len(next(iter(table.values()), []))
    if column is not None and column not in table:
        raise UsageError(f"{file} has no column {column}; it has {', '.join(table)}.")
    found = column or (None if constant else next((by_name[name] for name in guesses if name in by_name), None))
    if found is None:
        if constant is None:
            raise UsageError(
                f"{file} has no column that names the {what} ({', '.join(guesses)}); name one with --{what}-column, or "
                f"the {what} of all rows with --{what}-name. It has {', '.join(table) or 'no column'}."
            )
        return [constant] * n, None
    lacking = next((i for i, value in enumerate(table[found]) if missing(value)), None)
    if lacking is not None:
        raise UsageError(f"{file}: row {lacking + 1} names no {what} in column {found}.")
    several = next((i for i, value in enumerate(table[found]) if isinstance(value, list | dict)), None)
    if several is not None:
        raise UsageError(
            f"{file}: the {what} of row {several + 1}, in column {found}, is a list or an object, no name."
        )
    return [str(value) for value in table[found]], found
