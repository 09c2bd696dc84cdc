"""What a reader hands over: one circuit of a file, with what the file says of it and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from circuitdb.errors import ScoreError
from circuitdb.graph import GraphShape

Scores = npt.NDArray[np.float32]
Members = npt.NDArray[np.bool_]
EAP_IG, AUTO_CIRCUIT, ACDC, TRANSFORMER_LENS = "eap-ig", "auto-circuit", "acdc", "transformer-lens"
ABLATED_MINUS_CLEAN = "ablated-minus-clean"
_SURELY_FINE = 1_000_000
_EDGES_PER_BYTE = 20  # a list of one edge in a thousand, in 60 bytes each, has 17


@dataclass(frozen=True, eq=False)
class Found:
    """One circuit of a file; what the file does not say is None.

    Attributes:
        tool, dialect: whose layout it is, and which of theirs.
        shape: its graph.
        scores: [n_edges], NaN where the file has nothing or nothing finite; None if it has no scores at all.
        members: [n_edges], the edges that are in; None if the file leaves out none or has none in.
        n_missing: edges of the graph that the file does not mention.
        n_kv_heads, d_model: sizes of the model.
        task, subtask, method: names in the file itself.
        part: which of several circuits of the file.
        steps, positions, ablation, sign_convention: how it was scored.
        notes: what the reader had to leave out, or to take on trust.
    """

    tool: str
    dialect: str
    shape: GraphShape
    scores: Scores | None
    members: Members | None
    n_missing: int = 0
    n_kv_heads: int | None = None
    d_model: int | None = None
    task: str | None = None
    subtask: str | None = None
    method: str | None = None
    part: str | None = None
    steps: int | None = None
    positions: str | None = None
    ablation: str | None = None
    sign_convention: str | None = None
    notes: tuple[str, ...] = ()


@lru_cache(maxsize=16)
def shape_of(n_layers: int, n_heads: int, parallel: bool) -> GraphShape:
    """A graph whose names are made once for all files of that shape."""
    return GraphShape(n_layers, n_heads, parallel)


def checked_shape(n_layers: object, n_heads: object, parallel: object, *, where: str, n_bytes: int) -> GraphShape:
    """The graph that a file claims. Raises ScoreError for sizes that are none, or that a file so small can't hold."""
    for name, value in (("layers", n_layers), ("heads", n_heads)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ScoreError(f"{where} says that the model has {_short(value)} {name}; it must be a number from 1 on.")
    if not isinstance(parallel, bool | None):
        raise ScoreError(f"{where} says {_short(parallel)} for parallel_attn_mlp; it must be true or false.")
    assert isinstance(n_layers, int)
    assert isinstance(n_heads, int)
    n_edges = GraphShape(n_layers, n_heads, bool(parallel)).n_edges
    if n_edges > max(_SURELY_FINE, _EDGES_PER_BYTE * n_bytes):
        raise ScoreError(
            f"{where} says that the model has {_short(n_layers)} layers of {_short(n_heads)} heads, far more edges "
            f"than its {n_bytes:,} bytes can tell of; it is damaged or no circuit."
        )
    return shape_of(n_layers, n_heads, bool(parallel))


def size(value: object, name: str, *, where: str) -> int | None:
    """A size of the model, or None where there is none. Raises ScoreError for what is no size."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 2**31:
        raise ScoreError(f"{where} says {_short(value)} for {name}; it must be a whole number from 1 on.")
    return value


def finite(scores: npt.NDArray[np.floating]) -> Scores:
    """float32, with NaN for all that is not finite in it."""
    with np.errstate(over="ignore"):
        small = scores.astype(np.float32)
    small[~np.isfinite(small)] = np.nan
    return small


def parted(scores: Scores | None, members: Members | None, *, where: str) -> tuple[Scores | None, Members | None]:
    """(scores, members) of a file, either None where it tells nothing.

    Scores that are all missing or zero beside a choice of edges are none: the file has membership alone. Raises
    ScoreError where there is neither.
    """
    mixed = members is not None and bool(members.any()) and not bool(members.all())
    told = scores is not None and bool(np.isfinite(scores).any())
    if scores is not None and mixed and not np.nan_to_num(scores).any():
        told = False
    if not told and members is None:
        raise ScoreError(f"{where} has neither a score nor a choice of edges; there is nothing to import.")
    return (scores if told else None), (members if mixed or not told else None)


def _short(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python writes
        return "a number of thousands of digits as its number of"
    return text if len(text) <= 30 else f"{text[:27]}..."
