"""Boolean expressions: their value by a parser of our own, and all of a kind, counted and numbered.

Words are `True`, `False`, `not`, `and`, `or` and parentheses, with a space between them. As in Python, `not` binds
closest and `or` least. The grammar gives each text one derivation, so that derivations can be counted for texts:

    disjunction := conjunction | conjunction or disjunction
    conjunction := negation | negation and conjunction
    negation    := True | False | not negation | ( disjunction )
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import prod
from typing import NamedTuple, TypeAlias

from circuitdb.errors import TaskError

Used: TypeAlias = "frozenset[str]"


def evaluate(text: str) -> bool:
    """The value of an expression. Raises TaskError if it is none."""
    words = text.split()
    value, end = _disjunction(words, 0)
    if end < len(words):
        raise TaskError(f"{text!r} is no boolean expression: {words[end]!r} follows where it could end.")
    return value


def _disjunction(words: list[str], at: int) -> tuple[bool, int]:
    value, at = _conjunction(words, at)
    while words[at : at + 1] == ["or"]:
        other, at = _conjunction(words, at + 1)
        value = value or other
    return value, at


def _conjunction(words: list[str], at: int) -> tuple[bool, int]:
    value, at = _negation(words, at)
    while words[at : at + 1] == ["and"]:
        other, at = _negation(words, at + 1)
        value = value and other
    return value, at


def _negation(words: list[str], at: int) -> tuple[bool, int]:
    word = words[at] if at < len(words) else "its end"
    if word == "not":
        value, at = _negation(words, at + 1)
        return not value, at
    if word in ("True", "False"):
        return word == "True", at + 1
    if word == "(":
        value, at = _disjunction(words, at + 1)
        if words[at : at + 1] == [")"]:
            return value, at + 1
        word = words[at] if at < len(words) else "its end"
    raise TaskError(f"{' '.join(words)!r} is no boolean expression: there is no place for {word!r}.")


class Kind(NamedTuple):
    """Expressions of one symbol of the grammar, of so many words and pairs of parentheses, of one value.

    Every operator of `used` occurs and no other. The pairs are nested in each other, or else lie anyhow.
    """

    symbol: str
    words: int
    pairs: int
    used: Used
    value: bool
    nested: bool


def kind(operators: tuple[str, ...], words: int, pairs: int, value: bool, *, nested: bool) -> Kind:
    """All expressions of `words` words besides `pairs` pairs of parentheses."""
    return Kind("or", words, pairs, frozenset(operators), value, nested)


Derivation: TypeAlias = "tuple[str | Kind, ...]"


@cache
def count(of: Kind) -> int:
    """How many expressions there are."""
    return sum(number for number, _ in _derivations(of))


def expression(of: Kind, place: int) -> str:
    """The expression at a place from 0 to `count(of) - 1`; no two places have the same."""
    return " ".join(_words(of, place))


def _words(of: Kind, place: int) -> Iterator[str]:
    derivations = iter(_derivations(of))
    number, parts = next(derivations)
    while place >= number:
        place -= number
        number, parts = next(derivations)
    for part in parts:
        if isinstance(part, str):
            yield part
        else:
            place, own = divmod(place, count(part))
            yield from _words(part, own)


@cache
def _derivations(of: Kind) -> tuple[tuple[int, Derivation], ...]:
    """The ways to derive them, each with its number of expressions; none of which is 0."""
    found = []
    for parts in _negations(of) if of.symbol == "not" else _binary(of):
        number = prod(count(part) for part in parts if not isinstance(part, str))
        if number:
            found.append((number, parts))
    return tuple(found)


def _negations(of: Kind) -> Iterator[Derivation]:
    if of.words == 1 and not of.pairs and not of.used:
        yield (str(of.value),)
    if "not" in of.used and of.words > 1:
        for used in (of.used, of.used - {"not"}):
            yield "not", of._replace(words=of.words - 1, used=used, value=not of.value)
    if of.pairs:
        yield "(", of._replace(symbol="or", pairs=of.pairs - 1), ")"


def _binary(of: Kind) -> Iterator[Derivation]:
    """Of a disjunction or conjunction: one part alone, or two with the operator between them."""
    operator, part = of.symbol, {"or": "and", "and": "not"}[of.symbol]
    yield (of._replace(symbol=part),)
    if operator not in of.used:
        return
    values = [
        (a, b)
        for a in (False, True)
        for b in (False, True)
        if ((a or b) if operator == "or" else (a and b)) == of.value
    ]
    for words in range(1, of.words - 1):
        for pairs in range(of.pairs + 1) if not of.nested else {0, of.pairs}:
            for first, second in _covers(of.used, operator):
                for a, b in values:
                    yield (
                        of._replace(symbol=part, words=words, pairs=pairs, used=first, value=a),
                        operator,
                        of._replace(words=of.words - 1 - words, pairs=of.pairs - pairs, used=second, value=b),
                    )


@cache
def _covers(used: Used, operator: str) -> tuple[tuple[Used, Used], ...]:
    """The operators of the two sides, which with the one between them are all that are used."""
    sets: list[Used] = [frozenset()]
    for each in sorted(used):
        sets += [one | {each} for one in sets]
    return tuple((first, second) for first in sets for second in sets if first | second | {operator} == used)
