"""What a caller may ask in one go: which circuits, and how they are to be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from circuitdb.queries.comparison import Compared, Comparison
from circuitdb.queries.selection import Where


class Asked(Where, Compared, total=False):
    """Filters of circuits (`Where`), and the coefficient and edges of a comparison (`Compared`)."""


def parted(asked: Mapping[str, object]) -> tuple[Where, Comparison]:
    """The filters, and the comparison checked. Raises UsageError for a value that there is not."""
    names = Compared.__annotations__
    where = {key: value for key, value in asked.items() if key not in names}
    return cast("Where", where), Comparison.of({key: value for key, value in asked.items() if key in names})
