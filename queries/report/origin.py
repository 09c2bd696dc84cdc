"""The sentence that says of what, and when, a report was made."""

from __future__ import annotations

from circuitdb.queries.studies.findings import Findings
from circuitdb.queries.studies.sentences import listed


def sentence(found: Findings, made: str) -> str:
    """Database, models, date and version."""
    models = found.provenance[0].table if found.provenance else None
    names = listed(models["model"].to_pylist()) if models is not None else ""
    n = sum(models["n_circuits"].to_pylist()) if models is not None else 0
    circuits = f"{n:,} {'circuit' if n == 1 else 'circuits'} of {names} in" if n else "No circuit in"
    return f"{circuits} {found.database or 'a database'}; made on {made} with circuitdb {found.version}."
