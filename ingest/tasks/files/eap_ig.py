"""Prompts of EAP-IG: `clean, corrupted, correct_idx[, incorrect_idx]`, with token ids in the place of answers."""

from __future__ import annotations

import re
from dataclasses import replace

from circuitdb.ingest.tasks.files.sheet import Line, Sheet

KEY = "correct_idx"
_OURS = {"clean": "clean", "corrupted": "corrupted", KEY: "answer", "incorrect_idx": "corrupted_answer"}
_ID = re.compile(r"\d{1,9}")


def sheet_of(found: Sheet) -> Sheet:
    """The same rows with our names of columns; others than a subtask are left out. Raises UsageError."""
    by_name = {name.casefold(): i for i, name in enumerate(found.columns)}
    for name in ("clean", "corrupted"):
        if name not in by_name:
            raise found.error(1, f"there is no column {name} beside {KEY}.")
    ours = {name: new for name, new in {**_OURS, "subtask": "subtask"}.items() if name in by_name}
    lines = tuple(
        Line(line.number, tuple(_cell(found, line, name, by_name[name]) for name in ours)) for line in found.lines
    )
    named = Sheet(found.file, tuple(ours.values()), lines, typed=found.typed, token_ids=True)
    _refuse_years(named)
    ignored = tuple(name for name in found.columns if name.casefold() not in ours)
    return replace(named, ignored=ignored)


def _cell(found: Sheet, line: Line, name: str, place: int) -> object:
    value = line.values[place]
    if name not in (KEY, "incorrect_idx") or value is None:
        return value
    if isinstance(value, bool) or not _ID.fullmatch(str(value).strip()):
        raise found.error(line.number, f"{name} is {value!r}, which is no token id.")
    return int(str(value))


def _refuse_years(named: Sheet) -> None:
    """EAP-IG's greater-than has the last two digits of the prompt's year here: no token, but a bound for many."""
    clean, answer = named.columns.index("clean"), named.columns.index("answer")
    first = named.lines[0]
    if "corrupted_answer" not in named.columns and all(
        isinstance(number := line.values[answer], int) and re.search(rf"\d\d{number:02d}\b", str(line.values[clean]))
        for line in named.lines
    ):
        raise named.error(
            first.number,
            f"{KEY} is {first.values[answer]}, the end of the year in the prompt, as in EAP-IG's greater-than, and no "
            "token id; give a right answer in a column answer.",
        )
