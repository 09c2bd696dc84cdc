"""From files to the store: names put together, each circuit written in a transaction of its own, none twice."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from circuitdb.errors import CircuitdbError, ScoreError, UsageError
from circuitdb.graph import GraphShape
from circuitdb.ingest.formats import dataset, dataset_in, mib, recognition
from circuitdb.ingest.formats.found import ABLATED_MINUS_CLEAN, Found
from circuitdb.ingest.formats.pattern import Names, Pattern
from circuitdb.ingest.formats.transformer_lens import AttributionResult, from_attribution_result
from circuitdb.records import Circuit, HardCircuit, ImportedFile, ImportedModel, Json, Subtask
from circuitdb.store import Store

CLEAN_MINUS_ABLATED = "clean-minus-ablated"
SIGNS = (ABLATED_MINUS_CLEAN, CLEAN_MINUS_ABLATED)
WHOLE_TASK = "all"
_FIELD = re.compile(r"\{([^{}]*)\}")
_SUFFIXES = (".json", ".pt", ".pth")


@dataclass(frozen=True)
class Told:
    """What the user says of the files, before what these say themselves; None where nothing is said.

    Attributes:
        model, task, subtask: names, in which fields of the pattern may stand: `{digits_a}+{digits_b}`.
        pattern: what the names of the files say.
        revision, method, metric, steps, positions, ablation, seed, shots, examples: how the scores were made.
        sign: ablated-minus-clean, or clean-minus-ablated, whose scores are stored as their negatives.
        shape: the graph, for files that do not tell it.
    """

    model: str | None = None
    task: str | None = None
    subtask: str | None = None
    pattern: Pattern | None = None
    revision: str | None = None
    method: str | None = None
    metric: str | None = None
    steps: int | None = None
    positions: str | None = None
    ablation: str | None = None
    seed: int | None = None
    shots: int | None = None
    examples: int | None = None
    sign: str | None = None
    shape: GraphShape | None = None

    def __post_init__(self) -> None:
        if self.sign not in (None, *SIGNS):
            raise UsageError(f"A sign is {' or '.join(SIGNS)}, not {self.sign!r}.")
        if self.examples is not None and self.examples < 1:
            raise UsageError(f"A circuit is of one example at least, not {self.examples}.")


@dataclass(frozen=True)
class Imported:
    """What became of one circuit of a file: stored, kept (it was there already) or failed, with the reason.

    `kind` is circuit or hard circuit, `number` its id; `n_null` are the edges without a score, of which the file does
    not mention `n_missing`.
    """

    file: str
    status: str
    kind: str | None = None
    number: int | None = None
    model: str | None = None
    task: str | None = None
    subtask: str | None = None
    n_edges: int | None = None
    n_missing: int | None = None
    n_null: int | None = None
    reason: str | None = None
    notes: tuple[str, ...] = ()


Progress = Callable[[int, int, str], None]


def import_files(
    store: Store, paths: Sequence[Path], told: Told | None = None, *, progress: Progress | None = None
) -> list[Imported]:
    """Read the circuits of files and folders, and store those that are not there yet.

    A file that can't be read is told in its row and changes nothing; the others are stored. `progress` is called with
    the files done, all of them, and the next one's name.

    Raises UsageError for a path that is not there, StoreError for a database that can't be written.
    """
    said = told or Told()
    writer = _Writer(store)
    exports = [path for path in paths if dataset.is_dataset(path)]
    if exports and said != Told():
        raise UsageError(f"{exports[0]} says itself what its circuits are; import it without options for that.")
    groups = _groups([path for path in paths if path not in exports], said)
    n_files = sum(len(group.files) for group in groups)
    outcomes: list[Imported] = [outcome for path in exports for outcome in _of_dataset(store, path)]
    done = 0
    for group in groups:
        read: list[tuple[Path, list[Found], str]] = []
        for path in group.files:
            if progress is not None:
                progress(done, n_files, path.name)
            done += 1
            try:
                found, digest = recognition.read(path, said.shape)
            except CircuitdbError as error:
                outcomes.append(Imported(str(path), "failed", reason=str(error)))
                continue
            read.append((path, found, digest))
        shares = _shares(read)
        folder = group.names if len(group.files) == 1 or any(shares) else None
        for (path, found, digest), share in zip(read, shares, strict=True):
            outcomes += [writer.attempt(one, said, _Place(path, digest, folder, share)) for one in found]
    return outcomes


def _of_dataset(store: Store, path: Path) -> list[Imported]:
    arrived: list[dataset_in.Arrived] = []
    reason = None
    try:
        dataset_in.read(store, path, arrived)
    except ScoreError as error:
        reason = str(error)
    found = [Imported(str(path), a.status, a.kind, a.number, a.model, a.task, a.subtask, a.n_edges, None, a.n_null,
                      a.reason) for a in arrived]  # fmt: skip
    return found if reason is None else [*found, Imported(str(path), "failed", reason=reason)]


def import_result(store: Store, result: AttributionResult, told: Told) -> Imported:
    """Store an `AttributionResult` of TransformerLens, with its sign turned and its positions added up.

    Raises ScoreError for a result without scores of edges, UsageError where `told` lacks model or task.
    """
    found = from_attribution_result(result)
    assert found.scores is not None
    digest = hashlib.sha256(found.scores.astype("<f4").tobytes()).hexdigest()
    return _Writer(store).write(found, told, _Place(None, digest))


@dataclass(frozen=True)
class _Group:
    """Files whose meaning hangs together; `names` are the task and model of a MIB folder."""

    files: list[Path]
    names: tuple[str, str] | None = None


@dataclass(frozen=True)
class _Place:
    """Where a circuit is from: its file, None for an object; of a MIB folder with its names, and perhaps a share."""

    path: Path | None
    digest: str
    folder: tuple[str, str] | None = None
    share: float | None = None

    @property
    def where(self) -> str:
        return "the result" if self.path is None else str(self.path)


class _Writer:
    """Writes what was found, and knows what is there already; the database is not touched before something is found."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._soft: dict[str, int] | None = None
        self._hard: dict[str, int] = {}

    def attempt(self, found: Found, told: Told, place: _Place) -> Imported:
        """Write one circuit; names that are lacking are told in its row."""
        try:
            return self.write(found, told, place)
        except (UsageError, ScoreError) as error:
            return Imported(place.where, "failed", reason=str(error))

    def write(self, found: Found, told: Told, place: _Place) -> Imported:
        """Write one circuit, unless it is there."""
        path = place.path
        file = found.dialect if path is None else str(path.resolve())
        source = ImportedFile(found.tool, found.dialect, file, place.digest, found.part, found.n_missing)
        names = Names() if told.pattern is None or path is None else told.pattern.names(path)
        circuit = _circuit(found, told, names, place, source)
        hard = _hard(found, circuit, place.share)
        if self._soft is None:
            self._soft, self._hard = self._store.finished(), self._store.finished_hard()
        outcome = Imported(
            str(path) if path is not None else file, "stored", "hard circuit" if found.scores is None else "circuit",
            None, circuit.model.name, circuit.subtask.task, circuit.subtask.name,
            n_missing=found.n_missing, notes=found.notes,
        )  # fmt: skip
        if found.scores is None:
            assert hard is not None
            known = self._hard.get(hard.spec_digest)
            number = self._store.write_hard(hard, source) if known is None else known
            self._hard[hard.spec_digest] = number
            size, n_null = len(hard.edges), None
        else:
            known = self._soft.get(circuit.spec_digest)
            scores = -found.scores if told.sign == CLEAN_MINUS_ABLATED else found.scores
            number = self._store.write(circuit, scores, source=source, members=hard) if known is None else known
            self._soft[circuit.spec_digest] = number
            size, n_null = scores.size, int(np.count_nonzero(np.isnan(scores)))
        status = "stored" if known is None else "kept"
        return replace(outcome, status=status, number=number, n_edges=size, n_null=n_null)


def _circuit(found: Found, told: Told, names: Names, place: _Place, source: ImportedFile) -> Circuit:
    """All that is known of a circuit: the user's word first, then the name of the file, the file, and its folder."""
    folder = place.folder
    fields = {**names.told, **names.parameters}

    def name(key: str, *others: str | None) -> str | None:
        said: str | None = getattr(told, key)
        if said is not None:
            return _filled(said, fields)
        return next((str(one) for one in (names.told.get(key), *others) if one is not None), None)

    def number(key: str) -> int | None:
        said = getattr(told, key) if getattr(told, key) is not None else names.told.get(key)
        return None if said is None else int(said)

    model = name("model", folder[1] if folder else None)
    task = name("task", found.task, folder[0] if folder else None)
    for what, given in (("model", model), ("task", task)):
        if not given:
            raise UsageError(f"Which {what} is {place.where} of? Say --{what} NAME, or {{{what}}} in --pattern.")
    assert model is not None
    assert task is not None
    subtask = name("subtask", found.subtask, WHOLE_TASK if folder or place.path is None else place.path.stem)
    assert subtask is not None
    sign = ABLATED_MINUS_CLEAN if told.sign else found.sign_convention
    known: dict[str, Json] = {
        "model": model, "revision": name("revision"), "task": task, "subtask": subtask,
        "parameters": dict(names.parameters), "method": name("method", found.method), "metric": name("metric"),
        "steps": number("steps"), "positions": told.positions or found.positions,
        "ablation": name("ablation", found.ablation), "seed": number("seed"), "shots": number("shots"),
        "examples": told.examples, "sign": told.sign or found.sign_convention,
    }  # fmt: skip
    return Circuit(
        model=ImportedModel(model, found.shape, found.n_kv_heads, found.d_model, name("revision")),
        subtask=Subtask(task, subtask, names.parameters),
        method=name("method", found.method),
        metric=name("metric"),
        spec={"tool": source.tool, "digest": source.digest, "part": source.part, **known},
        steps=number("steps"),
        positions=told.positions or found.positions,
        ablation=name("ablation", found.ablation),
        sign_convention=sign,
        origin=found.tool,
        shots=number("shots"),
        seed=number("seed"),
        n_examples=told.examples,
    )


def _hard(found: Found, circuit: Circuit, share: float | None) -> HardCircuit | None:
    if found.members is None:
        return None
    assert isinstance(circuit.model, ImportedModel)
    edges = np.flatnonzero(found.members).astype(np.int32)
    spec: dict[str, Json] = {**circuit.spec, "hard": True, "share": share}
    return HardCircuit(circuit.model, circuit.subtask, edges, circuit.origin, spec, circuit.method, share)


def _filled(text: str, fields: Mapping[str, object]) -> str:
    """A name with what the pattern found in the place of its fields. Raises UsageError for a field that is not."""
    for name in _FIELD.findall(text):
        if name not in fields:
            had = ", ".join(fields) or "none, for there is no --pattern"
            raise UsageError(f"The name {text!r} has the field {{{name}}}, which the pattern has not; it has {had}.")
    return _FIELD.sub(lambda found: str(fields[found[1]]), text)


def _groups(paths: Sequence[Path], told: Told) -> list[_Group]:
    """The files one by one, but those of a MIB folder together: what each is depends on the others.

    A folder is one of MIB's if it is called so and has one file, or the nine, perhaps with the importances beside them;
    of a file that is named by itself only if it is called importances.
    """
    files: dict[Path, bool] = {}  # whether it was found in a folder
    for path in paths:
        if not path.is_dir():
            if not path.exists():
                raise UsageError(f"There is no file or folder {path}.")
            files.setdefault(path, False)
            continue
        inner = sorted(f for f in path.rglob("*") if f.suffix.lower() in _SUFFIXES and f.is_file())
        if not inner:
            raise UsageError(f"There is no .json or .pt file in the folder {path}.")
        files |= dict.fromkeys(inner, True)
    by_folder: dict[Path, list[Path]] = {}
    for file in files:
        by_folder.setdefault(file.parent, []).append(file)
    groups: list[_Group] = []
    for folder, inside in by_folder.items():
        found = all(files[file] or file.stem == mib.IMPORTANCES for file in inside)
        names = mib.names(folder.resolve()) if found and told.pattern is None else None
        if names is not None and len(inside) in (len(mib.SIZES), len(mib.SIZES) + 1):
            groups.append(_Group(inside, names))
        else:
            groups += [_Group([file], names if len(inside) == 1 else None) for file in inside]
    return groups


def _shares(read: Sequence[tuple[Path, list[Found], str]]) -> list[float | None]:
    """What each of a group of files was cut for, where they are the nine of a MIB submission."""
    bare = [found[0] for _, found, _ in read if found[0].scores is None]
    sizes = [int(one.members.sum()) for one in bare if one.members is not None]
    shares = iter(mib.shares(sizes, bare[0].shape.n_edges) if bare else ())
    return [next(shares) if found[0].scores is None else None for _, found, _ in read]
