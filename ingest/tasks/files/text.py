"""A file's bytes as text: UTF-8, with or without its mark, and where it is something else, what and where."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from pathlib import Path

from circuitdb.errors import UsageError

_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
# Without a mark UTF-16 shows by its zero bytes: in Latin letters every other one; UTF-8 has none.
_LOOKED_AT = 1000


def read(path: Path, row_of: Callable[[str], int]) -> str:
    """The text with Unix line ends; `row_of` tells the row that a text ends in. Raises UsageError."""
    content = path.read_bytes()
    for mark, encoding in _MARKS.items():
        if content.startswith(mark):
            raise UsageError(
                f"{path.name}, row 1: the file is in {encoding}, as its first bytes say; save it as UTF-8."
            )
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8")
        byte = content[error.start : error.start + 1]
        meant = byte.decode("cp1252", errors="replace")
        hint = "" if meant == "\ufffd" else f", but {meant!r} in Windows-1252"
        raise UsageError(
            f"{path.name}, row {row_of(before)}: byte 0x{byte.hex()} is no UTF-8{hint}; save the file as UTF-8."
        ) from error
    if text[:_LOOKED_AT].count("\0") > len(text[:_LOOKED_AT]) // 4:
        raise UsageError(f"{path.name}, row 1: the file is in UTF-16, or no text at all; save it as UTF-8.")
    if "\0" in text:
        row = row_of(text.partition("\0")[0])
        raise UsageError(f"{path.name}, row {row}: there is a zero byte, which is no text; take it out.")
    return text.replace("\r\n", "\n")


def line_of(before: str) -> int:
    """The line that a text ends in, from one."""
    return before.count("\n") + 1
