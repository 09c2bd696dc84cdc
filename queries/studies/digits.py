"""The grid of digit counts: the cell (a, b) of each circuit, and families of cells in words.

A word is true of some cells, such as "equal digit counts" of (2, 2). A family is called by the word that is true of all
of its cells, of several by the one that fewest other cells have; else by the one that fits best, if it is true of three
in four; else it is mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from circuitdb.queries.families import Family
from circuitdb.queries.linkage import tree
from circuitdb.queries.pairing import Matrix
from circuitdb.queries.selection import Member

Cell = tuple[int, int]
A, B = "digits_a", "digits_b"
_WORDS: dict[str, Callable[[int, int], bool]] = {
    "equal digit counts": lambda a, b: a == b,
    "one digit apart": lambda a, b: abs(a - b) == 1,
    "equal or one digit apart": lambda a, b: abs(a - b) <= 1,
    "first operand longer": lambda a, b: a > b,
    "second operand longer": lambda a, b: b > a,
    "first operand longer by two or more": lambda a, b: a - b >= 2,
    "second operand longer by two or more": lambda a, b: b - a >= 2,
    "an operand of a single digit": lambda a, b: min(a, b) == 1,
    "first operand of a single digit": lambda a, _: a == 1,
    "second operand of a single digit": lambda _, b: b == 1,
    "both operands of several digits": lambda a, b: min(a, b) > 1,
}
_MOSTLY = 0.75


def is_cell(member: Member) -> bool:
    """Whether a subtask is a pair of digit counts."""
    return all(_is_count(member.parameters.get(name)) for name in (A, B))


def cell(member: Member) -> Cell:
    """The digit counts of a subtask that is a pair of them."""
    return int(member.parameters[A]), int(member.parameters[B])


def described(cells: Sequence[Cell], grid: Iterable[Cell]) -> str:
    """What the cells of a family have in common that others of the grid lack, in words."""
    everything = set(grid)
    if len(cells) == 1:
        return "alone"
    if set(cells) == everything:
        return "all subtasks"
    fits = {name: sum(true(*one) for one in cells) / len(cells) for name, true in _WORDS.items()}
    recall = {
        name: sum(true(*one) for one in cells) / max(sum(true(*one) for one in everything), 1)
        for name, true in _WORDS.items()
    }
    whole = [name for name, share in fits.items() if share == 1]
    if whole:
        return max(whole, key=lambda name: recall[name])
    mostly = [name for name, share in fits.items() if share >= _MOSTLY]
    if not mostly:
        return "mixed"
    best = max(mostly, key=lambda name: 2 * fits[name] * recall[name] / (fits[name] + recall[name]))
    return f"mostly {best} ({round(fits[best] * len(cells))} of {len(cells)})"


def on_grid(cells: Sequence[Cell]) -> tuple[list[int], list[int]]:
    """(rows, columns) of the grid, ascending."""
    return sorted({a for a, _ in cells}), sorted({b for _, b in cells})


def laid_out(cells: Sequence[Cell], values: Matrix) -> Matrix:
    """[row, column] of the grid from [circuit]; NaN where there is no circuit, the last where there are several."""
    rows, columns = on_grid(cells)
    found = np.full((len(rows), len(columns)), np.nan)
    for (a, b), value in zip(cells, values, strict=True):
        found[rows.index(a), columns.index(b)] = value
    return found


def lettered(cells: Sequence[Cell], families: Sequence[Family]) -> list[list[str]]:
    """[row][column] of the grid: the name of each circuit's family, empty where there is no circuit."""
    rows, columns = on_grid(cells)
    found = [["" for _ in columns] for _ in rows]
    for family in families:
        for i in family.rows:
            a, b = cells[i]
            found[rows.index(a)][columns.index(b)] = family.name
    return found


def distances(cells: Sequence[Cell]) -> Matrix:
    """[circuit, circuit]: |a - a'| + |b - b'|."""
    places = np.array(cells, np.float64).reshape(-1, 2)
    return np.asarray(np.abs(places[:, None] - places[None]).sum(axis=2))


def joined_at(values: Matrix) -> Matrix:
    """[circuit, circuit]: the highest alpha at which two circuits are of one family; NaN where they never are."""
    found = tree(values)
    members = found.members()
    result = np.full(values.shape, np.nan)
    np.fill_diagonal(result, 1.0)
    for (first, second), height in zip(found.joins.tolist(), found.heights, strict=True):
        for here, there in ((members[first], members[second]), (members[second], members[first])):
            result[np.ix_(here, there)] = height
    return result


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
