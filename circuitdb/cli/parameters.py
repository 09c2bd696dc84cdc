"""Options that are made by the dozen: each function gives one, as typer finds it in the signature of a command."""

from __future__ import annotations

import inspect
from enum import StrEnum
from typing import Annotated

import typer


def parameter(name: str, annotation: object, default: object) -> inspect.Parameter:
    """Any option."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def choice(name: str, one: type[StrEnum], default: StrEnum, text: str) -> inspect.Parameter:
    """One of several words."""
    return parameter(name, Annotated[one, typer.Option(f"--{name}", help=text)], default)


def choices(name: str, one: type[StrEnum], text: str) -> inspect.Parameter:
    """Some of several words."""
    option = typer.Option(f"--{name}", metavar=f"<{'|'.join(one)}>", help=f"{text}; may be repeated.")
    return parameter(name, Annotated[list[one] | None, option], None)  # type: ignore[valid-type]


def flag(name: str, text: str) -> inspect.Parameter:
    """Yes, or no."""
    return parameter(name, Annotated[bool, typer.Option(f"--{name}", help=text)], False)


def names(value: object) -> list[str] | None:
    """What a repeated option was given, as texts; None where it was not given."""
    return [str(name) for name in value] if isinstance(value, (list, tuple)) and value else None


def numbers(value: object) -> list[int] | None:
    """What a repeated option was given, as numbers; None where it was not given."""
    return [int(number) for number in value] if isinstance(value, (list, tuple)) and value else None
