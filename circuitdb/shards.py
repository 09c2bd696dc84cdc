"""Circuits outside a database: each in a Parquet file of its own, in a folder, until `merge` brings them in.

A file has a row for each edge, in edge order, and the columns `score`, `fold_0`, `fold_1` ... and, where they were
asked for, `example_0` ... The rest (provenance, examples, accuracy) is JSON in its metadata, with a digest of it all.
It is written under another name and then given its own, the circuit's spec digest: a file that is there is whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from circuitdb import copies
from circuitdb.batches import ExampleBatch, FloatArray, ScoreBatch
from circuitdb.errors import ScoreError, UsageError
from circuitdb.graph import GraphShape
from circuitdb.records import Accuracy, Circuit, Example, Model, Subtask

_KEY = b"circuitdb"
_VERSION = 1
# Which circuits a shard is to put into a folder, so that a merge knows what is lacking.
MANIFESTS = "shard-*.json"


@dataclass(frozen=True, eq=False)
class Shard:
    """One circuit of a file: what `Store.write` takes. `by_example` is None where it was not asked for."""

    circuit: Circuit
    scores: FloatArray
    folds: FloatArray
    by_example: FloatArray | None
    examples: tuple[Example, ...]
    accuracy: tuple[Accuracy, ...]


class ShardFolder:
    """A folder of circuits that is written to as a `Store` is; several processes may write to one."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._whole: dict[str, bool] = {}

    def create(self) -> None:
        """Make the folder, or see what whole circuits it has. Raises UsageError where it can't be one."""
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file; circuits without a database go to a folder, name one with --out.")
        if not self.path.parent.is_dir():
            raise UsageError(f"The folder {self.path.parent} does not exist; make it, or name another with --out.")
        self.path.mkdir(exist_ok=True)
        for left in self.path.glob(f".*.{socket.gethostname()}.*.tmp"):
            if not copies.runs(int(left.name.split(".")[-2])):
                left.unlink(missing_ok=True)
        for file in self.path.glob("*.parquet"):
            try:
                found = read(file)
            except ScoreError:
                continue  # it is scored again, and put in the place of this one
            self._whole[found.circuit.spec_digest] = found.by_example is not None

    def promise(self, shard: tuple[int, int], list_digest: str, circuits: Mapping[str, str]) -> None:
        """Note which circuits are to come, spec digest to subtask: those of a shard (its number, of how many)."""
        name = f"shard-{shard[0]}-of-{shard[1]}-{list_digest[:12]}.json"
        fresh = self.path / f".{name}.{socket.gethostname()}.{os.getpid()}.tmp"
        said = {"shard": list(shard), "circuits": dict(circuits)}
        fresh.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(fresh, self.path / name)

    def finished(self, *, by_example: bool = False) -> dict[str, None]:
        """Spec digests of the whole circuits; of those with scores of single examples, if asked."""
        return {digest: None for digest, has in self._whole.items() if has or not by_example}

    def write(
        self,
        circuit: Circuit,
        scores: npt.ArrayLike,
        folds: npt.ArrayLike | None = None,
        *,
        examples: Sequence[Example] = (),
        by_example: npt.ArrayLike | None = None,
        accuracy: Accuracy | Sequence[Accuracy] | None = None,
        replace: bool = True,
    ) -> None:
        """Write one circuit, in the place of an earlier one of its spec; see `Store.write`.

        Raises ScoreError for scores of the wrong shape or type.
        """
        shape = circuit.model.shape
        batch = ScoreBatch.check(shape, scores, folds)
        used = [position for position, example in enumerate(examples) if example.used]
        single = ExampleBatch.check(shape, by_example, used)
        shares = () if accuracy is None else (accuracy,) if isinstance(accuracy, Accuracy) else tuple(accuracy)
        table = _table(
            Shard(circuit, batch.scores, batch.folds, None if by_example is None else single.scores,
                  tuple(examples), shares)
        )  # fmt: skip
        final = self.path / f"{circuit.spec_digest}.parquet"
        fresh = self.path / f".{circuit.spec_digest[:16]}.{socket.gethostname()}.{os.getpid()}.tmp"
        try:
            # Signs and exponents are alike, and lie side by side in this encoding; fractions are noise.
            pq.write_table(table, fresh, compression="zstd", use_dictionary=False, use_byte_stream_split=True)
            copies.flush(str(fresh))
            os.replace(fresh, final)
            copies.flush(str(self.path))
        finally:
            fresh.unlink(missing_ok=True)
        self._whole[circuit.spec_digest] = by_example is not None


def read(path: str | os.PathLike[str]) -> Shard:
    """The circuit of a file. Raises ScoreError, in one sentence, for a file that is not whole or no such file."""
    try:
        table = pq.ParquetFile(path).read()
    except FileNotFoundError as error:
        raise ScoreError(f"There is no file {path}.") from error
    except (pa.ArrowException, OSError) as error:
        raise ScoreError(f"{path} is cut short, damaged or no Parquet file; score its circuit again.") from error
    text = (table.schema.metadata or {}).get(_KEY)
    if text is None:
        raise ScoreError(f"{path} is a Parquet file, but no circuit that `circuitdb ingest --work` wrote.")
    try:
        said = json.loads(text)
        version, content = said["version"], said["content"]
    except (ValueError, KeyError, TypeError) as error:
        raise ScoreError(f"{path} is damaged: its metadata can't be read; score its circuit again.") from error
    if version != _VERSION:
        raise ScoreError(f"{path} was written by another version of circuitdb (layout {version}, not {_VERSION}).")
    if said.get("digest") != _digest(content, table):
        raise ScoreError(f"{path} is damaged: its content has not the digest it was written with; score it again.")
    try:
        return _shard(content, table)
    except (KeyError, TypeError, ValueError) as error:
        raise ScoreError(f"{path} was written by another version of circuitdb: {error}.") from error


def _table(shard: Shard) -> pa.Table:
    columns = {"score": shard.scores}
    columns |= {f"fold_{i}": scores for i, scores in enumerate(shard.folds)}
    columns |= {f"example_{i}": scores for i, scores in enumerate(() if shard.by_example is None else shard.by_example)}
    table = pa.table({name: pa.array(values, pa.float32()) for name, values in columns.items()})
    started_at = shard.circuit.started_at
    content = {
        "circuit": asdict(shard.circuit) | {"started_at": None if started_at is None else started_at.isoformat()},
        "examples": [asdict(example) for example in shard.examples],
        "accuracy": [asdict(share) for share in shard.accuracy],
        "n_folds": len(shard.folds),
        "n_single": None if shard.by_example is None else len(shard.by_example),
    }
    content = json.loads(json.dumps(content))  # as it will be read, so that both have one digest
    said = {"version": _VERSION, "digest": _digest(content, table), "content": content}
    return table.replace_schema_metadata({_KEY: json.dumps(said).encode()})


def _digest(content: Any, table: pa.Table) -> str:
    """SHA-256 of the metadata and of the bytes of every column."""
    total = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name in table.column_names:
        total.update(name.encode())
        column = table[name]
        if column.type != pa.float32() or column.null_count:
            return ""  # nothing that was written by `_table`
        total.update(column.to_numpy().astype("<f4", copy=False).tobytes())
    return total.hexdigest()


def _shard(content: Any, table: pa.Table) -> Shard:
    circuit: dict[str, Any] = dict(content["circuit"])
    model: dict[str, Any] = dict(circuit["model"])
    shape = GraphShape(**model.pop("shape"))
    started_at = circuit.pop("started_at")
    made = Circuit(**(circuit | {"model": Model(**model, shape=shape), "subtask": Subtask(**circuit["subtask"])}))
    n_folds, n_single = content["n_folds"], content["n_single"]
    whole = ScoreBatch.check(shape, table["score"].to_numpy(), _columns(table, "fold", n_folds))
    return Shard(
        replace(made, started_at=None if started_at is None else datetime.fromisoformat(started_at)),
        whole.scores,
        whole.folds,
        None if n_single is None else _columns(table, "example", n_single),
        tuple(Example(**example) for example in content["examples"]),
        tuple(Accuracy(**share) for share in content["accuracy"]),
    )


def _columns(table: pa.Table, name: str, n: int) -> FloatArray:
    found = np.empty((n, table.num_rows), np.float32)
    for i in range(n):
        found[i] = table[f"{name}_{i}"].to_numpy()
    return found
