"""Makes the reference pages from what is in force: `python -m circuitdb.cli.reference schema > docs/schema.md`.

`schema` is made from the comments in the schema itself, `cli` from the help of the commands.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import typer
from typer.core import TyperGroup

from circuitdb.cli import diagnostics, output
from circuitdb.cli.main import app
from circuitdb.queries import schema

_HELP_WIDTH = 100


def schema_page() -> str:
    """docs/schema.md: tables, views and macros with the comments of their columns."""
    return "\n".join(_schema_lines()) + "\n"


def cli_page() -> str:
    """docs/cli.md: the help of every command."""
    return "\n".join(_cli_lines()) + "\n"


def _schema_lines() -> Iterator[str]:
    yield "# The database"
    yield ""
    yield "A circuitdb file is a plain DuckDB file; `circuitdb sql`, the `duckdb` shell and all DuckDB clients read it."
    yield "This page is made from the comments in the schema, by `python -m circuitdb.cli.reference schema`."
    with schema.fresh() as connection:
        entries = schema.relations(connection).to_pylist()
        for kind, heading in (("table", "Tables"), ("view", "Views"), ("macro", "Macros")):
            yield ""
            yield f"## {heading}"
            for entry in (entry for entry in entries if entry["kind"] == kind):
                name = str(entry["name"])
                yield ""
                yield f"### {name}"
                yield ""
                yield str(entry["comment"])
                if kind == "macro":
                    yield ""
                    yield f"Call it as `FROM {name}`; it gives:"
                yield ""
                columns = schema.columns(connection, name).to_pylist()
                if kind == "macro":
                    yield "| column | type |"
                    yield "|---|---|"
                    yield from (f"| {_cell(c['column'])} | {_cell(c['type'])} |" for c in columns)
                else:
                    yield "| column | type | |"
                    yield "|---|---|---|"
                    yield from (f"| {_cell(c['column'])} | {_type(c)} | {_cell(c['comment'])} |" for c in columns)


def _type(column: dict[str, object]) -> str:
    return f"{_cell(column['type'])}{' NOT NULL' if column['nullable'] is False else ''}"


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("<", "&lt;")


def _cli_lines() -> Iterator[str]:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    yield "# The command line"
    yield ""
    yield "This page is made from the help of the commands, by `python -m circuitdb.cli.reference cli`."
    with group.make_context("circuitdb", [], resilient_parsing=True, terminal_width=_HELP_WIDTH) as context:
        yield from _help(group.get_help(context))
        waiting = [("## circuitdb", name, command, context) for name, command in group.commands.items()]
        while waiting:
            heading, name, command, parent = waiting.pop(0)
            yield ""
            yield f"{heading} {name}"
            with command.make_context(
                name, [], parent=parent, resilient_parsing=True, terminal_width=_HELP_WIDTH
            ) as inner:
                yield from _help(command.get_help(inner))
            if isinstance(command, TyperGroup):
                waiting = [(f"#{heading} {name}", below, c, inner) for below, c in command.commands.items()] + waiting


def _help(text: str) -> Iterator[str]:
    yield from ("", "```text", *text.splitlines(), "```")


def main(arguments: Sequence[str]) -> int:
    """Print the page that is asked for; returns the exit code."""
    pages = {"schema": schema_page, "cli": cli_page}
    if len(arguments) != 1 or arguments[0] not in pages:
        diagnostics.error("Name one page: `python -m circuitdb.cli.reference schema`, or cli.")
        return diagnostics.USAGE
    output.text(pages[arguments[0]]())
    return diagnostics.OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
