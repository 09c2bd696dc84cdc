"""The computation graph of a transformer: nodes, edges, their names and their dense ids.

Sources write to the residual stream, in this order: `input`, then layer by layer the heads
`a{layer}.h{head}` and the MLP `m{layer}`. Targets read from it, in this order: per layer and head
`a{layer}.h{head}<q>`, `<k>`, `<v>`, then `m{layer}`; last `logits`. An edge joins a source to every
target that comes after it in the forward pass. Edges are numbered source by source, and within a
source target by target, so the ids are a function of the shape alone: checkpoints and fine-tunes of
one shape line up row by row.

The names are the convention of the EAP-IG family of tools. Grouped-query attention does not change
the graph: a key or value target is the shared key or value *as one query head uses it*.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from circuitdb.errors import UsageError

QKV = ("q", "k", "v")
_EDGE = re.compile(r"^(?P<source>input|a\d+\.h\d+|m\d+)->(?P<target>a\d+\.h\d+<[qkv]>|m\d+|logits)$")


@dataclass(frozen=True)
class GraphShape:
    """The shape that fixes a transformer's edge set.

    `parallel` is True where attention and MLP of a layer read the same stream (GPT-NeoX, GPT-J,
    Phi): then a layer's own heads are no sources of its MLP.
    """

    n_layers: int
    n_heads: int
    parallel: bool = False

    def __post_init__(self) -> None:
        if self.n_layers < 1 or self.n_heads < 1:
            raise UsageError(f"A graph needs at least one layer and one head, not {self.n_layers} and {self.n_heads}.")

    @property
    def n_sources(self) -> int:
        """Nodes that write to the residual stream."""
        return 1 + self.n_layers * (self.n_heads + 1)

    @property
    def n_targets(self) -> int:
        """Places that read from the residual stream."""
        return self.n_layers * (3 * self.n_heads + 1) + 1

    @property
    def n_edges(self) -> int:
        """Number of edges, in closed form: 32,491 for GPT-2 small, 123,211 for SmolLM2-135M."""
        n_layers, n_heads = self.n_layers, self.n_heads
        before = n_layers + (n_heads + 1) * n_layers * (n_layers - 1) // 2  # sum of sources before each layer
        own_heads = 0 if self.parallel else n_heads * n_layers
        return (3 * n_heads + 1) * before + own_heads + self.n_sources

    @cached_property
    def source_names(self) -> list[str]:
        """Names of the sources, in order; length `n_sources`."""
        names = ["input"]
        for layer in range(self.n_layers):
            names += [f"a{layer}.h{head}" for head in range(self.n_heads)]
            names.append(f"m{layer}")
        return names

    @cached_property
    def target_names(self) -> list[str]:
        """Names of the targets, in order; length `n_targets`."""
        names = []
        for layer in range(self.n_layers):
            names += [f"a{layer}.h{head}<{letter}>" for head in range(self.n_heads) for letter in QKV]
            names.append(f"m{layer}")
        return [*names, "logits"]

    def sources_before(self, layer: int, *, mlp: bool = False) -> int:
        """How many sources (a prefix of the order) a layer's attention, or its MLP, reads."""
        return 1 + layer * (self.n_heads + 1) + (self.n_heads if mlp and not self.parallel else 0)

    @cached_property
    def mask(self) -> npt.NDArray[np.bool_]:
        """[n_sources, n_targets]: True where there is an edge; row-major order is the order of edge ids."""
        mask = np.zeros((self.n_sources, self.n_targets), dtype=bool)
        width = 3 * self.n_heads + 1
        for layer in range(self.n_layers):
            start = layer * width
            mask[: self.sources_before(layer), start : start + width - 1] = True
            mask[: self.sources_before(layer, mlp=True), start + width - 1] = True
        mask[:, -1] = True
        return mask

    @cached_property
    def edge_sources(self) -> npt.NDArray[np.int32]:
        """[n_edges]: the source's index of each edge."""
        return np.nonzero(self.mask)[0].astype(np.int32)

    @cached_property
    def edge_targets(self) -> npt.NDArray[np.int32]:
        """[n_edges]: the target's index of each edge."""
        return np.nonzero(self.mask)[1].astype(np.int32)

    @cached_property
    def target_nodes(self) -> npt.NDArray[np.int32]:
        """[n_targets]: the node of each target, as its index among the sources; `n_sources` for the logits."""
        blocks = 1 + np.arange(self.n_layers)[:, None] * (self.n_heads + 1)
        inner = np.append(np.repeat(np.arange(self.n_heads), len(QKV)), self.n_heads)
        return np.append((blocks + inner).ravel(), self.n_sources).astype(np.int32)

    @cached_property
    def edge_target_nodes(self) -> npt.NDArray[np.int32]:
        """[n_edges]: the node of each edge's target; an edge to a head's q, k or v leads to the head."""
        return self.target_nodes[self.edge_targets]

    @cached_property
    def edge_names(self) -> list[str]:
        """Names of the edges, `source->target`, in id order; length `n_edges`."""
        sources, targets = np.array(self.source_names), np.array(self.target_names)
        arrow = np.char.add(sources[self.edge_sources], "->")
        return [str(name) for name in np.char.add(arrow, targets[self.edge_targets])]

    @cached_property
    def _edge_ids(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.edge_names)}

    def edge_id(self, name: str) -> int:
        """The id of an edge name. Raises UsageError, saying why, if this graph has no such edge."""
        found = self._edge_ids.get(name)
        if found is not None:
            return found
        if not _EDGE.match(name):
            raise UsageError(f"{name!r} is no edge name; edges look like 'a0.h1->m1' or 'input->a3.h2<q>'.")
        raise UsageError(
            f"This graph ({self.n_layers} layers, {self.n_heads} heads{', parallel blocks' if self.parallel else ''}) "
            f"has no edge {name!r}: source and target must exist and the target must come after the source."
        )
