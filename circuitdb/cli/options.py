"""The options that commands share, each defined once: the database, the filters, the form of the answer.

A command that asks the database is a function of an `Ask` and of its own options, decorated with `question`: the
shared options join its signature there, which is where typer looks for them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from circuitdb.cli import interrupts
from circuitdb.errors import UsageError

if TYPE_CHECKING:
    from circuitdb.queries.comparison import Compared
    from circuitdb.queries.database import Database
    from circuitdb.queries.selection import Where

DEFAULT_DATABASE = "circuits.duckdb"

DatabaseFile = Annotated[str, typer.Option("--db", envvar="CIRCUITDB", metavar="FILE", help="The database file.")]
Patience = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", min=0, help="How long to wait for a process that is writing to it."),
]


class Form(StrEnum):
    """What an answer is printed as."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


class On(StrEnum):
    """What is compared: the signed scores, or how large they are."""

    SIGNED = "signed"
    MAGNITUDE = "magnitude"


class Kind(StrEnum):
    """Coefficients of similarity."""

    SPEARMAN = "spearman"
    PEARSON = "pearson"
    KENDALL = "kendall"
    COSINE = "cosine"
    OVERLAP = "overlap"
    KAPPA = "kappa"


class Level(StrEnum):
    """What is compared one by one."""

    EDGE = "edge"
    NODE = "node"


class Source(StrEnum):
    """Kinds of nodes that write."""

    INPUT = "input"
    HEAD = "head"
    MLP = "mlp"


class Target(StrEnum):
    """Kinds of nodes that read."""

    HEAD = "head"
    MLP = "mlp"
    LOGITS = "logits"


class Qkv(StrEnum):
    """Inputs of a head."""

    Q = "q"
    K = "k"
    V = "v"


OnScores = Annotated[On, typer.Option("--on", help="Compare signed scores (the paper's definition) or magnitudes.")]


@dataclass(frozen=True)
class Ask:
    """What every question shares; `filters` and `comparison` are keywords of the methods of `Database`."""

    path: str
    timeout: float
    filters: Where
    comparison: Compared
    form: Form

    @property
    def database(self) -> Database:
        """The database, opened for this question."""
        import circuitdb

        return circuitdb.open(self.path, timeout=self.timeout)


def question(
    *, filters: bool = True, compares: bool = False, csv: bool = True, form: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the shared options; it gets them as its first argument, an `Ask`.

    Args:
        filters: whether it can be asked about some of the circuits.
        compares: whether it compares circuits, by one of several coefficients and over some of the edges.
        csv: whether its answer can be written as CSV, that is, is one table.
        form: whether its answer is printed, so that there is a form to choose.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
        shared = [
            *(_COMPARISON if compares else ()),
            *(_FILTERS if filters else ()),
            *_DATABASE,
            *((_JSON,) if form else ()),
            *((_CSV,) if csv and form else ()),
        ]

        def run(**given: object) -> None:
            values = {parameter.name: given.pop(parameter.name) for parameter in shared}
            with interrupts.heeded():
                command(_ask(values), **given)

        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__module__, run.__annotations__ = command.__module__, {}
        run.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
        return run

    return decorate


def form_of(*, json: bool, csv: bool) -> Form:
    """The form that the flags ask for. Raises UsageError if they ask for two."""
    if json and csv:
        raise UsageError("An answer is either --json or --csv; ask for one of them.")
    return Form.JSON if json else Form.CSV if csv else Form.TABLE


def _ask(values: dict[str, object]) -> Ask:
    filters: Where = {
        "model": _names(values.get("model")),
        "task": _names(values.get("task")),
        "subtask": _names(values.get("subtask")),
        "method": _names(values.get("method")),
        "metric": _names(values.get("metric")),
        "positions": _names(values.get("positions")),
        "contrast": _names(values.get("contrast")),
        "ablation": _names(values.get("ablation")),
        "prompt_style": _names(values.get("prompt_style")),
        "shots": _numbers(values.get("shots")),
        "seed": _numbers(values.get("seed")),
        "examples": _numbers(values.get("examples")),
        "circuits": _numbers(values.get("circuit")),
    }
    form = form_of(json=bool(values.get("json")), csv=bool(values.get("csv")))
    return Ask(str(values["db"]), float(str(values["timeout"])), filters, _comparison(values), form)


def _comparison(values: dict[str, object]) -> Compared:
    """What was asked for, without the options that were not given."""
    given: Compared = {}
    if "kind" in values:
        given = {
            "kind": str(values["kind"]),
            "level": str(values["level"]),
            "layers": _layers(values["layers"]),
            "source": _names(values["source"]),
            "target": _names(values["target"]),
            "qkv": _names(values["qkv"]),
            "shared": bool(values["shared"]),
            "nonzero": bool(values["nonzero"]),
            "top": int(str(values["top"])),
        }
    return given


def _layers(value: object) -> tuple[int, int] | None:
    """A range of layers from its text. Raises UsageError."""
    if value is None:
        return None
    first, dash, last = str(value).partition("-")
    if not (first.isdecimal() and (not dash or last.isdecimal())):
        raise UsageError(f"--layers is one layer or a range, such as 0-5, not {value}.")
    return int(first), int(last) if dash else int(first)


def _names(value: object) -> list[str] | None:
    return [str(name) for name in value] if isinstance(value, (list, tuple)) and value else None


def _numbers(value: object) -> list[int] | None:
    return [int(number) for number in value] if isinstance(value, (list, tuple)) and value else None


def _parameter(name: str, annotation: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _name_filter(name: str) -> inspect.Parameter:
    this = "these" if name.endswith("s") else "this"
    option = typer.Option(f"--{name}", metavar="NAME", help=f"Only circuits of {this} {name}; may be repeated.")
    return _parameter(name, Annotated[list[str] | None, option], None)


def _number_filter(name: str, which: str, metavar: str = "N") -> inspect.Parameter:
    option = typer.Option(f"--{name}", metavar=metavar, help=f"Only {which}; may be repeated.")
    return _parameter(name, Annotated[list[int] | None, option], None)


def _choice(name: str, one: type[StrEnum], default: StrEnum, text: str) -> inspect.Parameter:
    return _parameter(name, Annotated[one, typer.Option(f"--{name}", help=text)], default)


def _choices(name: str, one: type[StrEnum], text: str) -> inspect.Parameter:
    option = typer.Option(f"--{name}", metavar=f"<{'|'.join(one)}>", help=f"{text}; may be repeated.")
    return _parameter(name, Annotated[list[one] | None, option], None)  # type: ignore[valid-type]


def _flag(name: str, text: str) -> inspect.Parameter:
    return _parameter(name, Annotated[bool, typer.Option(f"--{name}", help=text)], False)


_LAYERS = typer.Option("--layers", metavar="A-B", help="Only edges within these layers; input and logits are in any.")
_TOP = typer.Option("--top", metavar="N", min=1, help="How many of the strongest edges overlap and kappa are about.")
_COMPARISON = [
    _choice("kind", Kind, Kind.SPEARMAN, "How alike two circuits are: by which coefficient."),
    _parameter("top", Annotated[int, _TOP], 200),
    _choice("level", Level, Level.EDGE, "Compare edge by edge, or node by node: a node's edges summed."),
    _parameter("layers", Annotated[str | None, _LAYERS], None),
    _choices("source", Source, "Only edges from this kind of node"),
    _choices("target", Target, "Only edges to this kind of node"),
    _choices("qkv", Qkv, "Only edges to this input of a head"),
    _flag("shared", "Heads that share keys and values count as one for these."),
    _flag("nonzero", "Leave out edges that are zero in both circuits."),
]
_FILTERS = [
    *(_name_filter(name) for name in ("model", "task", "subtask", "method", "metric")),
    *(_name_filter(name) for name in ("positions", "contrast", "ablation")),
    _parameter(
        "prompt_style",
        Annotated[
            list[str] | None,
            typer.Option("--prompt-style", metavar="NAME", help="Only circuits of this prompt style; may be repeated."),
        ],
        None,
    ),
    _number_filter("shots", "circuits of so many shots"),
    _number_filter("seed", "circuits of this seed"),
    _number_filter("examples", "circuits of so many examples, scored or skipped"),
    _number_filter("circuit", "this circuit", "ID"),
]
_DATABASE = [_parameter("db", DatabaseFile, DEFAULT_DATABASE), _parameter("timeout", Patience, 10.0)]
_JSON = _parameter("json", Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")], False)
_CSV = _parameter("csv", Annotated[bool, typer.Option("--csv", help="CSV instead of a table.")], False)
