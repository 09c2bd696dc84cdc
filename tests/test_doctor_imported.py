"""What doctor says of imported circuits, hard ones too, and of chat templates: nothing where they are whole."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from circuitdb.connection import reading, writing
from circuitdb.doctor import WRONG, examine
from circuitdb.records import Circuit, HardCircuit, ImportedFile, ImportedModel, Subtask
from circuitdb.store import Store
from stores import SHAPE, circuit

TEMPLATE = "{{ messages }}"
DIGEST = hashlib.sha256(TEMPLATE.encode()).hexdigest()
N_MISSING = 3


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Circuit 1 was asked through a template, 2 has no score of three edges; hard circuit 1 is of it, 2 alone."""
    path = tmp_path_factory.mktemp("doctor") / "circuits.duckdb"
    made = Store(path)
    asked = circuit("1+1")
    asked = replace(asked, chat=True, chat_template=TEMPLATE, spec=asked.spec | {"chat_template": DIGEST})
    made.write(asked, np.ones(SHAPE.n_edges))
    owner, subtask = ImportedModel("tiny", SHAPE), Subtask("ioi", "all")
    scores = np.arange(SHAPE.n_edges, dtype=np.float32)
    scores[:N_MISSING] = np.nan
    hard = [
        HardCircuit(owner, subtask, np.array(edges, np.int32), "eap-ig", {"salt": name})
        for name, edges in (("a", [1, 4, 5]), ("b", [0, SHAPE.n_edges - 1]))
    ]
    source = ImportedFile("eap-ig", "json", "/a.json", "d", n_missing=N_MISSING)
    soft = Circuit(owner, subtask, None, None, {"salt": "soft"}, origin="eap-ig")
    made.write(soft, scores, source=source, members=hard[0])
    made.write_hard(hard[1], source)
    return path


def told(path: Path) -> dict[str, str]:
    """Check to what it found, of all that is wrong."""
    return {finding.check: finding.found for finding in examine(path, every=True).findings if finding.status == WRONG}


def test_edges_that_a_file_lacks_are_counted_and_not_wrong(store: Path) -> None:
    assert told(store) == {}
    with reading(store) as connection:
        counts = connection.execute("SELECT circuit_id, n_nonfinite FROM circuit ORDER BY circuit_id").fetchall()
        hard = connection.execute("SELECT hard_id, circuit_id, n_edges FROM imported_hard_circuit").fetchall()
    assert counts == [(1, 0), (2, N_MISSING)]
    assert hard == [(1, 2, 3), (2, None, 2)]


FAULTS = [
    ("UPDATE edge_score SET score = 0 WHERE circuit_id = 2 AND edge_id = 0", "circuits",
     "scores that are NULL: 2 (said 3, found 2)."),
    ("INSERT INTO hard_circuit_edge VALUES (9, 1)", "orphan rows",
     "1 of hard_circuit_edge with a hard_id that is not in imported_hard_circuit."),
    ("UPDATE imported_file SET hard_id = 9 WHERE hard_id = 2", "orphan rows", "1 of imported_file with a hard_id"),
    ("UPDATE imported_hard_circuit SET circuit_id = 9 WHERE hard_id = 1", "orphan rows",
     "1 of imported_hard_circuit with a circuit_id that is not in circuit."),
    ("DELETE FROM hard_circuit_edge WHERE hard_id = 1 AND edge_id = 4", "hard circuits",
     "different edges: hard circuit 1 (said 3, found 2); edges: hard circuit 1 (said 3, found 2)."),
    ("UPDATE hard_circuit_edge SET edge_id = 5 WHERE hard_id = 1 AND edge_id = 4", "hard circuits",
     "different edges: hard circuit 1 (said 3, found 2)."),
    (f"UPDATE hard_circuit_edge SET edge_id = {SHAPE.n_edges} WHERE hard_id = 2 AND edge_id = 0", "hard circuits",
     "edges that its graph does not have: hard circuit 2 (said 0, found 1)."),
    ("UPDATE hard_circuit_edge SET edge_id = -1 WHERE hard_id = 2 AND edge_id = 0", "hard circuits",
     "edges that its graph does not have: hard circuit 2 (said 0, found 1)."),
    ("UPDATE imported_hard_circuit SET circuit_id = 1, graph_id = 2 WHERE hard_id = 2; INSERT INTO graph "
     "SELECT 2, n_layers, n_heads, parallel, n_nodes, n_edges FROM graph", "hard circuits",
     "graph, that of its model: hard circuit 2 (said 2, found 1); graph, that of its soft circuit: hard circuit 2"),
    ("UPDATE imported_hard_circuit SET spec = '{}' WHERE hard_id = 2", "specs", "spec digest: hard circuit 2 (said "),
    ("DELETE FROM chat_template", "specs", "chat template: 1."),
    ("UPDATE chat_template SET template = 'x'", "specs", f"chat template: 1 (said {DIGEST}, found "),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "check", "found"), FAULTS, ids=[f"{f[1]}-{i}" for i, f in enumerate(FAULTS)])
def test_every_fault_is_named(statement: str, check: str, found: str, store: Path, tmp_path: Path) -> None:
    path = tmp_path / "circuits.duckdb"
    shutil.copy(store, path)
    with writing(path) as connection:
        connection.execute(statement)
    assert found in told(path).get(check, "")
