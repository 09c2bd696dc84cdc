"""The `circuitdb` command: its subcommands, and what becomes of their errors.

The modules of the commands import only typer; what a command needs, it imports when it runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from circuitdb import __version__
from circuitdb.cli import (
    backup,
    circuits,
    compact,
    compare,
    containment,
    correlate,
    diagnostics,
    doctor,
    evals,
    export,
    faithfulness,
    families,
    generalisation,
    hard,
    import_,
    inclusion,
    ingest,
    merge,
    notes,
    output,
    plot,
    reliability,
    report,
    schema,
    show,
    similarity,
    sql,
    stability,
    study,
    tasks,
    tui,
)

# Rich help costs a quarter of the time that `--help` may take.
app = typer.Typer(
    name="circuitdb",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        output.text(f"circuitdb {__version__}\n")
        raise typer.Exit


@app.callback(epilog="Every command has its own --help, with an example.")
def _circuitdb(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A database of transformer circuits: score every edge once, then ask."""


app.command()(ingest.ingest)
app.command()(study.study)
app.command()(report.report)
app.command()(merge.merge)
app.command(name="import")(import_.import_)
app.command()(tasks.tasks)
app.command()(circuits.circuits)
app.command()(show.show)
app.command()(reliability.reliability)
app.command()(similarity.similarity)
app.command()(stability.stability)
app.command()(compare.compare)
app.command()(generalisation.commutativity)
app.command()(generalisation.neighbours)
app.command()(families.families)
app.command()(containment.containment)
app.command()(inclusion.inclusion)
app.command()(hard.hard)
app.command()(faithfulness.faithfulness)
app.add_typer(evals.app, name="evals")
app.command()(correlate.correlate)
app.add_typer(notes.app, name="notes")
app.command()(plot.plot)
app.command()(tui.tui)
app.command()(export.export)
app.command()(sql.sql)
app.command()(schema.schema)
app.command()(doctor.doctor)
app.command()(compact.compact)
app.command()(backup.backup)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, sys.argv if there is none given, and return the exit code.

    0: done; 1: failed; 2: wrong usage; 130: interrupted.
    """
    diagnostics.prepare_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = typer.main.get_command(app)
    try:
        with diagnostics.upgrades_told():
            code = command.main(args=given or ["--help"], prog_name="circuitdb", standalone_mode=False)
    except typer.TyperException as failure:
        return diagnostics.misuse(failure)
    except SystemExit:  # typer's word for a closed pipe
        return diagnostics.OK
    except (Exception, KeyboardInterrupt) as failure:
        return diagnostics.report(failure)
    return code if isinstance(code, int) else diagnostics.OK
