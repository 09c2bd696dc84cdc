"""Standard output, and the only place that writes to it: an answer as a table, as JSON, as CSV or as Parquet."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from circuitdb.cells import Cells, plain_text, printable, to_csv, to_json
from circuitdb.cli import diagnostics, layout
from circuitdb.cli.layout import Line, lines, matrix_lines
from circuitdb.cli.options import Form
from circuitdb.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from circuitdb.queries.result import Answer

# More rows than a person scrolls through; pipes and files always get all of them.
_SCREEN_ROWS = 10_000
_CHUNK = 1 << 16
_GREY = 205  # as a background, faint on a light terminal and on a dark one


def answer(result: Answer, form: Form) -> None:
    """Print one answer. Its notes go to standard error, but into the object where that is JSON."""
    cells = Cells.of(result)
    if form is Form.JSON:
        _write(_json_lines(cells))
        return
    if form is Form.CSV:
        _write(to_csv(cells))
    else:
        cells = _for_screen(cells)
        _write(_table(cells))
    diagnostics.notes(cells.notes)


def matrix(result: Answer, form: Form, *, labels: int) -> None:
    """Print a square matrix of similarities whose first `labels` columns are about its rows.

    On a colour terminal the numbers are shaded, blue above zero and orange below it, the stronger the farther from it.
    """
    if form is not Form.TABLE:
        answer(result, form)
        return
    cells = Cells.of(result)
    shade = _shade if diagnostics.colour(sys.stdout) else None
    _write(_rendered(matrix_lines(cells, _width(), labels=labels, shade=shade, rule=_rule())))
    diagnostics.notes(cells.notes)


def page(title: str, parts: Mapping[str, Answer], form: Form) -> None:
    """Print several answers about one thing: one below the other, or as one JSON object with an object for each."""
    cells = {name: Cells.of(part) for name, part in parts.items()}
    if form is Form.JSON:
        whole = {"title": title, **{name: to_json(part) for name, part in cells.items()}}
        _write([json.dumps(whole, ensure_ascii=_ascii(), allow_nan=False, indent=1), "\n"])
        return
    _write(_rendered([[(printable(title), "bold")]]))
    for name, part in cells.items():
        _write(["\n"])
        # Of an empty answer the title says it all.
        _write(_table(part, upright=True) if len(parts[name]) else _rendered([[(printable(part.title), "bold")]]))
    diagnostics.notes(dict.fromkeys(note for part in cells.values() for note in part.notes))


def prose(title: str, texts: Iterable[str]) -> None:
    """Print a title and, as a list, texts of a sentence or more."""
    _write(_rendered(layout.prose(title, texts, _width())))


def refuse_terminal() -> None:
    """Raise UsageError if standard output is a terminal, which bytes would only confuse."""
    if diagnostics.terminal(sys.stdout):
        raise UsageError("Parquet is not for a terminal; name a file with -o, or send the output on with a pipe.")


def refuse_existing(path: str, *, force: bool) -> None:
    """Raise UsageError, before any work is done, if `save` could not write this file."""
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"{path} is a folder; name a file with -o.")
    if target.exists() and not force:
        raise UsageError(f"{path} exists already; name another file, or replace it with --force.")
    if not target.resolve().parent.is_dir():
        raise UsageError(f"The folder of {path} does not exist; make it, or name another file with -o.")


def parquet(result: Answer) -> None:
    """Write an answer as Parquet to standard output."""
    content, notes = _parquet(result)
    try:
        sys.stdout.write("")
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
    except BrokenPipeError:
        _hang_up()
    except OSError as failure:
        _let_go()
        raise OSError(failure.errno, failure.strerror, "standard output") from failure
    diagnostics.notes((*result.notes, *notes))


def save(result: Answer, form: Form, path: str, *, force: bool) -> None:
    """Write an answer into a file, whole or not at all. Raises UsageError if there is one, unless `force` is given."""
    refuse_existing(path, force=force)
    notes = result.notes
    if form is Form.PARQUET:
        content, texts = _parquet(result)
        notes = (*notes, *texts)
    else:
        cells = Cells.of(result)
        notes = () if form is Form.JSON else cells.notes
        chunks = {Form.JSON: _json_lines, Form.CSV: to_csv, Form.TABLE: _plain}[form](cells)
        content = "".join(chunks).encode()
    _replace(Path(path).resolve(), content)
    diagnostics.notes(notes)


def binary(content: bytes, path: str, notes: Iterable[str], *, force: bool) -> None:
    """Write a file that is no text, whole or not at all. Raises UsageError if there is one, unless `force` is given."""
    refuse_existing(path, force=force)
    _replace(Path(path).resolve(), content)
    diagnostics.notes(notes)


def text(content: str) -> None:
    """Print text as it is."""
    _write([content])


def _table(cells: Cells, *, upright: bool = False) -> Iterator[str]:
    return _rendered(lines(cells, _width(), rule=_rule(), upright=upright))


def _for_screen(cells: Cells) -> Cells:
    """The first rows of very many, with a note, where a terminal is to show them."""
    if not diagnostics.terminal(sys.stdout) or cells.n_rows <= _SCREEN_ROWS:
        return cells
    note = f"These are {_SCREEN_ROWS:,} of {cells.n_rows:,} rows; a pipe, a file or --csv gives them all."
    return cells.head(_SCREEN_ROWS, note)


def _plain(cells: Cells) -> Iterator[str]:
    return ("".join(part for part, _ in line) + "\n" for line in lines(cells, None))


def _json_lines(cells: Cells) -> Iterator[str]:
    """The object of `to_json` with one row a line."""

    def dump(value: object) -> str:
        return json.dumps(value, ensure_ascii=_ascii(), allow_nan=False)

    yield f'{{"title": {dump(cells.title)},\n "columns": {dump(cells.names)},\n "rows": ['
    for i, row in enumerate(cells.rows()):
        yield (",\n  " if i else "\n  ") + dump(dict(zip(cells.names, row, strict=True)))
    yield f'],\n "notes": {dump(cells.notes)}}}\n'


def _rendered(table: Iterable[Line]) -> Iterator[str]:
    """Lines as text, with the escapes of their styles where standard output takes colour."""
    if not diagnostics.colour(sys.stdout):
        for line in table:
            yield "".join(part for part, _ in line).rstrip() + "\n"
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=io.StringIO(), force_terminal=True, highlight=False, soft_wrap=True)
    for line in table:
        with console.capture() as captured:
            console.print(Text.assemble(*line), soft_wrap=True)
        yield captured.get()


def _shade(value: float) -> str:
    """A background for a similarity of -1..1 that black text can be read on; none near zero."""
    strength = min(1.0, abs(value))
    if strength < 0.1:
        return ""
    far = (90, 160, 255) if value > 0 else (255, 150, 60)
    red, green, blue = (round(_GREY + (channel - _GREY) * strength) for channel in far)
    return f"#000000 on #{red:02x}{green:02x}{blue:02x}"


def _width() -> int | None:
    """Columns of the terminal; a pipe has no end, unless COLUMNS names one."""
    if diagnostics.terminal(sys.stdout) or os.environ.get("COLUMNS"):
        return max(20, shutil.get_terminal_size().columns)
    return None


def _ascii() -> bool:
    return "utf" not in (sys.stdout.encoding or "").lower()


def _rule() -> str:
    return "-" if _ascii() else "─"


def _parquet(result: Answer) -> tuple[bytes, tuple[str, ...]]:
    """(the file, a note on the columns of types that Parquet lacks: they are text, as in CSV)."""
    import pyarrow as pa
    import pyarrow.parquet

    table = result.arrow()
    cast = [i for i, field in enumerate(table.schema) if not _parquet_has(field)]
    columns = Cells.of(result).columns if cast else ()
    for i in cast:
        texts = pa.array([None if value is None else plain_text(value) for value in columns[i]], pa.string())
        table = table.set_column(i, table.column_names[i], texts)
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer)
    names = ", ".join(table.column_names[i] for i in cast)
    return buffer.getvalue(), (f"Parquet has no such type as that of {names}; written as text.",) if cast else ()


def _parquet_has(field: pa.Field) -> bool:
    import pyarrow as pa
    import pyarrow.parquet

    try:
        pyarrow.parquet.write_table(pa.schema([field]).empty_table(), io.BytesIO())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return False
    return True


def _replace(target: Path, content: bytes) -> None:
    """Write a file under another name and move it into place, so that nobody ever sees half of it."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _write(chunks: Iterable[str]) -> None:
    waiting: list[str] = []
    size = 0
    try:
        for chunk in chunks:
            waiting.append(chunk)
            size += len(chunk)
            if size >= _CHUNK:
                sys.stdout.write("".join(waiting))
                waiting, size = [], 0
        sys.stdout.write("".join(waiting))
        sys.stdout.flush()
    except BrokenPipeError:
        _hang_up()
    except OSError as failure:
        _let_go()
        raise OSError(failure.errno, failure.strerror, "standard output") from failure


def _hang_up() -> None:
    """The reader has seen enough (`| head`): end without a word, also when Python flushes at its end."""
    _let_go()
    raise typer.Exit(0)


def _let_go() -> None:
    """Send what is left to nowhere, for Python would try once more at its end."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
