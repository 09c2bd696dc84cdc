"""Filters of a question: what they may say of circuits, and what was said."""

from __future__ import annotations

from collections.abc import Iterable
from typing import SupportsIndex, TypeAlias, TypedDict

from circuitdb.queries import arguments

Names: TypeAlias = "str | Iterable[str] | None"
Numbers: TypeAlias = "SupportsIndex | Iterable[SupportsIndex] | None"

FILTERS = {  # the keys of Where, as named in sentences, and their parameters in selection.sql
    "model": ("model", "models"),
    "task": ("task", "tasks"),
    "subtask": ("subtask", "subtasks"),
    "origin": ("origin", "origins"),
    "method": ("method", "methods"),
    "steps": ("number of steps", "steps"),
    "grid": ("grid", "grids"),
    "metric": ("metric", "metrics"),
    "positions": ("choice of positions", "positions"),
    "contrast": ("contrast", "contrasts"),
    "ablation": ("ablation", "ablations"),
    "prompt_style": ("prompt style", "prompt_styles"),
    "shots": ("number of shots", "shots"),
    "shots_drawn": ("way of drawing shots", "shots_drawn"),
    "reasoning_tokens": ("limit of reasoning tokens", "reasoning_tokens"),
    "chat": ("choice of chat template", "chats"),
    "seed": ("seed", "seeds"),
    "examples": ("number of examples", "examples"),
    "dtype": ("number format", "dtypes"),
    "circuits": ("circuit", "circuits"),
}
_NUMBERS = {
    "steps": 32,
    "shots": 32,
    "reasoning_tokens": 32,
    "seed": 64,
    "examples": 32,
    "circuits": 32,
}  # and the bits of their columns


class Where(TypedDict, total=False):
    """Filters: a name or several, a number or several; None or nothing lets all circuits through.

    `model` is a name, which several models may have, or one of those as answers show it (name@1a2b3c4d).
    `examples` counts those that were drawn for a circuit, scored or skipped; `chat` is yes or no.
    """

    model: Names
    task: Names
    subtask: Names
    origin: Names
    method: Names
    steps: Numbers
    grid: Names
    metric: Names
    positions: Names
    contrast: Names
    ablation: Names
    prompt_style: Names
    shots: Numbers
    shots_drawn: Names
    reasoning_tokens: Numbers
    chat: Names
    seed: Numbers
    examples: Numbers
    dtype: Names
    circuits: Numbers


def wanted(where: Where) -> dict[str, tuple[int | str, ...]]:
    """The filters that were given, each as a tuple; an empty one is none.

    Raises UsageError for a filter of the wrong type: left out, it would make an answer about all circuits.
    """
    asked: dict[str, tuple[int | str, ...]] = {}
    for key, values in where.items():
        if key not in FILTERS:
            raise TypeError(f"There is no filter {key!r}; filters are {', '.join(FILTERS)}.")
        if given := arguments.several(FILTERS[key][0], values, numbers=key in _NUMBERS):
            asked[key] = given
    return asked


def fits(field: str, value: int | str) -> bool:
    """Whether a column could have this value: a number too large for it is that of no circuit."""
    return isinstance(value, str) or -(2 ** (_NUMBERS[field] - 1)) <= value < 2 ** (_NUMBERS[field] - 1)
