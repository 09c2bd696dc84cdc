"""Brings circuits that were scored without a database into one, each once, in a transaction of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from circuitdb import shards, sqlfiles
from circuitdb.batches import score_digest
from circuitdb.connection import reading
from circuitdb.errors import ScoreError, UsageError
from circuitdb.store import Store


@dataclass(frozen=True)
class Merged:
    """What became of a circuit's file: `stored`, `kept` (it was there already) or `refused`, with the reason."""

    file: str
    status: str
    subtask: str | None = None
    circuit_id: int | None = None
    reason: str | None = None


def merge(store: Store, paths: Sequence[str | os.PathLike[str]]) -> Iterator[Merged]:
    """Bring files, or all those of folders, into the database; what became of each, as it is done.

    What is stored already is kept, so that a merge can be repeated and go on after a stop. A file that is not whole,
    and a circuit that a folder should have and has not, is refused, and the others go in. Raises UsageError, before any
    is merged, where there is nothing of a name; StoreError if the database can't be written.
    """
    wanted = [(Path(path), list(_files(Path(path)))) for path in paths]
    store.create()
    stored = store.finished()
    complete = store.finished(by_example=True)
    with reading(store.path, timeout=store.timeout) as connection:
        scores_of = dict(connection.execute(sqlfiles.load("circuitdb.sql", "recorded_digests")).fetchall())
    for path, files in wanted:
        there = set()
        for file in files:
            try:
                found = shards.read(file)
            except ScoreError as error:
                yield Merged(str(file), "refused", reason=str(error))
                continue
            digest, subtask = found.circuit.spec_digest, found.circuit.subtask.name
            there.add(digest)
            more = found.by_example is not None and digest not in complete
            if digest in stored and not more:
                same = scores_of.get(stored[digest]) in (None, score_digest(found.scores))
                reason = None if same else "Its scores differ from the stored ones, which are kept."
                yield Merged(str(file), "kept", subtask, stored[digest], reason)
                continue
            new = digest not in stored
            stored[digest] = store.write(
                found.circuit, found.scores, found.folds, examples=found.examples, by_example=found.by_example,
                accuracy=found.accuracy,
            )  # fmt: skip
            yield Merged(str(file), "stored" if new else "kept", subtask, stored[digest])
        yield from _lacking(path, there)


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        found = sorted(path.glob("*.parquet"))
        if not found and not any(path.glob(shards.MANIFESTS)):
            raise UsageError(f"{path} has no circuits; name what `circuitdb ingest --work ... --out` wrote.")
        yield from found
    elif path.exists():
        yield path
    else:
        raise UsageError(f"There is no {path}; name what `circuitdb ingest --work ... --out` wrote.")


def _lacking(path: Path, there: set[str]) -> Iterator[Merged]:
    """What the manifests of a folder promise and its files have not."""
    for manifest in sorted(path.glob(shards.MANIFESTS)) if path.is_dir() else ():
        try:
            said = json.loads(manifest.read_text(encoding="utf-8"))
            number, of = map(int, said["shard"])
            circuits = dict(said["circuits"])
        except (ValueError, KeyError, TypeError) as error:
            yield Merged(str(manifest), "refused", reason=f"{manifest} can't be read: {error}; run its shard again.")
            continue
        for digest, subtask in circuits.items():
            file = path / f"{digest}.parquet"
            if digest not in there and not file.exists():
                reason = f"It is not scored yet: run shard {number}/{of} again."
                yield Merged(str(file), "refused", str(subtask), reason=reason)
