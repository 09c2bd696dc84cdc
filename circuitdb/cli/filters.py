"""The options that choose circuits, for `circuitdb.cli.options.question`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer

from circuitdb.cli import parameters
from circuitdb.errors import UsageError

if TYPE_CHECKING:
    from circuitdb.queries.filters import Where

_NAMES = {  # keyword of the library: which circuits it leaves
    "model": "circuits of this model",
    "task": "circuits of this task",
    "subtask": "circuits of this subtask",
    "origin": "circuits of this origin: ingest, or the tool whose files they were imported from",
    "method": "circuits of this method",
    "grid": "circuits of this integration grid",
    "metric": "circuits of this metric",
    "positions": "circuits of these positions",
    "contrast": "circuits of this contrast",
    "ablation": "circuits of this ablation",
    "prompt_style": "circuits of this prompt style",
    "shots_drawn": "circuits whose shots are fixed, or per-example",
    "chat": "circuits of prompts through a chat template, yes or no",
    "dtype": "circuits that were scored in this type",
}
_NUMBERS = {
    "steps": "circuits of so many integration steps",
    "shots": "circuits of so many shots",
    "reasoning_tokens": "circuits of at most so many tokens of reasoning",
    "seed": "circuits of this seed",
    "examples": "circuits of so many examples, scored or skipped",
    "circuits": "this circuit",
}


def where(values: Mapping[str, object]) -> Where:
    """The filters of a question, as keywords of the library."""
    found = {
        **{key: parameters.names(values.get(_option(key))) for key in _NAMES},
        **{key: parameters.numbers(values.get(_option(key))) for key in _NUMBERS},
    }
    return cast("Where", found)


def from_texts(option: str, given: Sequence[str]) -> Where:
    """The filters from FILTER=VALUE, as an option has them. Raises UsageError."""
    keys = {_option(key): key for key in (*_NAMES, *_NUMBERS)}
    found: dict[str, list[str | int]] = {}
    for text in given:
        name, equals, value = text.partition("=")
        name = name.removeprefix("--").replace("-", "_")
        if not equals or name not in keys:
            raise UsageError(
                f"{option} is a filter and its value, such as shots=0, not {text}; filters are {', '.join(keys)}."
            )
        if keys[name] in _NAMES:
            found.setdefault(keys[name], []).append(value)
        elif value.removeprefix("-").isdecimal():
            found.setdefault(keys[name], []).append(int(value))
        else:
            raise UsageError(f"{option} {name} is a whole number, not {value or 'nothing'}.")
    return cast("Where", found)


def _option(key: str) -> str:
    """What the option of a filter is called: circuits are named one by one."""
    return "circuit" if key == "circuits" else key


def _filter(key: str, which: str, one: type[str] | type[int], metavar: str) -> inspect.Parameter:
    name = _option(key)
    option = typer.Option(f"--{name.replace('_', '-')}", metavar=metavar, help=f"Only {which}; may be repeated.")
    return parameters.parameter(name, Annotated[list[one] | None, option], None)  # type: ignore[valid-type]


FILTERS = [
    *(_filter(key, which, str, "NAME") for key, which in _NAMES.items()),
    *(_filter(key, which, int, "ID" if key == "circuits" else "N") for key, which in _NUMBERS.items()),
]
