"""Lays an answer out in a given width: whole, else without its constant columns, else block by block.

1. If all columns fit, they stand side by side. Without a width (a pipe) they always do.
2. A single row that does not fit stands as one name and value per line.
3. Columns that say the same in every row are named once above the table.
4. Column names break at their underscores, and long texts wrap.
5. What still does not fit continues in further blocks, each of which begins with the first column.

A matrix whose names do not fit is numbered: the row's number is the column's.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from circuitdb.cells import Cells, Value, printable, to_text

Line: TypeAlias = "list[tuple[str, str]]"  # texts, each with the name of its style; "" is plain
Shade: TypeAlias = Callable[[float], str]

NULL = "-"
_GAP = 2
_NARROW = 1  # between the columns of a matrix that is wide
_LONG = 24  # a text column is not made narrower than this


@dataclass(frozen=True)
class Column:
    """One column ready to print: `texts` with None for NULL, and a style for each where it has any."""

    name: str
    texts: Sequence[str | None]
    right: bool
    styles: Sequence[str] | None = None

    @cached_property
    def widest(self) -> int:
        """Width of its widest cell."""
        return max((cell_width(text or NULL) for text in self.texts), default=0)

    @cached_property
    def natural(self) -> int:
        """Width at which nothing breaks."""
        return max(cell_width(self.name), self.widest)

    @cached_property
    def least(self) -> int:
        """Width at which numbers and words are still whole."""
        head = max(map(cell_width, _parts(self.name)))
        if self.right or self.widest <= _LONG:
            return max(head, self.widest)
        words = max(cell_width(word) for text in self.texts for word in (text or NULL).split(" "))
        return max(head, _LONG, words)


def lines(cells: Cells, width: int | None, *, rule: str = "─", upright: bool = False) -> Iterator[Line]:
    """The table as lines, at most `width` wide where that can be; None is as wide as it gets.

    `upright`: a single row stands as names and values even where it would fit.
    """
    columns = [
        Column(printable(name), to_text(values, kind), kind == "number")
        for name, values, kind in zip(cells.names, cells.columns, cells.kinds, strict=True)
    ]
    yield from _title(cells, width)
    if not columns:
        return
    one = cells.n_rows == 1
    fits = width is None or _fits([column.natural for column in columns], width)
    if one and (upright or not fits):
        yield from _vertical(columns, width)
        return
    if width is None or fits or (cells.n_rows and _least_fit(columns, width)):
        yield from _block(columns, width, rule)
        return
    if not cells.n_rows:
        yield from _wrapped(f"No rows, of columns {', '.join(column.name for column in columns)}.", width, "dim")
        return
    constant, varying = _split_constant(columns)
    if constant:
        yield from _wrapped(_said(constant), width, "dim")
        yield []
    for i, block in enumerate(_blocks(varying, 1, width)):
        if i:
            yield []
        yield from _block(block, width, rule)


def matrix_lines(
    cells: Cells, width: int | None, *, labels: int, shade: Shade | None = None, rule: str = "─"
) -> Iterator[Line]:
    """A square matrix as lines: `labels` leading columns, then one column per row.

    Where the names of the columns do not fit, rows and columns are numbered alike, and long names of the rows stand in
    a list before the numbers. `shade` gives a value's style.
    """
    heads = [
        Column(printable(name), to_text(values, kind), kind == "number")
        for name, values, kind in list(zip(cells.names, cells.columns, cells.kinds, strict=True))[:labels]
    ]
    body = [
        Column(printable(name), _fixed(values), True, None if shade is None else _shades(values, shade))
        for name, values in list(zip(cells.names, cells.columns, strict=True))[labels:]
    ]
    yield from _title(cells, width)
    natural = [column.natural for column in (*heads, *body)]
    gap = _GAP if width is None or _fits(natural, width) else _NARROW
    if width is None or _fits(natural, width, gap):
        yield from _block([*heads, *body], width, rule, gap)
        return
    number = Column("#", [str(i) for i in range(1, cells.n_rows + 1)], True)
    numbered = [replace(column, name=str(i)) for i, column in enumerate(body, start=1)]
    if heads[0].natural > _LONG:
        yield from _block([number, heads.pop(0)], width, rule)
        yield []
    for i, block in enumerate(_blocks([number, *heads, *numbered], 1 + len(heads), width, _NARROW)):
        if i:
            yield []
        yield from _block(block, width, rule, _NARROW)


def prose(title: str, texts: Iterable[str], width: int | None) -> Iterator[Line]:
    """A title, and under it texts as points of a list."""
    yield from _wrapped(printable(title), width, "bold")
    for text in texts:
        for i, part in enumerate(_wrap(printable(text), None if width is None else width - 2)):
            yield [("  " if i else "- ", ""), (part, "")]


def _vertical(columns: Sequence[Column], width: int | None) -> Iterator[Line]:
    """One row, a line per column: its name and its value."""
    head = max((cell_width(column.name) for column in columns), default=0)
    for column in columns:
        text = column.texts[0]
        room = None if width is None else max(_LONG, width - head - _GAP)
        for i, part in enumerate(_wrap(text or NULL, room)):
            name = column.name if i == 0 else ""
            yield [(_pad(name, head + _GAP, False), "bold"), (part, "dim" if text is None else "")]


def cell_width(text: str) -> int:
    """Columns of the terminal that a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _title(cells: Cells, width: int | None) -> Iterator[Line]:
    if cells.title:
        yield from _wrapped(printable(cells.title), width, "bold")
        yield []


def _wrapped(text: str, width: int | None, style: str) -> Iterator[Line]:
    for part in _wrap(text, width):
        yield [(part, style)]


def _fits(widths: Sequence[int], width: int, gap: int = _GAP) -> bool:
    return sum(widths) + gap * (len(widths) - 1) <= width


def _least_fit(columns: Sequence[Column], width: int, gap: int = _GAP) -> bool:
    return _fits([column.least for column in columns], width, gap)


def _split_constant(columns: Sequence[Column]) -> tuple[list[Column], list[Column]]:
    """Columns but the first that say the same in every row, and the others."""
    constant = [column for column in columns[1:] if len(column.texts) > 1 and len(set(column.texts)) == 1]
    return constant, [column for column in columns if all(column is not other for other in constant)]


def _said(constant: Sequence[Column]) -> str:
    """What every row has in common, in words."""
    known = "; ".join(f"{column.name} {column.texts[0]}" for column in constant if column.texts[0] is not None)
    empty = ", ".join(column.name for column in constant if column.texts[0] is None)
    parts = [f"In every row: {known}." if known else "", f"No row has a value of {empty}." if empty else ""]
    return " ".join(filter(None, parts))


def _blocks(columns: Sequence[Column], keys: int, width: int, gap: int = _GAP) -> Iterator[list[Column]]:
    """Cut into blocks that fit, each led by the first `keys` columns and with one column more at least."""
    lead, rest = list(columns[:keys]), list(columns[keys:])
    block = list(lead)
    for column in rest:
        if len(block) > keys and not _least_fit([*block, column], width, gap):
            yield block
            block = list(lead)
        block.append(column)
    yield block


def _widths(columns: Sequence[Column], width: int | None, gap: int) -> list[int]:
    """Each column's width: natural if that fits, else its least and its part of what is left over or missing."""
    natural = [column.natural for column in columns]
    if width is None or _fits(natural, width, gap):
        return natural
    found = [column.least for column in columns]
    spare = width - sum(found) - gap * (len(found) - 1)
    texts_first = sorted(range(len(columns)), key=lambda i: columns[i].right)
    for i in texts_first:
        more = max(min(spare, natural[i] - found[i]), min(0, _LONG - found[i]))  # one column too wide: its words break
        found[i] += more
        spare -= more
    return found


def _block(columns: Sequence[Column], width: int | None, rule: str, gap: int = _GAP) -> Iterator[Line]:
    widths = _widths(columns, width, gap)
    heads = [_broken(column.name, w) for column, w in zip(columns, widths, strict=True)]
    height = max(map(len, heads))
    for level in range(height):
        line = []
        for column, head, w in zip(columns, heads, widths, strict=True):
            blank = height - len(head)  # names stand on the rule
            line.append((head[level - blank] if level >= blank else "", w, column.right, "bold"))
        yield _joined(line, gap)
    yield [((" " * gap).join(rule * w for w in widths), "dim")]
    for row in range(len(columns[0].texts)):
        yield from _row(columns, widths, row, gap)


def _row(columns: Sequence[Column], widths: Sequence[int], row: int, gap: int) -> Iterator[Line]:
    parts: list[tuple[list[str], int, bool, str]] = []
    for column, w in zip(columns, widths, strict=True):
        text = column.texts[row]
        style = "dim" if text is None else "" if column.styles is None else column.styles[row]
        parts.append((_wrap(text or (NULL if text is None else ""), w) or [""], w, column.right, style))
    for level in range(max(len(texts) for texts, *_ in parts)):  # one, where nothing wraps
        yield _joined(
            [(texts[level] if level < len(texts) else "", w, right, style) for texts, w, right, style in parts], gap
        )


def _joined(cells: Sequence[tuple[str, int, bool, str]], gap: int) -> Line:
    """Cells side by side; a style covers its cell and, where it is a shade, nothing of the gap."""
    line: Line = []
    for i, (text, width, right, style) in enumerate(cells):
        padded = _pad(text, width, right)
        last = i == len(cells) - 1
        line.append((padded.rstrip() if last and not style else padded, style))
        if not last:
            line.append((" " * gap, ""))
    return line


def _pad(text: str, width: int, right: bool) -> str:
    space = " " * max(0, width - cell_width(text))
    return space + text if right else text + space


def _parts(name: str) -> list[str]:
    """Where a column's name may break: after underscores and at spaces."""
    return re.findall(r"[^_ ]+_*|_+", name) or [name]


def _broken(name: str, width: int) -> list[str]:
    """A column's name on as many lines as it needs."""
    if cell_width(name) <= width:
        return [name]
    found: list[str] = []
    for part in _parts(name):
        if found and cell_width(found[-1]) + cell_width(part) <= width:
            found[-1] += part
        else:
            found.append(part)
    return found


def _wrap(text: str, width: int | None) -> list[str]:
    if width is None or cell_width(text) <= width:
        return [text]
    if len(text) == cell_width(text):
        return textwrap.wrap(text, max(1, width), break_on_hyphens=False) or [""]
    from rich.cells import chop_cells

    return chop_cells(text, max(2, width))


def _fixed(values: Sequence[Value]) -> list[str | None]:
    """Similarities with two decimals are enough for the eye, and leave room for more columns."""
    return [
        None if value is None else f"{value + 0.0:.2f}" if isinstance(value, float) else str(value) for value in values
    ]


def _shades(values: Sequence[Value], shade: Shade) -> list[str]:
    return [shade(value) if isinstance(value, (int, float)) else "" for value in values]
