"""What the SQL macros cost in the bare engine and in our own connection: 64 circuits x 123,211 edges, all pairs.

In the bare engine DuckDB ranks the scores and correlates them pair by pair; `Database.sql` puts the similarities in its
place by one matrix product. Both answers are the same.

    python benchmarks/macros.py
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np

import circuitdb
from circuitdb.graph import GraphShape
from circuitdb.records import Circuit, Model, Subtask
from circuitdb.store import Store

SHAPE = GraphShape(n_layers=30, n_heads=9)  # SmolLM2-135M
DIGITS = 8
STATEMENTS = ["FROM stability()", "FROM families(0.1)", "FROM similarity(1, 2)", "FROM containment(1, 2, 200)"]


def build(path: Path) -> None:
    """DIGITS x DIGITS circuits of random scores."""
    model = Model("random", "LlamaForCausalLM", SHAPE, n_kv_heads=3, d_model=576)
    store, rng = Store(path), np.random.default_rng(0)
    for i in range(DIGITS**2):
        a, b = divmod(i, DIGITS)
        subtask = Subtask("addition", f"{a + 1}+{b + 1}", {"digits_a": a + 1, "digits_b": b + 1})
        circuit = Circuit(model, subtask, method="eap-ig", metric="kl", spec={"seed": i}, n_examples=16)
        store.write(circuit, rng.standard_normal(SHAPE.n_edges, np.float32))


def timed(task: Callable[[], list[dict[str, object]]]) -> tuple[float, list[dict[str, object]]]:
    """(seconds, answer)."""
    start = time.perf_counter()
    answer = task()
    return time.perf_counter() - start, answer


def main() -> None:
    """Measure and print."""
    print(f"{DIGITS**2} circuits x {SHAPE.n_edges:,} edges, one run each\n")
    print(f"{'':32}{'bare engine':>13}{'our connection':>16}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "circuits.duckdb"
        build(path)
        copy = shutil.copy(path, path.with_name("copy.duckdb"))
        db = circuitdb.open(path)
        with duckdb.connect(str(copy), read_only=True) as bare:
            for statement in STATEMENTS:
                slow, alone = timed(lambda s=statement: bare.sql(s).to_arrow_table().to_pylist())  # type: ignore[misc]
                fast, ours = timed(lambda s=statement: db.sql(s).rows())  # type: ignore[misc]
                for mine, theirs in zip(ours, alone, strict=True):
                    for name, value in theirs.items():
                        same = (
                            np.isclose(float(str(mine[name])), value)
                            if isinstance(value, float)
                            else mine[name] == value
                        )
                        assert same, (statement, name, mine[name], value)
                print(f"{statement:32}{slow:>11.3f} s{fast:>14.3f} s")


if __name__ == "__main__":
    main()
