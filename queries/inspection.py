"""Questions about one circuit or two, as methods of the database: what a person looks at, edge by edge."""

from __future__ import annotations

from circuitdb.connection import reading
from circuitdb.errors import UsageError
from circuitdb.queries import arguments, matrix
from circuitdb.queries.asking import the_circuit
from circuitdb.queries.comparisons import Comparisons
from circuitdb.queries.pair import Pair
from circuitdb.queries.selection import select
from circuitdb.queries.softcircuit import SoftCircuit


class Inspection(Comparisons):
    """See `Database`."""

    def soft_circuit(self, circuit: int) -> SoftCircuit:
        """All scores of one circuit in memory: nodes, edges sorted and filtered, hard circuits of it.

        >>> found = db.soft_circuit(1)
        >>> dict(zip(found.node_names, found.node_scores.tolist()))
        {'input': 25.0, 'a0.h0': -5.0, 'm0': -4.0, 'logits': nan}
        >>> found.incoming(found.node_names.index("m0")).page()["edge"].to_pylist()
        ['input->m0', 'a0.h0->m0']
        """
        circuit = arguments.whole("circuit", circuit)
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = the_circuit(connection, circuit)
            scores = matrix.read(connection, chosen)
        (member,) = chosen.members
        return SoftCircuit(circuit, member.label, member.shape, scores.scores[0])

    def pair(self, a: int, b: int) -> Pair:
        """Two circuits side by side: their similarity with its reliabilities, overlap over sizes, edges, nodes.

        Raises UsageError if they are one circuit, or of different graph shapes.

        >>> found = db.pair(1, 3)
        >>> for row in found.overlap([2, 4]).rows():
        ...     print(row["n"], row["shared"], row["a_in_b"], row["expected_shared"])
        2 0 0.0 0.5
        4 3 0.75 2.0
        """
        a, b = arguments.whole("circuit", a), arguments.whole("circuit", b)
        if a == b:
            raise UsageError(f"A circuit is compared with another one, not with itself; both are circuit {a}.")
        with reading(self.path, timeout=self.timeout) as connection:
            chosen = select(connection, {"circuits": [a, b]}).compared()
            scores = matrix.read(connection, chosen)
        rows = [chosen.ids.index(one) for one in (a, b)]
        first, second = (
            SoftCircuit(chosen.ids[i], chosen.labels[i], chosen.members[i].shape, scores.scores[i]) for i in rows
        )
        sides = [self.similarity(on=on, circuits=[a, b]).part(rows) for on in matrix.SIDES]
        return Pair(first, second, sides[0], sides[1])
