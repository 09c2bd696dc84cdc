"""Prompts of auto-circuit: `{"prompts": [{"clean", "corrupt", "answers", "wrong_answers"}]}`.

Of several answers the first is scored, and each is right; of several wrong ones the first is taken. An answer has the
space before it in itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from circuitdb.errors import UsageError
from circuitdb.ingest.tasks.files.sheet import Line, Sheet

KEY = "prompts"
_COLUMNS = ("clean", "corrupted", "answer", "corrupted_answer")
_THEIRS = ("clean", "corrupt", "answers", "wrong_answers")


def sheet_of(path: Path, value: Mapping[str, object]) -> Sheet:
    """The prompts as rows, counted from one. Raises UsageError."""
    prompts = value[KEY]
    if not isinstance(prompts, list) or not prompts:
        raise UsageError(f"{path.name}, row 1: {KEY} is no list of prompts.")
    lines = tuple(
        Line(number, _values(path, number, prompt), _others(prompt), _choices(prompt))
        for number, prompt in enumerate(prompts, start=1)
    )
    ignored = [name for name in value if name != KEY]
    return Sheet(path.name, _COLUMNS, lines, typed=True, own_gap=True, ignored=tuple(ignored))


def _others(prompt: Mapping[str, object]) -> tuple[str, ...]:
    """The answers after the first."""
    answers = prompt.get("answers")
    return tuple(text.strip() for text in answers[1:] if isinstance(text, str)) if isinstance(answers, list) else ()


def _choices(prompt: Mapping[str, object]) -> tuple[str, ...]:
    """All answers, right and wrong."""
    given = [prompt["answers"], prompt["wrong_answers"]]
    answers = [text for one in given for text in (one if isinstance(one, list) else [one]) if isinstance(text, str)]
    return tuple(dict.fromkeys(text.strip() for text in answers if text.strip()))


def _values(path: Path, number: int, prompt: object) -> tuple[object, ...]:
    where = f"{path.name}, row {number}"
    if not isinstance(prompt, dict):
        raise UsageError(f"{where}: it is no object with clean, corrupt, answers and wrong_answers.")
    found: list[object] = []
    for name in _THEIRS:
        if name not in prompt:
            raise UsageError(f"{where}: it has no {name}.")
        given = prompt[name]
        if name.endswith("answers"):
            given = given[0] if isinstance(given, list) and given else given
        if not isinstance(given, str):
            raise UsageError(f"{where}: {name} is no text; a prompt of token ids is not read.")
        found.append(given or None)
    return tuple(found)
