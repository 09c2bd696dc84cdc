"""The studies by name."""

from __future__ import annotations

from circuitdb.errors import UsageError
from circuitdb.ingest.studies import arithmetic, boolean, sports
from circuitdb.ingest.studies.condition import Study

STUDIES: dict[str, Study] = {study.name: study for study in (arithmetic.STUDY, boolean.STUDY, sports.STUDY)}


def find(name: str) -> Study:
    """The study of that name. Raises UsageError, naming those there are."""
    if name not in STUDIES:
        raise UsageError(f"There is no study {name!r}; choose one of {', '.join(STUDIES)}.")
    return STUDIES[name]
