"""How long 64 files of 74,218 edges (Gemma-2-2B) take to import, beside reading and parsing their bytes alone.

    python benchmarks/import.py [--files 64] [--pt]

The floor is the bytes of all files and, for JSON, Python's own parser; for .pt it is torch.load.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from circuitdb.graph import GraphShape
from circuitdb.ingest.formats import eap_ig_json, eap_ig_pt
from circuitdb.ingest.formats.importing import Told, import_files
from circuitdb.ingest.formats.pattern import Pattern
from circuitdb.store import Store

SHAPE = GraphShape(26, 8)


def main() -> None:
    """Print the times of both, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--pt", action="store_true", help=".pt files in the place of JSON")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [folder / f"add-{i // 8}-{i % 8}{'.pt' if asked.pt else '.json'}" for i in range(asked.files)]
        rng = np.random.default_rng(0)
        write = eap_ig_pt.write if asked.pt else eap_ig_json.write
        for path in paths:
            write(path, SHAPE, rng.standard_normal(SHAPE.n_edges).astype(np.float32), None, d_model=2304)
        size = sum(path.stat().st_size for path in paths)
        print(f"{len(paths)} files of {SHAPE.n_edges:,} edges, {size / 1e6:,.0f} MB")
        start, busy = time.perf_counter(), time.process_time()
        _floor(paths, pt=asked.pt)
        floor, least = time.perf_counter() - start, time.process_time() - busy
        print(f"reading and parsing alone: {floor:6.2f} s, {least:6.2f} s of CPU")
        store, told = (
            Store(folder / "a.duckdb"),
            Told(model="gemma-2-2b", task="addition", pattern=Pattern(f"add-{{a}}-{{b}}{paths[0].suffix}")),
        )
        for what in ("import", "again, all kept"):
            start, busy = time.perf_counter(), time.process_time()
            found = import_files(store, paths, told)
            seconds, used = time.perf_counter() - start, time.process_time() - busy
            print(f"{what + ':':26} {seconds:6.2f} s, {used:6.2f} s of CPU, {used / least:.2f} x, {found[0].status}")
        bare = 4 * SHAPE.n_edges * len(paths)
        print(f"database: {Path(store.path).stat().st_size / 1e6:.1f} MB; the scores alone: {bare / 1e6:.1f} MB")


def _floor(paths: list[Path], *, pt: bool) -> None:
    for path in paths:
        if pt:
            import torch

            torch.load(path, weights_only=True)
        else:
            json.loads(path.read_bytes())


if __name__ == "__main__":
    main()
