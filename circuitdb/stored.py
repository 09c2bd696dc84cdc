"""Reads a stored circuit back with the token ids of its examples, so that it can be run in its model again."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from circuitdb import sqlfiles
from circuitdb.connection import reading
from circuitdb.errors import UsageError
from circuitdb.graph import GraphShape

_PACKAGE = "circuitdb.sql"


@dataclass(frozen=True)
class StoredExample:
    """A scored example: `labels` [scored, choice], the length of its prompt without any of the answer, the answer."""

    clean: tuple[int, ...]
    corrupted: tuple[int, ...]
    labels: tuple[tuple[int, ...], ...]
    n_prompt: int
    answer: str | None


@dataclass(frozen=True)
class StoredCircuit:
    """A circuit's scores [n_edges] (NaN where there is none), how they were made, and its scored examples."""

    circuit_id: int
    model: str
    weights_digest: str | None
    shape: GraphShape
    task: str
    subtask: str
    metric: str
    metric_source: str | None
    positions: str
    contrast: str | None
    ablation: str
    dtype: str | None
    prompt_style: str | None
    scores: npt.NDArray[np.float32]
    examples: tuple[StoredExample, ...]


def read_circuit(path: str | os.PathLike[str], circuit_id: int, *, timeout: float = 10.0) -> StoredCircuit:
    """One circuit of a database file; without examples if their token ids were not stored.

    Raises UsageError if there is none of this id.
    """
    with reading(path, timeout=timeout) as connection:
        key = {"circuit": circuit_id}
        row = connection.execute(sqlfiles.load(_PACKAGE, "stored_circuit"), key).fetchone()
        if row is None:
            raise UsageError(f"There is no circuit {circuit_id} in {path}.")
        examples = connection.execute(sqlfiles.load(_PACKAGE, "stored_examples"), key).fetchall()
        scores = connection.execute(sqlfiles.load(_PACKAGE, "stored_scores"), key).fetchnumpy()["score"]
    runnable = all(None not in run for *run, _n_prompt, _answer in examples)
    return StoredCircuit(
        circuit_id=circuit_id,
        model=row[0],
        weights_digest=row[1],
        shape=GraphShape(row[2], row[3], row[4]),
        task=row[5],
        subtask=row[6],
        metric=row[7],
        metric_source=row[8],
        positions=row[9],
        contrast=row[10],
        ablation=row[11],
        dtype=row[12],
        prompt_style=row[13],
        scores=np.ma.filled(scores, np.nan).astype(np.float32),
        examples=tuple(
            StoredExample(tuple(clean), tuple(corrupted), tuple(map(tuple, labels)), n_prompt, answer)
            for clean, corrupted, labels, n_prompt, answer in (examples if runnable else ())
        ),
    )
