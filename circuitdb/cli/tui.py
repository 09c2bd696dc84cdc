"""`circuitdb tui`: the browser in the terminal."""

from __future__ import annotations

import os
import shlex
import sys
from typing import Annotated

import typer

from circuitdb.cli import diagnostics, output
from circuitdb.cli.options import DEFAULT_DATABASE, DatabaseFile, Patience
from circuitdb.errors import UsageError


def tui(
    web: Annotated[
        bool, typer.Option("--web", help="Serve it to a web browser of this computer, and no other.")
    ] = False,
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port of --web.")] = 8000,
    db: DatabaseFile = DEFAULT_DATABASE,
    timeout: Patience = 10.0,
) -> None:
    """Look through the circuits in the terminal, and compare them.

    The file is open only while it is asked: an ingest can go on writing, and its circuits appear by themselves.

    Example: circuitdb tui --db circuits.duckdb
    """
    if web:
        _serve(db, timeout, port)
        return
    # Textual reads the keys from standard input, and draws on standard error.
    if not all(map(diagnostics.terminal, (sys.stdin, sys.stdout, sys.stderr))):
        raise UsageError(
            f"The browser needs a terminal; `circuitdb circuits --db {shlex.quote(db)}` lists the circuits as text."
        )
    from circuitdb.tui.app import Browser

    browser = Browser(db, timeout=timeout)
    browser.run()
    if browser.access.busy:
        # A thread that comes back from DuckDB while Python is being taken down would abort the process.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(browser.return_code or diagnostics.OK)
    if browser.return_code:
        raise typer.Exit(browser.return_code)


def _serve(db: str, timeout: float, port: int) -> None:
    try:
        from circuitdb.tui import web
    except ImportError as error:
        raise UsageError("--web needs textual-serve: `pip install 'transformer-circuitdb[web]'`.") from error
    output.text(f"The browser is at http://{web.HOST}:{port}; Ctrl-C ends it.\n")
    web.LoopbackServer(db, timeout=timeout, port=port).serve()
