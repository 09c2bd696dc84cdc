"""Worked reasoning in one line, as it stands in solved questions before the one that the model is to reason about.

Sums and differences go digit by digit from the ones, with what is carried or borrowed; products and quotients by place
value; boolean expressions are rewritten, what binds closest first, until a value is left.
"""

from __future__ import annotations

import re
from itertools import zip_longest

# Operators from the one that binds closest; each rewrites all that it can at once.
_NOT = re.compile(r"\b(?:not )+(True|False)\b")
_AND = re.compile(r"\b(?:True|False)(?: and (?:True|False))+\b")
_OR = re.compile(r"\b(?:True|False)(?: or (?:True|False))+\b")
_GROUP = re.compile(r"\( ([^()]*) \)")


def arithmetic(a: int, operator: str, b: int) -> str:
    """The steps of `a operator b`; a difference is not negative, a division exact."""
    if operator == "+":
        steps = _sum(a, b)
    elif operator == "-":
        steps = _difference(a, b)
    elif operator == "*":
        steps = _product(a, b, by_first=len(_places(b)) == 1)
    else:
        steps = _product(b, a // b, by_first=False)
    return f"{', '.join(steps)}."


def boolean(expression: str) -> str:
    """An expression and its rewritings, down to its value."""
    forms = [expression]
    while forms[-1] not in ("True", "False"):
        forms.append(_rewritten(forms[-1]))
    return f"{' = '.join(forms)}."


def _digits(number: int) -> list[int]:
    """From the ones."""
    return [int(digit) for digit in reversed(str(number))]


def _sum(a: int, b: int) -> list[str]:
    steps, carried = [], 0
    for x, y in zip_longest(_digits(a), _digits(b), fillvalue=0):
        total = x + y + carried
        steps.append(f"{x} + {y}{' + 1' * carried} = {total}")
        carried = total // 10
    return steps


def _difference(a: int, b: int) -> list[str]:
    steps, borrowed = [], 0
    for x, y in zip_longest(_digits(a), _digits(b), fillvalue=0):
        lent = x < y + borrowed
        steps.append(f"{'1' * lent}{x} - {y}{' - 1' * borrowed} = {10 * lent + x - y - borrowed}")
        borrowed = int(lent)
    return steps


def _product(a: int, b: int, *, by_first: bool) -> list[str]:
    """By the places of `a` or of `b`."""
    parts = [(place, b) if by_first else (a, place) for place in _places(a if by_first else b)]
    steps = [f"{x} * {y} = {x * y}" for x, y in parts]
    if len(parts) > 1:
        steps.append(f"{' + '.join(str(x * y) for x, y in parts)} = {a * b}")
    return steps


def _places(number: int) -> list[int]:
    """406 is 400 and 6; 0 is itself."""
    return [digit * 10**place for place, digit in reversed(list(enumerate(_digits(number)))) if digit] or [0]


def _rewritten(form: str) -> str:
    """The innermost parentheses with their values; without parentheses all of what binds closest."""
    if "(" in form:
        return _GROUP.sub(lambda found: _valued(found[1]), form)
    if "not" in form:
        return _NOT.sub(lambda found: str((found[0].count("not") % 2 == 0) == (found[1] == "True")), form)
    if "and" in form:
        return _AND.sub(lambda found: str("False" not in found[0]), form)
    return _OR.sub(lambda found: str("True" in found[0]), form)


def _valued(form: str) -> str:
    while form not in ("True", "False"):
        form = _rewritten(form)
    return form
