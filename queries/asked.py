"""What a caller may ask in one go: which circuits, and how they are to be compared or cut."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import cast

from circuitdb.queries.comparison import Compared, Comparison
from circuitdb.queries.cuts import Cut, Cutting
from circuitdb.queries.filters import Where


class Asked(Where, Compared, total=False):
    """Filters of circuits (`Where`), and the coefficient and edges of a comparison (`Compared`)."""


class Cuttable(Where, Cutting, total=False):
    """Filters of circuits (`Where`), and how these are cut to hard ones (`Cutting`)."""


def parted(asked: Mapping[str, object]) -> tuple[Where, Comparison]:
    """The filters, and the comparison checked. Raises UsageError for a value that there is not."""
    where, compared = _split(asked, Compared.__annotations__)
    return where, Comparison.of(compared)


def parted_cut(asked: Mapping[str, object]) -> tuple[Where, Cut]:
    """The filters, and the cut checked. Raises UsageError for one that there is not."""
    where, cutting = _split(asked, Cutting.__annotations__)
    return where, Cut.of(**cast("Cutting", cutting))


def _split(asked: Mapping[str, object], names: Container[str]) -> tuple[Where, dict[str, object]]:
    """(the filters, what has one of these names)."""
    where = {key: value for key, value in asked.items() if key not in names}
    return cast("Where", where), {key: value for key, value in asked.items() if key in names}
