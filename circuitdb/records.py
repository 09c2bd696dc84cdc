"""What a writer hands to the store: frozen descriptions of a model, a subtask, a circuit and its examples."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from circuitdb.graph import GraphShape

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Parameters: TypeAlias = Mapping[str, "int | float | str | bool"]


def canonical_json(value: Json) -> str:
    """One text per value: keys sorted, no spaces, so that equal values have equal digests."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Json) -> str:
    """SHA-256 of the canonical JSON of `value`, in hex."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


@dataclass(frozen=True)
class Model:
    """A model, or one checkpoint of it."""

    name: str
    architecture: str
    shape: GraphShape
    n_kv_heads: int
    d_model: int
    revision: str | None = None
    n_parameters: int | None = None
    weights_digest: str | None = None


@dataclass(frozen=True)
class ImportedModel:
    """What is known of a model by a circuit of it: its name, its graph, and perhaps some sizes."""

    name: str
    shape: GraphShape
    n_kv_heads: int | None = None
    d_model: int | None = None
    revision: str | None = None
    architecture: None = None
    n_parameters: None = None
    weights_digest: None = None


@dataclass(frozen=True)
class Subtask:
    """A cell of a partition of a task, with the parameters that fix it."""

    task: str
    name: str
    parameters: Parameters = field(default_factory=dict)
    task_description: str | None = None


@dataclass(frozen=True)
class Example:
    """One question of a circuit: scored, or skipped with the reason."""

    clean: str | None
    corrupted: str | None = None
    answer: str | None = None
    corrupted_answer: str | None = None
    n_tokens: int | None = None
    fold: int | None = None
    reason: str | None = None
    prediction: str | None = None
    correct: bool | None = None
    clean_ids: Sequence[int] | None = None
    corrupted_ids: Sequence[int] | None = None
    labels: Sequence[Sequence[int]] | None = None
    reasoning: str | None = None

    @property
    def used(self) -> bool:
        """Whether it was scored."""
        return self.reason is None


@dataclass(frozen=True)
class Accuracy:
    """The model's share of right answers on a circuit's questions: value in 0..1, its standard error, n.

    `metric` and `filter` say how an answer was got and judged: as it was written, or chosen among given ones.
    """

    value: float
    stderr: float | None
    n: int
    filter: str = "greedy"
    metric: str = "accuracy"


@dataclass(frozen=True)
class ImportedFile:
    """Where an imported circuit came from.

    Attributes:
        tool: whose layout the file has, such as eap-ig.
        dialect: which of the tool's layouts.
        file: its full path; of an object, what it is.
        digest: SHA-256 of its bytes; of an object, of its scores.
        part: which of several circuits of the file, None where it has one.
        n_missing: edges of the graph that the file has nothing of.
    """

    tool: str
    dialect: str
    file: str
    digest: str
    part: str | None = None
    n_missing: int = 0


# Sizes that circuits are cut at, as shares of all edges: those of the MIB benchmark; and ways of choosing edges.
SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
TOP_ABSOLUTE, TOP_SIGNED = SELECTIONS = ("top-absolute", "top-signed")


@dataclass(frozen=True)
class Faithfulness:
    """A circuit cut to `n_edges` edges and run on the examples of a circuit, its own or another one.

    `faithfulness` is (value - corrupted) / (clean - corrupted), or None with the reason; `accuracy` the share of right
    answers that it generates, None if it was not asked.
    """

    circuit_id: int
    data_circuit_id: int
    share: float
    n_edges: int
    n_tied: int
    selection: str
    ablation: str
    metric: str
    value: float | None
    clean: float | None
    corrupted: float | None
    faithfulness: float | None
    reason: str | None
    n_examples: int
    accuracy: float | None = None


@dataclass(frozen=True)
class Circuit:
    """One soft circuit's provenance; `spec` holds all that decides its scores and is the resume key.

    `chat_template` is the text of the template that its prompts went through, None where they went through none. Of an
    imported circuit what its file does not say is None.
    """

    model: Model | ImportedModel
    subtask: Subtask
    method: str | None
    metric: str | None
    spec: dict[str, Json]
    steps: int | None = None
    grid: str | None = None
    positions: str | None = "last"
    contrast: str | None = None
    ablation: str | None = "patching"
    sign_convention: str | None = "ablated-minus-clean"
    origin: str = "ingest"
    prompt_style: str | None = None
    shots: int | None = None
    seed: int | None = None
    n_examples: int | None = None
    n_skipped: int | None = None
    metric_clean: float | None = None
    metric_corrupted: float | None = None
    bos: bool | None = None
    padding: str | None = None
    n_padded: int | None = None
    dtype: str | None = None
    device: str | None = None
    batch_size: int | None = None
    software: dict[str, Json] | None = None
    shots_drawn: str | None = None
    reasoning_tokens: int | None = None
    chat: bool | None = None
    chat_template: str | None = None
    started_at: datetime | None = None
    wall_time_s: float | None = None

    @property
    def spec_digest(self) -> str:
        """The key by which an ingest knows that this circuit is already stored."""
        return digest(self.spec)


@dataclass(frozen=True, eq=False)
class HardCircuit:
    """An imported hard circuit: its `edges` are ids, rising; `share` is that of the graph's edges it was cut for."""

    model: ImportedModel
    subtask: Subtask
    edges: npt.NDArray[np.int32]
    origin: str
    spec: dict[str, Json]
    method: str | None = None
    share: float | None = None

    @property
    def spec_digest(self) -> str:
        """The key by which an import knows that this circuit is already stored."""
        return digest(self.spec)

    @property
    def member_digest(self) -> str:
        """SHA-256 of the edge ids as little-endian int32."""
        return hashlib.sha256(self.edges.astype("<i4").tobytes()).hexdigest()
