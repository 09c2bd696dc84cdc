"""A hard circuit as a graph for other programs: GraphML, DOT, and networkx's node-link JSON.

Nodes are those that an edge of the circuit touches. A head reads by three inputs, so two nodes may be joined by three
edges, told apart by `qkv`: the graph is a directed multigraph.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from circuitdb.graph import GraphShape
from circuitdb.ingest.formats.found import Members, Scores

Value: TypeAlias = "str | int | float | bool | None"
_KINDS = {"a": "head", "m": "mlp"}
_XML = {str: "string", int: "int", float: "double", bool: "boolean"}


@dataclass(frozen=True)
class Node:
    """A node that is in: `layer` and `head` where it has them."""

    name: str
    kind: str
    layer: int | None
    head: int | None


@dataclass(frozen=True)
class Edge:
    """An edge that is in: `qkv` where it leads to a head, `score` unless there is none."""

    edge_id: int
    source: str
    target: str
    qkv: str | None
    score: float | None


@dataclass(frozen=True)
class CircuitGraph:
    """A hard circuit; `about` is what is known of it, name by name, of which None is left out."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    about: Mapping[str, Value]

    @classmethod
    def of(cls, shape: GraphShape, scores: Scores | None, members: Members, about: Mapping[str, Value]) -> CircuitGraph:
        """The graph of the edges that are in, [n_edges]; with their scores [n_edges] if there are some."""
        chosen = np.flatnonzero(members)
        ends = np.append(np.array(shape.source_names, object), "logits")
        targets = np.array(shape.target_names, object)[shape.edge_targets[chosen]]
        values = np.full(len(chosen), np.nan) if scores is None else scores[chosen].astype(np.float64)
        rows = zip(
            chosen.tolist(), ends[shape.edge_sources[chosen]].tolist(), ends[shape.edge_target_nodes[chosen]].tolist(),
            targets.tolist(), values.tolist(), strict=True,
        )  # fmt: skip
        edges = tuple(
            Edge(number, source, node, target[-2] if target.endswith(">") else None, None if math.isnan(x) else x)
            for number, source, node, target, x in rows
        )
        touched = np.union1d(shape.edge_sources[chosen], shape.edge_target_nodes[chosen])
        return cls(tuple(_node(name) for name in ends[touched].tolist()), edges, about)

    @property
    def told(self) -> dict[str, str | int | float | bool]:
        """What is known of the circuit."""
        return {name: value for name, value in self.about.items() if value is not None}


def node_link(graph: CircuitGraph) -> str:
    """JSON that `networkx.node_link_graph` loads as a MultiDiGraph; an edge's key is its input, or 0."""
    content = {
        "directed": True,
        "multigraph": True,
        "graph": graph.told,
        "nodes": [{"id": node.name, **_of_node(node)} for node in graph.nodes],
        "edges": [
            {"source": edge.source, "target": edge.target, "key": edge.qkv or 0, **_of_edge(edge)}
            for edge in graph.edges
        ],
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def graphml(graph: CircuitGraph) -> str:
    """GraphML that `networkx.read_graphml` and Gephi load; an edge's id is its name."""
    return "\n".join(_graphml(graph)) + "\n"


def dot(graph: CircuitGraph) -> str:
    """DOT text: edges that raise the metric when ablated are blue, others red; the stronger the thicker."""
    strongest = max((abs(edge.score) for edge in graph.edges if edge.score), default=1.0)
    lines = ["digraph circuit {", "  rankdir=BT;", "  node [shape=box];"]
    lines += [f"  {_dot_text(name)}={_dot_text(value)};" for name, value in graph.told.items()]
    for node in graph.nodes:
        lines.append(f"  {_dot_text(node.name)} [{_dot_list(_of_node(node))}];")
    for edge in graph.edges:
        score = edge.score or 0.0
        looks = {"color": "blue" if score >= 0 else "red", "penwidth": round(0.5 + 3.5 * abs(score) / strongest, 3)}
        looks |= {"label": edge.qkv} if edge.qkv else {}
        lines.append(
            f"  {_dot_text(edge.source)} -> {_dot_text(edge.target)} [{_dot_list({**_of_edge(edge), **looks})}];"
        )
    return "\n".join([*lines, "}"]) + "\n"


def _graphml(graph: CircuitGraph) -> Iterator[str]:
    nodes = [_of_node(node) for node in graph.nodes]
    edges = [_of_edge(edge) for edge in graph.edges]
    yield "<?xml version='1.0' encoding='utf-8'?>"
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    for owner, rows in (("graph", [graph.told]), ("node", nodes), ("edge", edges)):
        for name, kind in {name: _XML[type(value)] for row in rows for name, value in row.items()}.items():
            key = quoteattr(f"{owner}_{name}")
            yield f'  <key id={key} for="{owner}" attr.name={quoteattr(name)} attr.type="{kind}"/>'
    yield '  <graph edgedefault="directed">'
    yield from _data("graph", graph.told, "    ")
    for node, row in zip(graph.nodes, nodes, strict=True):
        yield f"    <node id={quoteattr(node.name)}>"
        yield from _data("node", row, "      ")
        yield "    </node>"
    for edge, row in zip(graph.edges, edges, strict=True):
        name = edge.qkv or "0"
        yield f"    <edge source={quoteattr(edge.source)} target={quoteattr(edge.target)} id={quoteattr(name)}>"
        yield from _data("edge", row, "      ")
        yield "    </edge>"
    yield "  </graph>"
    yield "</graphml>"


def _data(owner: str, row: Mapping[str, str | int | float | bool], indent: str) -> Iterator[str]:
    for name, value in row.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        yield f"{indent}<data key={quoteattr(f'{owner}_{name}')}>{escape(text)}</data>"


def _of_node(node: Node) -> dict[str, str | int | float | bool]:
    found: dict[str, str | int | float | bool] = {"kind": node.kind}
    found |= {} if node.layer is None else {"layer": node.layer}
    return found | ({} if node.head is None else {"head": node.head})


def _of_edge(edge: Edge) -> dict[str, str | int | float | bool]:
    found: dict[str, str | int | float | bool] = {"edge_id": edge.edge_id}
    found |= {} if edge.qkv is None else {"qkv": edge.qkv}
    return found | ({} if edge.score is None else {"score": edge.score})


def _node(name: str) -> Node:
    kind = _KINDS.get(name[0], name) if name[1:2].isdigit() else name
    layer, _, head = name[1:].partition(".h")
    return Node(name, kind, int(layer) if kind != name else None, int(head) if head else None)


def _dot_list(row: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={_dot_text(value)}" for name, value in row.items())


def _dot_text(value: object) -> str:
    text = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'
