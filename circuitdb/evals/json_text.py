"""JSON as others write it: what Python's reader lets pass or fails over is a sentence that names the file."""

from __future__ import annotations

import json
import re
from pathlib import Path

from circuitdb.errors import UsageError

_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def values(path: Path) -> list[object]:
    """The values of a file: one, or one a line if it is no .json. Bare NaN and Infinity are floats.

    Raises UsageError.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not in UTF-8; save it so.") from error
    if path.suffix.lower() == ".json":
        return [parsed(text, str(path))]
    # Not splitlines(): U+2028, U+0085 and others that it takes for ends of lines may stand in a string of JSON.
    lines = enumerate(text.split("\n"), start=1)
    return [parsed(line, str(path), i) for i, line in lines if line.strip()]


def parsed(text: str, where: str, line: int | None = None) -> object:
    """One value; `line` is the line of the file that it is on, if it is on one alone. Raises UsageError."""
    there = "" if line is None else f" in line {line}"
    try:
        value: object = json.loads(text, object_pairs_hook=_once)
        if _HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        at = f"line {error.lineno if line is None else line}, column {error.colno}"
        raise UsageError(f"{where} is no valid JSON: {error.msg} at {at}.") from error
    except _Twice as error:
        raise UsageError(f"{where} has the key {error.key!r} twice in one object{there}; keep one of them.") from error
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{where} has half of a character{there}, {error.object[error.start]!r}, which is no text; write it anew."
        ) from error
    except ValueError as error:  # of integers alone: more than 4,300 digits
        raise UsageError(f"{where} has an integer of more digits than can be read{there}.") from error
    except RecursionError as error:
        raise UsageError(f"{where} is nested too deeply to be read{there}.") from error
    return value


class _Twice(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _Twice(next(key for key in keys if keys.count(key) > 1))
    return found
