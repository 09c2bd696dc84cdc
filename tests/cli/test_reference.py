"""The reference pages are up to date, and leave nothing out."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from circuitdb.cli import reference
from circuitdb.cli.main import app

DOCS = Path(__file__).parents[2] / "docs"
GROUP = typer.main.get_command(app)
assert isinstance(GROUP, TyperGroup)
COMMANDS = {
    f"{prefix}{name}": command
    for prefix, group in [("", GROUP), *((f"{n} ", c) for n, c in GROUP.commands.items() if isinstance(c, TyperGroup))]
    for name, command in group.commands.items()
}


@pytest.mark.parametrize("page", ["schema", "cli"])
def test_the_page_in_docs_is_what_is_made_now(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert reference.main([page]) == 0
    made = capsys.readouterr().out
    assert (DOCS / f"{page}.md").read_text(encoding="utf-8") == made, (
        f"run: python -m circuitdb.cli.reference {page} > docs/{page}.md"
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented_with_an_example(name: str) -> None:
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert f"{'#' * (1 + len(name.split()))} circuitdb {name}\n" in page
    help_text = COMMANDS[name].help or ""
    assert f"Example: circuitdb {name}" in help_text
    assert COMMANDS[name].get_short_help_str(61).endswith("."), "80 columns cut it short in the list of commands"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does(name: str) -> None:
    for parameter in COMMANDS[name].params:
        assert getattr(parameter, "help", None), parameter.name


def test_every_table_view_and_macro_has_a_comment() -> None:
    page = reference.schema_page()
    assert "None" not in page
    for name in ("edge_score", "circuits", "top_edges(circuit, n)", "similarity(a, b)"):
        assert f"\n### {name}\n" in page
    assert "| score | FLOAT | Change of the mean metric when the edge is ablated" in page


def test_a_wrong_page_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert reference.main(["sceham"]) == 2
    assert capsys.readouterr().err == ("Error: Name one page: `python -m circuitdb.cli.reference schema`, or cli.\n")
