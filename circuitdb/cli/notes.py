"""`circuitdb notes`: the user's own words on circuits, nodes and edges."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from circuitdb.cli import output
from circuitdb.cli.options import Ask, misplaced, question

Number = Annotated[int, typer.Argument(metavar="NUMBER", help="The note, by the number that `circuitdb notes` lists.")]
Words = Annotated[str, typer.Argument(metavar="TEXT", help="The words, or - to read them from standard input.")]

app = typer.Typer(rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})


@app.callback(invoke_without_command=True)
@question()
def notes(ask: Ask, context: typer.Context) -> None:
    """List your notes on circuits, nodes and edges.

    Filters choose circuits; without them all notes are listed, also those on a node or an edge in general.

    Example: circuitdb notes --task addition
    """
    if context.invoked_subcommand is None:
        output.answer(ask.database.notes(**ask.filters), ask.form)
    else:
        misplaced(context, "notes")


@app.command()
@question(filters=False)
def add(
    ask: Ask,
    text: Words,
    circuit: Annotated[
        int | None,
        typer.Option("--circuit", metavar="ID", help="The circuit, by the id that `circuitdb circuits` lists."),
    ] = None,
    about: Annotated[
        str | None, typer.Option("--about", metavar="NAME", help="A node or an edge, such as a0.h1 or 'a0.h1->logits'.")
    ] = None,
) -> None:
    """Write a note on a circuit, a node or an edge.

    With --about alone it is on the node or the edge in general.

    Example: circuitdb notes add "copies the first digit" --circuit 3 --about a0.h1
    """
    ask.database.add_note(_given(text), circuit=circuit, about=about)
    output.answer(ask.database.notes(), ask.form)


@app.command()
@question(filters=False)
def change(ask: Ask, number: Number, text: Words) -> None:
    """Give a note other words.

    Example: circuitdb notes change 2 "copies the second digit"
    """
    ask.database.change_note(number, _given(text))
    output.answer(ask.database.notes(), ask.form)


@app.command()
@question(filters=False)
def delete(ask: Ask, number: Number) -> None:
    """Delete a note.

    Example: circuitdb notes delete 2
    """
    ask.database.delete_note(number)
    output.answer(ask.database.notes(), ask.form)


def _given(text: str) -> str:
    return sys.stdin.read() if text == "-" else text
