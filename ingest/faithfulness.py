"""Faithfulness of stored circuits: cut at many sizes, run in their model, on their own examples or on other circuits'.

A cut keeps the n strongest edges: `top-absolute` of either sign, `top-signed` those whose ablation makes the metric
worse by most (raises KL, lowers a logit difference). The sizes are shares of all edges; the default ones are those of
the MIB benchmark. Each (circuit, data) pair is stored in a transaction of its own, and what is stored is not run again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from circuitdb.cuts import Cut, strongest
from circuitdb.errors import UsageError
from circuitdb.ingest import metrics
from circuitdb.ingest.batch import Group
from circuitdb.ingest.circuits import CircuitRunner, CircuitValues, Progress
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.tasks import registry
from circuitdb.records import Faithfulness
from circuitdb.store import Store
from circuitdb.stored import StoredCircuit, StoredExample, read_circuit

SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
# A gap between clean and ablated metric that is this small beside them is rounding.
_NO_GAP = 1e-9


@dataclass(frozen=True)
class Cuts:
    """How circuits are cut and run: `generate` counts their right answers too. Raises UsageError for what can't be."""

    shares: Sequence[float] = SHARES
    signed: bool = False
    generate: bool = False

    def __post_init__(self) -> None:
        if not self.shares or not all(isinstance(s, (int, float)) and 0 <= s <= 1 for s in self.shares):
            raise UsageError(f"The sizes of circuits are shares of all edges, from 0 to 1, not {list(self.shares)}.")

    @property
    def selection(self) -> str:
        """Name of the way edges are chosen."""
        return "top-signed" if self.signed else "top-absolute"


class Watcher(Protocol):
    """Who is told how it is going."""

    def progress(self, n_done: float, n_pairs: int, what: str) -> None:
        """So many of the (circuit, data) pairs are run; `what` is being run now."""


def run_faithfulness(
    store: Store,
    model: LoadedModel,
    circuit_ids: Sequence[int],
    cuts: Cuts,
    *,
    across: bool = False,
    batch_size: int | None = None,
    watcher: Watcher | None = None,
) -> int:
    """Run stored circuits on their own examples or, `across`, each on those of all; returns how many pairs were run.

    Raises:
        UsageError: a circuit that isn't there, is of other weights than the model, or was stored without token ids.
        ModelError: a model whose edges can't be told apart.
        StoreError: the database can't be written.
    """
    circuits = [read_circuit(store.path, i, timeout=store.timeout) for i in circuit_ids]
    for circuit in circuits:
        if circuit.weights_digest != model.record.weights_digest:
            raise UsageError(
                f"Circuit {circuit.circuit_id} is of {circuit.model} with other weights, or of another type, than "
                f"{model.record.name} as it is loaded here; load the model that it was scored in."
            )
        metrics.find(circuit.metric)
    done = store.faithful(cuts.selection, answered=cuts.generate)
    pairs = [(c, d) for d in circuits for c in (circuits if across else [d])]
    missing = [(c, d) for c, d in pairs if any((c.circuit_id, d.circuit_id, s) not in done for s in cuts.shares)]
    runners: dict[str, CircuitRunner] = {}
    for number, (circuit, data) in enumerate(missing):
        what = f"{circuit.subtask} on {data.subtask}" if across else circuit.subtask
        if circuit.ablation not in runners:
            runners[circuit.ablation] = CircuitRunner(model, ablation=circuit.ablation, batch_size=batch_size)

        def progress(share: float, number: int = number, what: str = what) -> None:
            if watcher is not None:
                watcher.progress(number + share, len(missing), what)

        progress(0.0)
        store.write_faithfulness(_Pair(runners[circuit.ablation], circuit, data, cuts).rows(progress))
    return len(missing)


class _Pair:
    """A circuit's cuts on the examples of a circuit."""

    def __init__(self, runner: CircuitRunner, circuit: StoredCircuit, data: StoredCircuit, cuts: Cuts) -> None:
        self.runner, self.circuit, self.data, self.cuts = runner, circuit, data, cuts
        self.metric = metrics.find(circuit.metric)
        self.groups = _groups(data.examples)
        self.references = [group.corrupted for group in self.groups]

    def rows(self, progress: Progress) -> list[Faithfulness]:
        """One for each share."""
        sizes = [int(share * self.circuit.shape.n_edges) for share in self.cuts.shares]
        strength = self._strength()
        chosen = [strongest(strength, n) for n in sizes]
        kept = np.stack([cut.kept for cut in chosen])
        found = self.runner.evaluate(self.groups, kept, self.metric, references=self.references, progress=progress)
        right = [self._accuracy(cut.kept) if self.cuts.generate else None for cut in chosen]
        return [
            self._row(found, i, share, n, cut, accuracy)
            for i, (share, n, cut, accuracy) in enumerate(zip(self.cuts.shares, sizes, chosen, right, strict=True))
        ]

    def _strength(self) -> npt.NDArray[np.float32]:
        """What edges are ranked by, largest first."""
        if not self.cuts.signed:
            return np.abs(self.circuit.scores)
        return -self.circuit.scores if self.metric.higher_is_better else self.circuit.scores

    def _row(
        self, found: CircuitValues, i: int, share: float, n_edges: int, cut: Cut, accuracy: float | None
    ) -> Faithfulness:
        gap = found.clean - found.ablated
        reason = None
        if not math.isfinite(gap) or not math.isfinite(found.values[i]):
            reason = "the metric is not finite"
        elif abs(gap) <= _NO_GAP * max(1.0, abs(found.clean)):
            reason = "ablating every edge does not change the metric"
        return Faithfulness(
            circuit_id=self.circuit.circuit_id,
            data_circuit_id=self.data.circuit_id,
            share=float(share),
            n_edges=n_edges,
            n_tied=cut.n_tied,
            selection=self.cuts.selection,
            ablation=self.circuit.ablation,
            metric=self.circuit.metric,
            value=_finite(float(found.values[i])),
            clean=_finite(found.clean),
            corrupted=_finite(found.ablated),
            faithfulness=None if reason else float(found.faithfulness[i]),
            reason=reason,
            n_examples=found.n_examples,
            accuracy=accuracy,
        )

    def _accuracy(self, kept: npt.NDArray[np.bool_]) -> float:
        """Share of the examples whose answer the circuit alone writes, greedily."""
        model, right = self.runner.model, 0
        if model.tokenizer is None:
            raise UsageError(f"{model.record.name} has no tokenizer, so its answers can't be read.")
        for length in sorted({e.n_prompt for e in self.data.examples}):
            members = [e for e in self.data.examples if e.n_prompt == length]
            prompts, corrupted = (
                torch.tensor([ids[:length] for ids in side])
                for side in ([e.clean for e in members], [e.corrupted for e in members])
            )
            n_tokens = 1 + max(self._n_answer(e) for e in members)
            written = self.runner.generate(prompts, corrupted, kept, n_tokens, references=self.references)
            texts = [str(model.tokenizer.decode(ids, skip_special_tokens=True)) for ids in written.tolist()]
            read = registry.reader(self.data.task)
            right += sum(read(t.split("\n")[0].strip()) == e.answer for t, e in zip(texts, members, strict=True))
        return right / len(self.data.examples)

    def _n_answer(self, example: StoredExample) -> int:
        tokenizer = self.runner.model.tokenizer
        if tokenizer is None or example.answer is None:
            return 1
        return len(tokenizer(example.answer, add_special_tokens=False)["input_ids"])


def _groups(examples: Sequence[StoredExample]) -> list[Group]:
    """Examples of one length, number of scored positions and number of choices together."""
    kinds = sorted({(len(e.clean), len(e.labels), len(e.labels[0])) for e in examples})
    found = []
    for kind in kinds:
        members = [e for e in examples if (len(e.clean), len(e.labels), len(e.labels[0])) == kind]
        found.append(
            Group(
                clean=torch.tensor([e.clean for e in members]),
                corrupted=torch.tensor([e.corrupted for e in members]),
                labels=torch.tensor([e.labels for e in members]),
                fold=torch.zeros(len(members), dtype=torch.int64),
                n_scored=kind[1],
            )
        )
    return found


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
