"""Two conditions that circuits are of, and how their labels can be exchanged and their subtasks resampled.

Where a subtask is there in both conditions its labels are exchanged within it; the others exchange theirs with each
other. So every relabelling has as many circuits in each condition, of the same subtasks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from circuitdb.errors import UsageError
from circuitdb.queries import resampling
from circuitdb.queries.pairing import Mask, Matrix
from circuitdb.queries.partition import GROUP_FIELDS, Value, value_of
from circuitdb.queries.resampling import SEED
from circuitdb.queries.result import count, enumeration
from circuitdb.queries.selection import Member, Selection

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Conditions:
    """Which circuit is of the first condition, and its unit: what is exchanged and resampled.

    Attributes:
        names: of the two conditions.
        first: [circuit], True for the first.
        unit: [circuit], a number of its subtask, that of both conditions where they have it in common.
    """

    names: tuple[str, str]
    first: Mask
    unit: Places

    @property
    def shared(self) -> Mask:
        """[unit]: whether it is there in both conditions."""
        n = int(self.unit.max(initial=-1)) + 1
        return (np.bincount(self.unit, self.first, n) > 0) & (np.bincount(self.unit, ~self.first, n) > 0)

    @property
    def relabellings(self) -> int:
        """How many different ones there are."""
        both = self.shared
        ways = 1
        for unit in np.flatnonzero(both):
            mine = self.first[self.unit == unit]
            ways *= math.comb(len(mine), int(mine.sum()))
        alone = np.array([self.first[self.unit == unit][0] for unit in np.flatnonzero(~both)], bool)
        return ways * math.comb(len(alone), int(alone.sum()))

    @property
    def least_p(self) -> float:
        """The smallest share of the relabellings that can be as extreme as the actual one.

        Where the opposite of a relabelling is one too it is as extreme: the difference is the other way round, of equal
        size, and the separation is the same.
        """
        both = self.shared
        sides = [self.first[self.unit == unit] for unit in range(len(both))]
        even = all(2 * mine.sum() == len(mine) for mine, shared in zip(sides, both, strict=True) if shared)
        alone = [bool(mine[0]) for mine, shared in zip(sides, both, strict=True) if not shared]
        return (2 if even and 2 * sum(alone) == len(alone) else 1) / self.relabellings


def conditions(selection: Selection, by: str, values: Sequence[object] = ()) -> tuple[Selection, Conditions]:
    """The circuits of two values of a parameter or field, and how they pair. Raises UsageError for none or one.

    Without `values` those circuits are left out, with a note, whose task has no such parameter.
    """
    found = [value_of(member, by) for member in selection.members]
    there = list(dict.fromkeys(map(_named, found)))
    parameters = list(dict.fromkeys(_named(value) for value in found if value is not None))
    wanted = list(dict.fromkeys(str(value) for value in values)) or (there if by in GROUP_FIELDS else parameters)
    if unknown := [value for value in wanted if value not in there]:
        raise UsageError(f"No circuit has {by} {enumeration(unknown)}; there is {enumeration(there) or 'none'}.")
    if not values and len(wanted) == 1:
        raise UsageError(f"A comparison is between two values of {by}, and all of these circuits have {wanted[0]}.")
    if len(wanted) != 2:
        raise UsageError(f"A comparison is between two values of {by}; name two of {enumeration(there) or 'none'}.")
    rows = [i for i, member in enumerate(selection.members) if _named(value_of(member, by)) in wanted]
    n_lacking = 0 if "none" in wanted else found.count(None)
    left_out = f"{count(n_lacking, 'circuit has', 'circuits have')} no {by}, and are left out." if n_lacking else None
    part = replace(selection.part(rows), notes=(*selection.notes, *([left_out] if left_out else [])))
    units: dict[object, int] = {}
    unit = [units.setdefault(_unit(member, by), len(units)) for member in part.members]
    first = [_named(value_of(member, by)) == wanted[0] for member in part.members]
    return part, Conditions((wanted[0], wanted[1]), np.array(first, bool), np.array(unit, np.int64))


def relabelled(two: Conditions, n: int, seed: int = SEED) -> Matrix:
    """[relabelling, circuit]: 1 for the first condition, 0 for the second, `n` at random."""
    rng = np.random.default_rng(seed)
    labels = np.tile(two.first.astype(np.float64), (n, 1))
    shared = two.shared
    within = np.flatnonzero(shared[two.unit])
    within = within[np.argsort(two.unit[within], kind="stable")]
    if len(within):
        # In order of their units, and at random within each.
        order = np.argsort(rng.random((n, len(within))) + 2 * two.unit[within], axis=1)
        np.put_along_axis(labels, within[order], two.first[within].astype(np.float64)[None], axis=1)
    alone = np.flatnonzero(~shared)
    if len(alone):
        mine = np.array([float(two.first[two.unit == unit][0]) for unit in alone])
        exchanged = rng.permuted(np.tile(mine, (n, 1)), axis=1)
        circuits = np.flatnonzero(~shared[two.unit])
        labels[:, circuits] = exchanged[:, np.searchsorted(alone, two.unit[circuits])]
    return labels


def resampled(two: Conditions) -> Matrix:
    """[resample, circuit]: how often each counts if subtasks of both, of the first and of the second are drawn."""
    shared = two.shared
    only_first = ~shared & (np.bincount(two.unit, two.first, len(shared)) > 0)
    weights = np.zeros((resampling.RESAMPLES, len(shared)))
    for seed, kind in enumerate((shared, only_first, ~shared & ~only_first), start=SEED):
        places = np.flatnonzero(kind)
        if len(places):
            weights[:, places] = resampling.draws(len(places), seed=seed)
    return weights[:, two.unit]


def _named(value: Value) -> str:
    return "none" if value is None else str(value)


def _unit(member: Member, by: str) -> object:
    """What two circuits of different conditions have in common if they are of one subtask."""
    task = "" if by == "task" else member.group.task
    if by in GROUP_FIELDS and by not in member.parameters:
        return task, member.subtask
    others = {name: value for name, value in member.parameters.items() if name != by}
    return (task, *sorted(others.items())) if others else (task, member.subtask)
