"""How circuits are compared: by which coefficient, over which edges, and as edges or as nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypedDict

from circuitdb.errors import UsageError
from circuitdb.graph import QKV
from circuitdb.queries import arguments
from circuitdb.queries.coefficients import CORRECTABLE, KINDS, NAMES
from circuitdb.queries.result import enumeration

SOURCES, TARGETS, LEVELS = ("input", "head", "mlp"), ("head", "mlp", "logits"), ("edge", "node")


class Compared(TypedDict, total=False):
    """How circuits are compared, and over which edges; see `Comparison` for the values."""

    kind: str
    top: int
    level: str
    layers: tuple[int, int] | None
    source: str | Iterable[str] | None
    target: str | Iterable[str] | None
    qkv: str | Iterable[str] | None
    shared: bool
    nonzero: bool


@dataclass(frozen=True)
class Comparison:
    """A checked `Compared`.

    Attributes:
        kind, top: of the coefficient; `top` is for overlap and kappa.
        level: edge or node.
        layers: (first, last) of the layers in which every end that has one must lie; input and logits have none.
        source: input, head, mlp; none lets all through. `target`: head, mlp, logits. `qkv`: q, k, v.
        shared: whether query heads that share a key-value head count as one for it.
        nonzero: whether edges of score zero in both circuits are left out.
    """

    kind: str = "spearman"
    top: int = 200
    level: str = "edge"
    layers: tuple[int, int] | None = None
    source: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    qkv: tuple[str, ...] = ()
    shared: bool = False
    nonzero: bool = False

    @classmethod
    def of(cls, asked: Mapping[str, object]) -> Comparison:
        """Check what a caller asked for. Raises UsageError for a value that there is not."""
        return cls(
            kind=_one("kind", asked.get("kind", "spearman"), KINDS),
            top=arguments.amount("edge", 200 if asked.get("top") is None else asked["top"]),
            level=_one("level", asked.get("level", "edge"), LEVELS),
            layers=_layers(asked.get("layers")),
            source=_some("source", asked.get("source"), SOURCES),
            target=_some("target", asked.get("target"), TARGETS),
            qkv=_some("qkv", asked.get("qkv"), QKV),
            shared=_flag("shared", asked.get("shared", False)),
            nonzero=_flag("nonzero", asked.get("nonzero", False)),
        )

    @property
    def whole(self) -> bool:
        """Whether it is over every edge, each by itself."""
        return not (self.layers or self.source or self.target or self.qkv or self.shared or self.level == "node")

    @property
    def short(self) -> str:
        """For titles: rho for Spearman's over every edge, else all words."""
        return "rho" if self == EVERY_EDGE else self.words

    @property
    def prefix(self) -> str:
        """For titles that do without the coefficient of the paper: nothing for Spearman's rho over every edge."""
        return "" if self == EVERY_EDGE else f"{self.words}, "

    @property
    def words(self) -> str:
        """For titles: the coefficient, and what it is over where that is not every edge."""
        top = f", {self.top:,} strongest" if self.kind in ("overlap", "kappa") else ""
        parts = [
            f"layers {self.layers[0]}-{self.layers[1]}" if self.layers else "",
            f"from {enumeration(self.source)}" if self.source else "",
            f"to {enumeration(self.target)}" if self.target else "",
            f"{enumeration(self.qkv)} only" if self.qkv else "",
            "one a shared key-value head" if self.shared else "",
            "zero in both left out" if self.nonzero else "",
        ]
        over = "; ".join(part for part in parts if part)
        nodes = " over nodes" if self.level == "node" else ""
        return f"{NAMES[self.kind]}{top}{nodes}{f' ({over})' if over else ''}"


EVERY_EDGE = Comparison()


def require_correctable(how: Comparison, corrected: bool) -> None:
    """Raise UsageError where corrected similarities are asked for of a kind that has none."""
    if corrected and how.kind not in CORRECTABLE:
        raise UsageError(
            f"There is no correction for noise for {NAMES[how.kind]}; ask without corrected, or for a kind that has "
            f"one: {', '.join(CORRECTABLE)}."
        )


def _one(what: str, value: object, valid: tuple[str, ...]) -> str:
    if value not in valid:
        raise UsageError(f"{what}={value!r} is not one of {', '.join(valid)}.")
    return str(value)


def _flag(what: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{what} is True or False, not {value!r}.")
    return value


def _some(what: str, values: object, valid: tuple[str, ...]) -> tuple[str, ...]:
    given = arguments.several(what, values, numbers=False)
    return tuple(dict.fromkeys(_one(what, value, valid) for value in given))


def _layers(value: object) -> tuple[int, int] | None:
    if value is None:
        return None
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise UsageError(f"layers is the first and the last of a range, such as (0, 5), not {value!r}.")
    first, last = (arguments.whole("layer", layer) for layer in value)
    if not 0 <= first <= last:
        raise UsageError(f"layers {first} to {last} are no range; count from 0, the first before the last.")
    return first, last
