"""Standard error: notes, warnings and errors, one sentence each, and the exit codes."""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import sys
import textwrap
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

import typer

from circuitdb.errors import CircuitdbError, SchemaUpgraded

OK = 0
FAILED = 1
USAGE = 2
INTERRUPTED = 130

_UNSEEN = re.compile(r"[\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_BOLD_RED, _YELLOW, _CYAN = "1;31", "33", "36"


class _Closed(io.StringIO):
    """Standard output where the caller has closed it (`>&-`)."""

    def write(self, text: str, /) -> int:
        raise OSError(errno.EBADF, "it is closed", "standard output")


def notes(texts: Iterable[str]) -> None:
    """Remarks on an answer that stands."""
    for text in texts:
        _say("Note", text, _CYAN)


def warning(text: str) -> None:
    """Something that went otherwise than asked, though not so far that the command fails."""
    _say("Warning", text, _YELLOW)


@contextmanager
def upgrades_told() -> Iterator[None]:
    """Within it, that a file of an older schema is brought to this version's is a note."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", SchemaUpgraded)
        others = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, SchemaUpgraded):
                notes([str(message)])
            else:
                others(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


def error(text: str) -> None:
    """Why the command failed, and what to do."""
    _say("Error", text, _BOLD_RED)


def report(failure: BaseException) -> int:
    """Say what went wrong in one sentence and return the exit code.

    An error of ours or of the operating system says it itself. Any other is a fault of circuitdb or of something below
    it: its type and message are named. CIRCUITDB_DEBUG=1 shows the traceback of each.
    """
    if isinstance(failure, KeyboardInterrupt) or str(failure) == "Query interrupted":  # DuckDB's own word for it
        return INTERRUPTED
    debug = os.environ.get("CIRCUITDB_DEBUG", "") not in ("", "0")
    if debug:
        traceback.print_exception(failure)
    if isinstance(failure, CircuitdbError):
        error(str(failure))
        return failure.exit_code
    if isinstance(failure, OSError) and failure.strerror:
        error(": ".join(map(str, filter(None, (failure.filename, failure.strerror)))) + ".")
        return FAILED
    message = " ".join(str(failure).split()).rstrip(".")
    hint = "" if debug else "; set CIRCUITDB_DEBUG=1 for the traceback"
    error(f"{type(failure).__name__}: {message or 'no message'}{hint}.")
    return FAILED


def misuse(failure: typer.TyperException) -> int:
    """Say what is wrong with the command line, and where its help is; return the exit code."""
    context = getattr(failure, "ctx", None)
    where = "circuitdb" if context is None else context.command_path
    message = failure.format_message().replace("Value error, ", "").rstrip(".")
    if message.startswith("No such option") and context is not None and context.parent is None:
        message += "; options follow the command"
    error(f"{message}{' See' if message.endswith('?') else '; see'} `{where} --help`.")
    return failure.exit_code


def prepare_streams() -> None:
    """Let characters that an old terminal can't show be written as their codes instead of failing.

    A closed stream is put in its place: nothing else may be opened under its number, and a write to it must be told.
    """
    if sys.stdout is None or sys.stderr is None:
        for number in range(3):
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDWR)  # the lowest free number
        sys.stdout = sys.stdout or _Closed()
        sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def colour(stream: object) -> bool:
    """Whether a stream takes colour: a terminal, unless NO_COLOR is set or TERM is dumb; FORCE_COLOR insists."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return terminal(stream) and os.environ.get("TERM", "") != "dumb"


def terminal(stream: object) -> bool:
    """Whether a stream is a person's terminal."""
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty())


def _say(word: str, text: str, code: str) -> None:
    # Without control characters, or those that turn letters around: names may come out of a database by somebody else.
    lines = [
        _UNSEEN.sub("", re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", line)) for line in f"{word}: {text.strip()}".splitlines()
    ]
    if terminal(sys.stderr) and len(lines) == 1:  # more lines point at a place in the user's SQL
        width = max(20, shutil.get_terminal_size().columns)
        lines = textwrap.wrap(lines[0], width, break_long_words=False, break_on_hyphens=False)
    whole = "\n".join(lines)
    if colour(sys.stderr):
        whole = f"\x1b[{code}m{word}:\x1b[0m{whole[len(word) + 1 :]}"
    sys.stderr.write(whole + "\n")
    sys.stderr.flush()
