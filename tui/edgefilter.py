"""Which edges of a circuit are listed, and in what order; free of Textual."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from circuitdb.errors import UsageError

if TYPE_CHECKING:
    from circuitdb.queries.softcircuit import EdgeList, SoftCircuit

ANY = "any"
CHOICES = {
    "source": (ANY, "input", "head", "mlp"),
    "target": (ANY, "head", "mlp", "logits"),
    "qkv": (ANY, "q", "k", "v"),
    "sign": (ANY, "+", "-", "0"),
    "order": ("strength", "highest", "lowest", "edge"),
}
_LAYERS = re.compile(r"\s*(\d{1,4})\s*(?:-\s*(\d{1,4})\s*)?")


@dataclass(frozen=True)
class EdgeFilter:
    """What an edge must be; `any` and nothing let all through.

    Attributes:
        source, target, qkv, sign, order: one of `CHOICES` each.
        layers: as it was typed: 3, or 3-5.
        name: a text that is in the edge's name.
        node: a node that it leaves or leads to.
    """

    source: str = ANY
    target: str = ANY
    qkv: str = ANY
    sign: str = ANY
    order: str = "strength"
    layers: str = ""
    name: str = ""
    node: int | None = None

    def turned(self, what: str) -> EdgeFilter:
        """With the next value of one of `CHOICES`."""
        values = CHOICES[what]
        return self.but(what, values[(values.index(getattr(self, what)) + 1) % len(values)])

    def but(self, what: str, value: str) -> EdgeFilter:
        """With another value of one attribute."""
        return replace(self, **{what: value})  # type: ignore[arg-type]

    def edges(self, circuit: SoftCircuit) -> EdgeList:
        """The edges that pass. Raises UsageError for layers that are none."""
        from circuitdb.queries.comparison import Comparison  # not when the browser opens: see `access`

        asked = {name: value for name in ("source", "target", "qkv") if (value := getattr(self, name)) != ANY}
        return circuit.edges(
            Comparison.of({**asked, "layers": self._range()}),
            sign=None if self.sign == ANY else self.sign,
            name=self.name.strip(),
            node=self.node,
            order=self.order,
        )

    def _range(self) -> tuple[int, int] | None:
        if not self.layers.strip():
            return None
        found = _LAYERS.fullmatch(self.layers)
        if found is None:
            raise UsageError(f"Layers are a number or two, such as 3 or 3-5, not {self.layers.strip()!r}.")
        first = int(found[1])
        return first, int(found[2] or first)
