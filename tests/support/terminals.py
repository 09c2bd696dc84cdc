"""Runs the command line as a user does, in a process of its own, and reads what it printed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Cli: TypeAlias = "Callable[..., Run]"  # as the fixture `cli`: its arguments are those of circuitdb

MAIN = "import sys; from circuitdb.cli.main import main; sys.exit(main())"
_SETTINGS = ("CIRCUITDB", "CIRCUITDB_DEBUG", "COLUMNS", "NO_COLOR", "FORCE_COLOR")
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Run:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def table(self) -> list[dict[str, str]]:
        """The only table of the output."""
        (only,) = tables(self.out)
        return only


def environment(**changes: str) -> dict[str, str]:
    """This process's environment without the settings of the command line, but with `changes`."""
    kept = {key: value for key, value in os.environ.items() if key not in _SETTINGS}
    return {**kept, **changes}


def run(
    arguments: Sequence[str],
    folder: Path,
    *,
    code: str = MAIN,
    settings: Mapping[str, str] | None = None,
    given: str | None = None,
) -> subprocess.CompletedProcess[str]:
    """`circuitdb ARGUMENTS` in `folder`, its output through pipes; `code` is what Python runs."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=environment(**(settings or {})),
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def run_in_terminal(
    arguments: Sequence[str], folder: Path, *, columns: int = 80, settings: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """(exit code, what a terminal of so many columns got) of `circuitdb ARGUMENTS`."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *arguments],
        cwd=folder,
        env=environment(**{"TERM": "xterm-256color", "COLORTERM": "truecolor", **(settings or {})}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    chunks = []
    with suppress(OSError):  # Linux's word for: the other side has closed
        while chunk := os.read(ours, 1 << 16):
            chunks.append(chunk)
    os.close(ours)
    code = process.wait(timeout=120)
    return code, b"".join(chunks).decode().replace("\r\n", "\n")


def without_style(text: str) -> str:
    """Text without the escapes of colour and weight."""
    return _ESCAPE.sub("", text)


def tables(text: str) -> list[list[dict[str, str]]]:
    """The tables in a text, each row a dict; a rule under the names tells where the columns are."""
    found: list[list[dict[str, str]]] = []
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if not re.fullmatch(r"─+( +─+)*", line):
            continue
        spans = [match.span() for match in re.finditer("─+", line)]
        names = [lines[i - 1][start:stop].strip() for start, stop in spans]
        rows = []
        for row in lines[i + 1 :]:
            if not row.strip() or re.match(r"[A-Z][a-z]+: ", row):
                break
            rows.append(dict(zip(names, (row[start:stop].strip() for start, stop in spans), strict=True)))
        found.append(rows)
    return found
