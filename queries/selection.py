"""Which circuits a question is about: their order, labels and groups, and what must not pass unsaid.

Circuits compare like with like only within a `Group`: one model, task and way of scoring. Across groups the numbers
can still be had, with a note that says what is mixed; across graph shapes there is nothing to compare.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias, cast

import duckdb

from circuitdb.errors import UsageError
from circuitdb.graph import GraphShape
from circuitdb.queries import named
from circuitdb.queries.comparison import EVERY_EDGE, Comparison
from circuitdb.queries.filters import FILTERS, Where, fits, wanted
from circuitdb.queries.models import ModelName, model_names, namesakes
from circuitdb.queries.result import count, enumeration

SortKey: TypeAlias = "tuple[tuple[Any, ...], ...]"

_FIELDS = {  # of a group, in order: (one, several)
    "model": ("model", "models"),
    "revision": ("revision", "revisions"),
    "task": ("task", "tasks"),
    "origin": ("origin", "origins"),
    "method": ("method", "methods"),
    "steps": ("number of steps", "numbers of steps"),
    "grid": ("grid", "grids"),
    "metric": ("metric", "metrics"),
    "positions": ("choice of positions", "choices of positions"),
    "contrast": ("choice of answers to compare with", "choices of answers to compare with"),
    "ablation": ("ablation", "ablations"),
    "sign_convention": ("sign convention", "sign conventions"),
    "prompt_style": ("prompt style", "prompt styles"),
    "shots": ("number of shots", "numbers of shots"),
    "shots_drawn": ("way of drawing shots", "ways of drawing shots"),
    "reasoning_tokens": ("limit of reasoning tokens", "limits of reasoning tokens"),
    "chat": ("choice of chat template", "choices of chat template"),
    "seed": ("seed", "seeds"),
    "examples": ("number of examples", "numbers of examples"),
    "dtype": ("number format", "number formats"),
}
_FOLLOWING = {"prompt_style": ("reasoning_tokens",), "shots": ("shots_drawn",)}  # fields that differ where these do


@dataclass(frozen=True)
class Group:
    """What two circuits must share for their similarity to say something about their subtasks alone.

    `model` is the name as shown: with a mark where models of other weights have it too. `examples` is how many were
    drawn, scored or skipped: circuits of one run do not part because one of them had to skip a question. `origin` is
    ingest or the tool whose file it came from; what that file does not say is None.
    """

    model_id: int
    model: str
    revision: str | None
    task: str
    method: str | None
    steps: int | None
    grid: str | None
    metric: str | None
    positions: str | None
    contrast: str | None
    ablation: str | None
    sign_convention: str | None
    prompt_style: str | None
    shots: int | None
    seed: int | None
    examples: int | None
    dtype: str | None
    shots_drawn: str | None = None
    reasoning_tokens: int | None = None
    chat: str | None = None
    origin: str = "ingest"


def field_name(field: str) -> str:
    """What a field of a group is called in a sentence."""
    return _FIELDS[field][0]


def can_filter(group: Group, field: str) -> bool:
    """Whether a filter can ask for what this group has of a field."""
    return field in FILTERS and getattr(group, field) is not None


@dataclass(frozen=True)
class Member:
    """One selected circuit. `label` names it within the selection."""

    circuit_id: int
    label: str
    subtask: str
    parameters: Mapping[str, int | float | str | bool]
    group: Group
    graph_id: int
    shape: GraphShape
    n_kv_heads: int | None
    n_edges: int
    n_examples: int | None
    n_folds: int
    score_digest: str
    spec_digest: str


@dataclass(frozen=True)
class Selection:
    """The circuits of a question in the order of its answer, and the notes that any answer about them carries."""

    members: tuple[Member, ...]
    notes: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[int, ...]:
        """Circuit ids."""
        return tuple(member.circuit_id for member in self.members)

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels, each unique."""
        return tuple(member.label for member in self.members)

    def groups(self) -> dict[Group, Selection]:
        """The selection parted into groups, in order."""
        parts: dict[Group, list[Member]] = {}
        for member in self.members:
            parts.setdefault(member.group, []).append(member)
        return {group: Selection(tuple(members)) for group, members in parts.items()}

    def part(self, rows: Iterable[int]) -> Selection:
        """Some of the circuits, by their places; without the notes, which are about all."""
        return Selection(tuple(self.members[i] for i in rows))

    def compared(self, how: Comparison = EVERY_EDGE, *, apart_from: str = "") -> Selection:
        """The selection as one set of circuits to compare, described.

        Raises UsageError if their scores do not line up: for edges they must be of one graph shape, for shared
        projections of one number of key-value heads too, for nodes of the same layers and heads.
        """
        self.require_alike(how)
        return self.described(apart_from=apart_from)

    def described(self, *, apart_from: str = "") -> Selection:
        """With notes on duplicates and on fields of the groups that differ, but for one in which they are meant to."""
        return replace(self, notes=(*self.notes, *self._mixtures(apart_from), *self.duplicates()))

    def duplicates(self) -> tuple[str, ...]:
        """A note for each set of circuits whose scores are the same number by number."""
        same: dict[str, list[Member]] = {}
        for member in self.members:
            same.setdefault(member.score_digest, []).append(member)
        return tuple(
            f"Circuits {enumeration(f'{m.circuit_id} ({m.label})' for m in twins)} have identical scores, as if one "
            "run was stored twice: they are no independent evidence."
            for twins in same.values()
            if len(twins) > 1
        )

    def _mixtures(self, apart_from: str) -> tuple[str, ...]:
        apart = (apart_from, *_FOLLOWING.get(apart_from, ()))
        mixed = [
            f"{len(values)} {several} ({enumeration('none' if v is None else v for v in values)})"
            for field, (_, several) in _FIELDS.items()
            if field not in apart and len(values := dict.fromkeys(getattr(m.group, field) for m in self.members)) > 1
        ]
        if not mixed:
            return ()
        return (f"The selection mixes {' and '.join(mixed)}: a low similarity may come from that alone.",)

    def require_alike(self, how: Comparison) -> None:
        """Raise UsageError, saying why, unless what `how` compares is the same in all circuits."""
        if (unlike := self.unlike(how)) is None:
            return
        nodal = how.level != "node" and len({(m.shape.n_layers, m.shape.n_heads) for m in self.members}) == 1
        raise UsageError(
            f"{unlike}; choose those of one shape, for example model={self.members[0].group.model!r}"
            f"{', or compare them node by node (level=' + repr('node') + ')' if nodal else ''}."
        )

    def unlike(self, how: Comparison) -> str | None:
        """Why what `how` compares is not the same in all circuits; None where it is.

        Raises UsageError for shared projections of imported circuits of which it is not known how many there are.
        """
        nodes, shared = how.level == "node", how.shared and how.level == "edge"

        def graph(member: Member) -> tuple[object, ...]:
            shape = member.shape
            same = (shape.n_layers, shape.n_heads) if nodes else (member.graph_id, shape)
            return (*same, member.n_kv_heads if shared else None)

        if shared and any(member.n_kv_heads is None for member in self.members):
            raise UsageError(
                "Of some of these circuits it is not known how many key-value heads their model has, since the files "
                "that they were imported from do not say; compare them without shared."
            )
        found = Counter(map(graph, self.members))
        if len(found) < 2:
            return None
        example = {key: next(m for m in self.members if graph(m) == key) for key in found}
        listed = "; ".join(
            f"{count(n, 'circuit')} of {_shape(example[key], shared)} ({example[key].group.model})"
            for key, n in found.items()
        )
        return (
            f"These circuits are of different graph shapes: {listed}. "
            f"{'A node' if nodes else 'An edge'} of one shape is no {'node' if nodes else 'edge'} of the other, so "
            "their scores do not line up"
        )


def _shape(member: Member, shared: bool) -> str:
    shape = member.shape
    parts = [f"{count(shape.n_layers, 'layer')} x {count(shape.n_heads, 'head')}"]
    parts += ["parallel blocks"] if shape.parallel else []
    parts += [count(member.n_kv_heads, "key-value head")] if shared and member.n_kv_heads is not None else []
    return ", ".join(parts)


def select(connection: duckdb.DuckDBPyConnection, where: Where) -> Selection:
    """The circuits that pass every filter, sorted by group and then by subtask: 1+1, 1+2, ..., 1+10.

    Raises UsageError for a name or id that the database does not have, and if nothing passes.
    """
    asked = wanted(where)
    models = model_names(connection)
    members = _members(connection, asked, models)
    missing = [
        (field, value)
        for field, values in asked.items()
        for value in values
        if all(value not in _values(member, field, models) for member in members)
    ]
    notes: list[str] = []
    everything = _members(connection, {}, models) if missing else members
    if not everything:
        notes.append("The database holds no circuit yet; `circuitdb ingest` fills it.")
        missing = []
    for field, value in missing:
        valid = list(dict.fromkeys(v for member in everything for v in _values(member, field, models)))
        if value not in valid:
            raise _unknown(field, value, valid)
        notes.append(f"No circuit of the selection has {FILTERS[field][0]} {value}.")
    if everything and not members:
        given = " and ".join(f"{FILTERS[field][0]} {enumeration(values)}" for field, values in asked.items())
        raise UsageError(f"No circuit has {given}: the names exist, but not together; drop a filter.")
    notes += namesakes([models[member.group.model_id] for member in members])
    notes += _of_unknown_method(members)
    return Selection(tuple(members), tuple(notes))


def _of_unknown_method(members: Iterable[Member]) -> tuple[str, ...]:
    """A note where imported circuits stand side by side although nobody said how they were made."""
    groups = Counter(member.group for member in members)
    n = sum(often for group, often in groups.items() if group.method is None and often > 1)
    if not n:
        return ()
    return (
        f"How {count(n, 'imported circuit')} were made is not known, so that they were made alike is taken on trust; "
        "`circuitdb import --method` says it.",
    )


def _members(
    connection: duckdb.DuckDBPyConnection,
    asked: Mapping[str, tuple[int | str, ...]],
    models: Mapping[int, ModelName],
) -> list[Member]:
    """The circuits that pass, sorted and labelled."""
    if any(not any(fits(field, value) for value in values) for field, values in asked.items()):
        return []
    bound = {
        name: cast("Sequence[str]", [value for value in asked[field] if fits(field, value)]) if field in asked else None
        for field, (_, name) in FILTERS.items()
    }
    ids = [key for key, model in models.items() if {model.name, model.shown} & set(asked.get("model", ()))]
    rows: list[dict[str, Any]] = named.run(
        connection, "selection", **{**bound, "models": ids if "model" in asked else None}
    ).to_pylist()
    for row in rows:
        row["model"] = models[row["model_id"]].shown
    members = [
        Member(
            circuit_id=row["circuit_id"],
            label=row["subtask"],
            subtask=row["subtask"],
            parameters=json.loads(row["parameters"]),
            group=Group(**{field.name: row[field.name] for field in dataclasses.fields(Group)}),
            graph_id=row["graph_id"],
            shape=GraphShape(row["n_layers"], row["n_heads"], row["parallel"]),
            n_kv_heads=row["n_kv_heads"],
            n_edges=row["n_edges"],
            n_examples=row["n_examples"],
            n_folds=row["n_folds"],
            score_digest=row["score_digest"],
            spec_digest=row["spec_digest"],
        )
        for row in sorted(rows, key=_place)
    ]
    return _labelled(members)


def _place(row: Mapping[str, Any]) -> tuple[SortKey, ...]:
    """By group, then by the subtask's parameters, numbers as numbers, then by its name."""
    parameters = json.loads(row["parameters"])
    return (
        *(_orderable(row[field]) for field in ("model", "model_id", *list(_FIELDS)[1:])),
        tuple(_orderable(part) for key in sorted(parameters) for part in (key, parameters[key])),
        _orderable(row["subtask"]),
        _orderable(row["circuit_id"]),
    )


@lru_cache(maxsize=4096)
def _orderable(value: object) -> SortKey:
    """None before numbers before texts; digits within a text count as numbers, so that part 2 comes before part 10."""
    if value is None:
        return ()
    if isinstance(value, int | float):
        return ((0, value, ""),)
    pieces = re.split(r"(\d+)", str(value))
    return tuple((1, int(piece), "") if piece.isdecimal() else (1, -1, piece) for piece in pieces)


def _labelled(members: Sequence[Member]) -> list[Member]:
    """With labels: the subtask, after the model, task and method where these differ, before the id where all agree."""
    varying = [
        field for field in ("model", "task", "method") if len({getattr(member.group, field) for member in members}) > 1
    ]
    labels = ["/".join([*(getattr(m.group, field) or "unknown" for field in varying), m.subtask]) for m in members]
    often = Counter(labels)
    return [
        replace(member, label=label if often[label] == 1 else f"{label}#{member.circuit_id}")
        for member, label in zip(members, labels, strict=True)
    ]


def _values(member: Member, field: str, models: Mapping[int, ModelName]) -> tuple[int | str, ...]:
    """What a filter may say to let this circuit through; nothing where the circuit has no such value."""
    if field == "circuits":
        return (member.circuit_id,)
    if field == "model":
        model = models[member.group.model_id]
        return (model.name, model.shown)
    value = member.subtask if field == "subtask" else getattr(member.group, field)
    return () if value is None else (value,)


def _unknown(field: str, value: int | str, valid: Sequence[int | str]) -> UsageError:
    near = difflib.get_close_matches(str(value), map(str, valid), n=1, cutoff=0.5) if isinstance(value, str) else []
    guess = f"; did you mean {near[0]}?" if near else "."
    listed = enumeration(sorted(valid, key=_orderable)) or "none"
    return UsageError(f"There is no {FILTERS[field][0]} {value}{guess} The database has: {listed}.")
