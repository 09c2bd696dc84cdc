"""Examples of BIG-bench: `{"examples": [{"input", "target" or "target_scores"}]}`.

A prompt is what BIG-bench shows the model for one example: the input between the file's example_input_prefix and
example_output_prefix, or between `Q: ` and `A:` where it has none. The answer is the target, or the
one of the highest score; of several targets the first is scored, and each is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from circuitdb.errors import UsageError
from circuitdb.ingest.tasks.files.sheet import Line, Sheet

KEY = "examples"
_INPUT_PREFIX, _OUTPUT_PREFIX = "\nQ: ", "\nA: "


def sheet_of(path: Path, value: Mapping[str, object]) -> Sheet:
    """The examples as rows, counted from one. Raises UsageError."""
    examples = value[KEY]
    if not isinstance(examples, list) or not examples:
        raise UsageError(f"{path.name}, row 1: {KEY} is no list of examples.")
    before = _text(value, "example_input_prefix", _INPUT_PREFIX).lstrip("\n")
    after = _text(value, "example_output_prefix", _OUTPUT_PREFIX)
    lines = tuple(
        Line(number, _values(path, number, example, before, after), _others(example), _choices(example))
        for number, example in enumerate(examples, start=1)
    )
    name = value.get("name")
    ignored = ("task_prefix",) if value.get("task_prefix") else ()
    return Sheet(
        path.name,
        ("prompt", "answer"),
        lines,
        typed=True,
        own_gap=True,
        ignored=ignored,
        name=name if isinstance(name, str) else None,
    )


def _text(value: Mapping[str, object], name: str, default: str) -> str:
    found = value.get(name, default)
    return found if isinstance(found, str) else default


def _others(example: Mapping[str, object]) -> tuple[str, ...]:
    """The targets after the first."""
    targets = example.get("target")
    return tuple(text.strip() for text in targets[1:] if isinstance(text, str)) if isinstance(targets, list) else ()


def _choices(example: Mapping[str, object]) -> tuple[str, ...]:
    """The answers that scores are given for, the right one among them."""
    scores = example.get("target_scores")
    return tuple(dict.fromkeys(text.strip() for text in scores if text.strip())) if isinstance(scores, dict) else ()


def _values(path: Path, number: int, example: object, before: str, after: str) -> tuple[object, ...]:
    where = f"{path.name}, row {number}"
    if not isinstance(example, dict) or not isinstance(example.get("input"), str):
        raise UsageError(f"{where}: it has no input that is text.")
    asked, answer = example["input"], example.get("target")
    if isinstance(answer, list) and answer:
        answer = answer[0]
    scores = example.get("target_scores")
    if answer is None and isinstance(scores, dict) and scores:
        if not all(isinstance(score, int | float) for score in scores.values()):
            raise UsageError(f"{where}: its target_scores are no numbers.")
        answer = max(scores, key=lambda choice: float(scores[choice]))
    if not isinstance(answer, str):
        raise UsageError(f"{where}: it has neither a target that is text nor target_scores.")
    return (f"{before}{asked}{after}" if asked.strip() else None, answer if answer.strip() else None)
