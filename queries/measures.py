"""The numbers that a comparison of circuits takes most of its time for, and nothing else: what the cache keeps.

The key of what is kept is the digest of the circuits' own digests, of the question, and of the source of the modules
that answer it: nothing has to be remembered for an old answer never to come back.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from circuitdb.queries import jackknife
from circuitdb.queries.coefficients import coefficient
from circuitdb.queries.comparison import EVERY_EDGE, Comparison
from circuitdb.queries.jackknife import Deleted
from circuitdb.queries.matrix import ScoreMatrix
from circuitdb.queries.pairing import Matrix
from circuitdb.queries.reliability import reliabilities
from circuitdb.queries.selection import Selection
from circuitdb.records import Json, canonical_json

_WORTH = 1_000_000  # scores: what takes less than a tenth of a second is not kept
_SOURCES = {  # of each package, what the numbers come from
    "circuitdb": ("cuts.py", "graph.py", "sorting.py"),
    "circuitdb.queries": (
        "coefficients.py", "comparison.py", "features.py", "jackknife.py", "matrix.py", "measures.py", "pairing.py",
        "ranks.py", "reliability.py", "sql/scores.sql", "sql/fold_scores.sql",
    ),
}  # fmt: skip
_DELETED = "deleted_"


@dataclass(frozen=True)
class Measures:
    """Of circuits, or of two sets of them.

    Attributes:
        values, n_edges: [circuit, circuit], or [circuit of the first set, circuit of the second].
        halves: [circuit], how the halves of its examples agree; those of two sets one after the other.
        deleted: with one fold left out, where that was asked for.
    """

    values: Matrix
    n_edges: npt.NDArray[np.int64]
    halves: npt.NDArray[np.float64]
    deleted: Deleted | None = None


def measured(
    matrix: ScoreMatrix, how: Comparison = EVERY_EDGE, *, pairs: bool = True, deleted: bool = False
) -> Measures:
    """Compare the halves of each circuit, with `pairs` every two circuits, with `deleted` those less a fold too."""
    halves = reliabilities(matrix, how).folds
    if not pairs:
        return Measures(np.empty((0, 0)), np.empty((0, 0), np.int64), halves)
    found = coefficient(how.kind, matrix.scores, top=how.top, joint_zeros=not how.nonzero)
    left = jackknife.deleted(matrix, how) if deleted else None
    return Measures(found.values, found.n_edges, halves, left)


def measured_between(first: ScoreMatrix, second: ScoreMatrix, how: Comparison = EVERY_EDGE) -> Measures:
    """Compare every circuit of one matrix with every one of another."""
    found = coefficient(how.kind, first.scores, second.scores, top=how.top, joint_zeros=not how.nonzero)
    halves = np.concatenate([reliabilities(matrix, how).folds for matrix in (first, second)])
    return Measures(found.values, found.n_edges, halves)


def worth_keeping(selections: Sequence[Selection]) -> bool:
    """Whether so many scores take long enough."""
    return sum(member.n_edges for selection in selections for member in selection.members) >= _WORTH


def key(selections: Sequence[Selection], how: Comparison, on: str, what: str) -> str:
    """SHA-256 of all that the measures depend on."""
    question: dict[str, Json] = {
        "code": _code(),
        "what": what,
        "on": on,
        "how": {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(how).items()},
        "circuits": [
            [[m.circuit_id, m.spec_digest, m.score_digest, m.n_folds, m.n_kv_heads] for m in selection.members]
            for selection in selections
        ],
    }
    return hashlib.sha256(canonical_json(question).encode()).hexdigest()


def packed(measures: Measures) -> bytes:
    """As bytes."""
    arrays = {name: getattr(measures, name) for name in ("values", "n_edges", "halves")}
    if measures.deleted is not None:
        arrays |= {f"{_DELETED}{f.name}": getattr(measures.deleted, f.name) for f in fields(Deleted)}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def unpacked(content: bytes) -> Measures | None:
    """From bytes; None where they are no such thing."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            plain = Measures(arrays["values"], arrays["n_edges"], arrays["halves"])
            if not any(name.startswith(_DELETED) for name in arrays.files):
                return plain
            return replace(plain, deleted=Deleted(**{f.name: arrays[f"{_DELETED}{f.name}"] for f in fields(Deleted)}))
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile):
        return None


@cache
def _code() -> str:
    """SHA-256 of the files that compute."""
    whole = b"".join((files(package) / name).read_bytes() for package, names in _SOURCES.items() for name in names)
    return hashlib.sha256(whole + np.__version__.encode()).hexdigest()
