"""The options that commands share, each defined once: the database, the filters, the form of the answer.

A command that asks the database is a function of an `Ask` and of its own options, decorated with `question`: the
shared options join its signature there, which is where typer looks for them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from circuitdb.cli import comparing, cuts, interrupts, parameters
from circuitdb.cli.filters import FILTERS, where
from circuitdb.errors import UsageError

if TYPE_CHECKING:
    from circuitdb.queries.comparison import Compared
    from circuitdb.queries.cuts import Cutting
    from circuitdb.queries.database import Database
    from circuitdb.queries.filters import Where

DEFAULT_DATABASE = "circuits.duckdb"

DatabaseFile = Annotated[str, typer.Option("--db", envvar="CIRCUITDB", metavar="FILE", help="The database file.")]
Patience = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", min=0, help="How long to wait for a process that is writing to it."),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")]


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


OnScores = Annotated[On, typer.Option("--on", help="Compare signed scores (the paper's definition) or magnitudes.")]


@dataclass(frozen=True)
class Ask:
    """What every question shares; `filters`, `comparison` and each of `cuts` are keywords of methods of `Database`."""

    path: str
    timeout: float
    filters: Where
    comparison: Compared
    cuts: tuple[Cutting, ...]
    form: Form

    @property
    def cut(self) -> Cutting:
        """The only cut."""
        (only,) = self.cuts
        return only

    @property
    def database(self) -> Database:
        """The database, opened for this question."""
        import circuitdb

        return circuitdb.open(self.path, timeout=self.timeout)


def question(
    *,
    filters: bool = True,
    compares: bool = False,
    cut: Sequence[inspect.Parameter] = (),
    csv: bool = True,
    form: bool = True,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the shared options; it gets them as its first argument, an `Ask`.

    Of two options of one name the command's own is taken, then that of the cut.

    Args:
        filters: whether it can be asked about some of the circuits.
        compares: whether it compares circuits, by one of several coefficients and over some of the edges.
        cut: how it cuts them to hard ones, if it does: `cuts.ONE` or `cuts.SEVERAL`.
        csv: whether its answer can be written as CSV, that is, is one table.
        form: whether its answer is printed, so that there is a form to choose.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
        offered = [
            *cut,
            *(comparing.COMPARISON if compares else ()),
            *(FILTERS if filters else ()),
            *_DATABASE,
            *((_JSON,) if form else ()),
            *((_CSV,) if csv and form else ()),
        ]
        first = {one.name: one for one in reversed([*own, *offered])}
        shared = [one for one in offered if first[one.name] is one]

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


def misplaced(context: typer.Context, command: str) -> None:
    """Raise UsageError for options between a command and its subcommand, which would do nothing."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    early = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if early:
        raise UsageError(
            f"Options follow the command: `circuitdb {command} {context.invoked_subcommand} ... --{early[0]}`."
        )


def _ask(values: dict[str, object]) -> Ask:
    form = form_of(json=bool(values.get("json")), csv=bool(values.get("csv")))
    return Ask(
        str(values["db"]),
        float(str(values["timeout"])),
        where(values),
        comparing.compared(values),
        tuple(cuts.cuttings(values)),
        form,
    )


_DATABASE = [
    parameters.parameter("db", DatabaseFile, DEFAULT_DATABASE),
    parameters.parameter("timeout", Patience, 10.0),
]
_JSON = parameters.flag("json", "One JSON object instead of a table.")
_CSV = parameters.flag("csv", "CSV instead of a table.")
