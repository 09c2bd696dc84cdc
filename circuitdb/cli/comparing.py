"""The options that say how circuits are compared, for `circuitdb.cli.options.question`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from circuitdb.cli import parameters
from circuitdb.errors import UsageError

if TYPE_CHECKING:
    from circuitdb.queries.comparison import Compared


class Kind(StrEnum):
    """Coefficients of similarity."""

    SPEARMAN = "spearman"
    PEARSON = "pearson"
    KENDALL = "kendall"
    COSINE = "cosine"
    OVERLAP = "overlap"
    KAPPA = "kappa"


class Level(StrEnum):
    """What is compared one by one."""

    EDGE = "edge"
    NODE = "node"


class Source(StrEnum):
    """Kinds of nodes that write."""

    INPUT = "input"
    HEAD = "head"
    MLP = "mlp"


class Target(StrEnum):
    """Kinds of nodes that read."""

    HEAD = "head"
    MLP = "mlp"
    LOGITS = "logits"


class Qkv(StrEnum):
    """Inputs of a head."""

    Q = "q"
    K = "k"
    V = "v"


def compared(values: Mapping[str, object]) -> Compared:
    """How to compare, as keywords of the library; none where a question does not."""
    if "kind" not in values:
        return {}
    return {
        "kind": str(values["kind"]),
        "level": str(values["level"]),
        "layers": _layers(values["layers"]),
        "source": parameters.names(values["source"]),
        "target": parameters.names(values["target"]),
        "qkv": parameters.names(values["qkv"]),
        "shared": bool(values["shared"]),
        "nonzero": bool(values["nonzero"]),
        "top": _DEFAULT_TOP if values["top"] is None else int(str(values["top"])),
    }


def _layers(value: object) -> tuple[int, int] | None:
    """A range of layers from its text. Raises UsageError."""
    if value is None:
        return None
    first, dash, last = str(value).partition("-")
    if not (first.isdecimal() and (not dash or last.isdecimal())):
        raise UsageError(f"--layers is one layer or a range, such as 0-5, not {value}.")
    return int(first), int(last) if dash else int(first)


_DEFAULT_TOP = 200
_LAYERS = typer.Option("--layers", metavar="A-B", help="Only edges within these layers; input and logits are in any.")
_TOP = typer.Option("--top", metavar="N", min=1, help="How many of the strongest edges overlap and kappa are about.")
COMPARISON = [
    parameters.choice("kind", Kind, Kind.SPEARMAN, "How alike two circuits are: by which coefficient."),
    parameters.parameter("top", Annotated[int, _TOP], _DEFAULT_TOP),
    parameters.choice("level", Level, Level.EDGE, "Compare edge by edge, or node by node: a node's edges summed."),
    parameters.parameter("layers", Annotated[str | None, _LAYERS], None),
    parameters.choices("source", Source, "Only edges from this kind of node"),
    parameters.choices("target", Target, "Only edges to this kind of node"),
    parameters.choices("qkv", Qkv, "Only edges to this input of a head"),
    parameters.flag("shared", "Heads that share keys and values count as one for these."),
    parameters.flag("nonzero", "Leave out edges that are zero in both circuits."),
]
