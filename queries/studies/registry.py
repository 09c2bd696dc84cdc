"""The studies by their names."""

from __future__ import annotations

import difflib
from typing import Protocol, Unpack

from circuitdb.errors import UsageError
from circuitdb.queries.database import Database
from circuitdb.queries.filters import Where
from circuitdb.queries.studies import arithmetic, boolean, sports, training
from circuitdb.queries.studies.findings import Findings


class Study(Protocol):
    """Asks a database."""

    def __call__(self, db: Database, *, on: str = "signed", **where: Unpack[Where]) -> Findings:
        """See `Database.study`."""
        ...


STUDIES: dict[str, Study] = {
    "arithmetic": arithmetic.findings,
    "boolean": boolean.findings,
    "sports": sports.findings,
    "training": training.findings,
}


def study(db: Database, name: str, *, on: str = "signed", **where: Unpack[Where]) -> Findings:
    """The findings of a study. Raises UsageError for one that there is not."""
    if name not in STUDIES:
        near = difflib.get_close_matches(name, STUDIES, n=1)
        guess = f"did you mean {near[0]}?" if near else f"there are {', '.join(STUDIES)}."
        raise UsageError(f"There is no study {name!r}; {guess}")
    return STUDIES[name](db, on=on, **where)
