"""The folder of the examples in the docstrings: four circuits of eight edges, scored by hand, and a small table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from circuitdb.evals import files, writer
from circuitdb.evals.columns import Columns
from circuitdb.graph import GraphShape
from circuitdb.records import Accuracy
from circuitdb.store import Store
from stores import circuit, model

SHAPE = GraphShape(n_layers=1, n_heads=1)
# Operands: (scores of the eight edges, accuracy). The ranks of 1+1 fall from 8 to 1; those of 2+2 differ by one swap of
# neighbours, so that rho = 1 - 6 * 2 / (8 * 63) = 0.9762; 2+1 has its first five reversed, so that it is
# 1 - 6 * 40 / 504 = 0.5238.
CIRCUITS = {
    (1, 1): ([8, 7, 6, 5, -1, -2, -3, -4], 0.9),
    (1, 2): ([5, 8, 7, 6, -2, -1, -4, -3], 0.6),
    (2, 1): ([-1, 5, 6, 7, 8, -2, -3, -4], 0.5),
    (2, 2): ([7, 8, 4.5, 4.25, -1, -2, -3, -4], 0.8),
}
BOARD = [
    {"model": "toy", "subtask": "1+1", "acc": 0.7},
    {"model": "toy", "subtask": "2+2", "acc": 0.6},
    {"model": "toy", "subtask": "three", "acc": 0.1},
]


def example_folder(folder: Path) -> Path:
    """Write circuits.duckdb there, and board.json, which is added to it as `board`.

    Of each circuit's two folds one has its lowest two scores exchanged.
    """
    store = Store(folder / "circuits.duckdb")
    of = model("toy", SHAPE)
    for (a, b), (scores, accuracy) in CIRCUITS.items():
        first, second = np.array(scores, np.float32), np.array(scores, np.float32)
        lowest = np.argsort(second)[:2]
        second[lowest] = second[lowest[::-1]]
        record = circuit(f"{a}+{b}", {"digits_a": a, "digits_b": b}, of=of)
        store.write(record, first, np.stack([first, second]), accuracy=Accuracy(accuracy, 0.1, 8))
    (folder / "board.json").write_text(json.dumps(BOARD))
    writer.add(store.path, "board", files.read([folder / "board.json"], Columns()), [folder / "board.json"])
    return folder
