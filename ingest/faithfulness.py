"""Faithfulness of stored circuits: cut at many sizes, run in their model, on their own examples or on other circuits'.

A cut keeps the n strongest edges: `top-absolute` of either sign, `top-signed` those whose ablation makes the metric
worse by most (raises KL, lowers a logit difference). The sizes are shares of all edges; the default ones are those of
the MIB benchmark. Each (circuit, data) pair is stored in a transaction of its own, and what is stored is not run again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from circuitdb.cuts import Strongest, strongest
from circuitdb.errors import UsageError
from circuitdb.ingest import metrics
from circuitdb.ingest.alignment import EQUAL, LEFT_PAD
from circuitdb.ingest.batch import Group
from circuitdb.ingest.circuits import CircuitRunner, CircuitValues, Progress
from circuitdb.ingest.methods import MEAN_POSITIONAL, PATCHING, ZERO
from circuitdb.ingest.models import LoadedModel
from circuitdb.ingest.tasks import registry
from circuitdb.ingest.tasks.registry import Reader
from circuitdb.records import SHARES, TOP_ABSOLUTE, TOP_SIGNED, Faithfulness
from circuitdb.store import Store
from circuitdb.stored import StoredCircuit, StoredExample, read_circuit


@dataclass(frozen=True)
class Cuts:
    """How circuits are cut and run: `generate` counts their right answers too. Raises UsageError for what can't be."""

    shares: Sequence[float] = SHARES
    signed: bool = False
    generate: bool = False

    def __post_init__(self) -> None:
        given: object = self.shares
        listed = list(given) if isinstance(given, Iterable) and not isinstance(given, (str, Mapping)) else []
        if not listed or not all(type(s) in (int, float) and 0 <= s <= 1 for s in listed):
            raise UsageError(f"The sizes of circuits are shares of all edges, from 0 to 1, not {given!r}.")
        object.__setattr__(self, "shares", tuple(sorted(set(listed))))

    @property
    def selection(self) -> str:
        """Name of the way edges are chosen."""
        return TOP_SIGNED if self.signed else TOP_ABSOLUTE


class Watcher(Protocol):
    """Who is told how it is going."""

    def skipped(self, reason: str) -> None:
        """Circuits that can't be run in this model."""

    def progress(self, n_done: float, n_pairs: int, what: str) -> None:
        """So many of the (circuit, data) pairs are run; `what` is being run now."""


def run_faithfulness(
    store: Store,
    model: LoadedModel,
    circuit_ids: Sequence[int],
    cuts: Cuts,
    *,
    across: bool = False,
    readers: Mapping[str, Reader] | None = None,
    batch_size: int | None = None,
    watcher: Watcher | None = None,
) -> int:
    """Run stored circuits on their own examples or, `across`, each on those of all; returns how many pairs were run.

    Circuits that can't be run in this model (of another one, without token ids, of a metric not known here) are left
    out, and `watcher` is told. Everything is checked before the first pass.

    Args:
        store: where the circuits are, and where the runs go.
        model: the model that they were scored in.
        circuit_ids: which circuits.
        cuts: how they are cut.
        across: run each on the examples of every other one, too.
        readers: for generation, how the answer is read from what a model wrote, by name of a task of your own
            (`Task.read_answer`).
        batch_size: pairs in one pass; by default as many as fit in memory.
        watcher: told how it is going.

    Raises:
        UsageError: a circuit that isn't there; none that can be run; circuits to cross that were scored in different
            ways; answers that can't be read.
        ModelError: a model whose edges can't be told apart.
        StoreError: the database can't be written.
    """
    if not all(type(i) is int for i in circuit_ids):
        raise UsageError(f"Circuits are named by their numbers, not {list(circuit_ids)!r}.")
    circuits = [read_circuit(store.path, i, timeout=store.timeout) for i in circuit_ids]
    read = {**registry.readers({c.task for c in circuits} if cuts.generate else ()), **(readers or {})}
    left_out = {c.circuit_id: reason for c in circuits if (reason := _unfit(model, c)) is not None}
    own = [circuit for circuit in circuits if circuit.circuit_id not in left_out]
    for reason in sorted(set(left_out.values())):
        numbers = ", ".join(str(i) for i, why in left_out.items() if why == reason)
        told = f"Circuits that {reason} are left out: {numbers}."
        if not own:
            raise UsageError(told.replace("are left out", "can't be run"))
        if watcher is not None:
            watcher.skipped(told)
    for circuit in own:
        _check(model, circuit, cuts, read)
    if across:
        _check_alike(own)
    done = store.faithful(cuts.selection, answered=cuts.generate)
    pairs = [(c, d) for d in own for c in (own if across else [d])]
    missing = [(c, d) for c, d in pairs if any((c.circuit_id, d.circuit_id, s) not in done for s in cuts.shares)]
    runners: dict[str, CircuitRunner] = {}
    data = {circuit.circuit_id: _Data(circuit) for circuit in own}
    for number, (circuit, other) in enumerate(missing):
        what = f"{circuit.subtask} on {other.subtask}" if across else circuit.subtask
        if circuit.ablation not in runners:
            runners[circuit.ablation] = CircuitRunner(model, ablation=circuit.ablation, batch_size=batch_size)

        def progress(share: float, number: int = number, what: str = what) -> None:
            if watcher is not None:
                watcher.progress(number + share, len(missing), what)

        progress(0.0)
        reader = read.get(other.task) if cuts.generate else None
        pair = _Pair(runners[circuit.ablation], circuit, data[other.circuit_id], cuts, reader)
        store.write_faithfulness(pair.rows(progress))
    return len(missing)


def _unfit(model: LoadedModel, circuit: StoredCircuit) -> str | None:
    """Why a circuit can't be run in this model, as a clause; tf32 and float32 have the same weights."""
    if circuit.weights_digest is None:
        return "were imported, so that the weights and examples they were scored with are not known"
    if circuit.weights_digest != model.record.weights_digest or circuit.dtype not in (None, model.dtype_name):
        return f"were scored in another model, revision or type than {model.record.name} as {model.dtype_name}"
    if not circuit.examples:
        return "were stored without the token ids of their examples (--replace scores them again)"
    if circuit.metric not in metrics.METRICS or metrics.find(circuit.metric).source != circuit.metric_source:
        return f"were scored with a metric {circuit.metric} that is not registered here"
    return None


def _check(model: LoadedModel, circuit: StoredCircuit, cuts: Cuts, readers: Mapping[str, Reader]) -> None:
    if not cuts.generate:
        return
    if model.tokenizer is None:
        raise UsageError(f"{model.record.name} has no tokenizer, so its answers can't be read.")
    if circuit.task not in readers:
        raise UsageError(
            f"How answers of {circuit.task} are read is not known here; give run_faithfulness the reader of the task."
        )
    if circuit.prompt_style == "chain-of-thought" and circuit.positions == "all":
        raise UsageError(
            f"The prompts of circuit {circuit.circuit_id} end before its reasoning, and no answer follows there; leave "
            "it or --generate out."
        )
    if circuit.ablation == MEAN_POSITIONAL:
        raise UsageError(
            f"Circuit {circuit.circuit_id} ablates by a mean at each position, which written tokens have none of; "
            "leave it or --generate out."
        )


def _check_alike(circuits: Sequence[StoredCircuit]) -> None:
    """One circuit's metric on another's examples means something only if both were scored in the same way."""
    for name in ("metric", "positions", "contrast", "ablation"):
        ways = sorted({str(getattr(circuit, name) or "none") for circuit in circuits})
        if len(ways) > 1:
            raise UsageError(
                f"Circuits of different {name} ({', '.join(ways)}) can't be run across each other's examples; choose "
                "those of one with filters such as --metric or --circuit."
            )


class _Data:
    """The examples of a circuit, made ready once for all circuits that are run on them."""

    def __init__(self, circuit: StoredCircuit) -> None:
        self.circuit, self.groups = circuit, _groups(circuit.examples)
        self.references = None if circuit.ablation in (PATCHING, ZERO) else [group.corrupted for group in self.groups]


class _Pair:
    """A circuit's cuts on the examples of a circuit; `reader` is None where no answers are asked for."""

    def __init__(
        self, runner: CircuitRunner, circuit: StoredCircuit, data: _Data, cuts: Cuts, reader: Reader | None
    ) -> None:
        self.runner, self.circuit, self.cuts, self.reader = runner, circuit, cuts, reader
        self.data, self.groups, self.references = data.circuit, data.groups, data.references
        self.metric = metrics.find(circuit.metric)

    def rows(self, progress: Progress) -> list[Faithfulness]:
        """One for each share."""
        # Rounded first, so that 0.57 of 100 edges is 57 of them.
        sizes = [int(round(share * self.circuit.shape.n_edges, 6)) for share in self.cuts.shares]
        strength = self._strength()
        chosen = [strongest(strength, n) for n in sizes]
        kept = np.stack([cut.kept for cut in chosen])
        found = self.runner.evaluate(self.groups, kept, self.metric, references=self.references, progress=progress)
        right = [None if self.reader is None else self._accuracy(cut.kept, self.reader) for cut in chosen]
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
        self, found: CircuitValues, i: int, share: float, n_edges: int, cut: Strongest, accuracy: float | None
    ) -> Faithfulness:
        reason = None
        if not math.isfinite(found.clean - found.ablated) or not math.isfinite(found.values[i]):
            reason = "the metric is not finite"
        elif not found.has_gap:
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

    def _accuracy(self, kept: npt.NDArray[np.bool_], reader: Reader) -> float:
        """Share of the examples whose answer the circuit alone writes, greedily."""
        tokenizer, right = self.runner.model.tokenizer, 0
        if tokenizer is None:
            raise AssertionError("checked before the first pass")
        kinds = [(e.n_prompt, e.n_prompt + len(e.corrupted) - len(e.clean)) for e in self.data.examples]
        for lengths in sorted(set(kinds)):
            members = [e for e, own in zip(self.data.examples, kinds, strict=True) if own == lengths]
            prompts = torch.tensor([e.clean[: lengths[0]] for e in members])
            corrupted = torch.tensor([e.corrupted[: lengths[1]] for e in members])
            n_tokens, align = 1 + max(self._n_answer(e) for e in members), _align(*lengths)
            written = self.runner.generate(prompts, corrupted, kept, n_tokens, references=self.references, align=align)
            texts = [str(tokenizer.decode(ids, skip_special_tokens=True)) for ids in written.tolist()]
            right += sum(reader(t.split("\n")[0].strip()) == e.answer for t, e in zip(texts, members, strict=True))
        return right / len(self.data.examples)

    def _n_answer(self, example: StoredExample) -> int:
        tokenizer = self.runner.model.tokenizer
        if tokenizer is None or example.answer is None:
            return 1
        return len(tokenizer(example.answer, add_special_tokens=False)["input_ids"])


def _groups(examples: Sequence[StoredExample]) -> list[Group]:
    """Examples of one length of either run, number of scored positions and number of choices together."""
    kinds = [(len(e.clean), len(e.corrupted), len(e.labels), len(e.labels[0])) for e in examples]
    found = []
    for kind in sorted(set(kinds)):
        members = [e for e, own in zip(examples, kinds, strict=True) if own == kind]
        found.append(
            Group(
                clean=torch.tensor([e.clean for e in members]),
                corrupted=torch.tensor([e.corrupted for e in members]),
                labels=torch.tensor([e.labels for e in members]),
                fold=torch.zeros(len(members), dtype=torch.int64),
                n_scored=kind[2],
                align=_align(*kind[:2]),
            )
        )
    return found


def _align(n_clean: int, n_corrupted: int) -> str:
    return EQUAL if n_clean == n_corrupted else LEFT_PAD


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
