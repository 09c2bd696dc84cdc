"""`circuitdb plot` writes a figure of each kind, whole or not at all."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import circuitdb

if TYPE_CHECKING:
    from terminals import Cli


@pytest.mark.parametrize(
    "arguments",
    [
        ["similarity"], ["similarity", "--corrected", "--order", "likeness"], ["families"],
        ["families", "--every-pair", "--kind", "kappa", "--top", "20", "--target", "head"],
        ["similarity", "--kind", "cosine", "--level", "node", "--on", "magnitude", "--subtask", "1+1"],
        ["accuracy", "--kind", "pearson", "--layers", "0-1", "--steps", "5"], ["circuit", "--subtask", "2+3"],
        ["containment", "--greedy", "20", "--prune"], ["accuracy", "--over", "models"], ["circuit", "--circuit", "2"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_each_kind(cli: Cli, arguments: list[str]) -> None:
    done = cli("plot", *arguments, "-o", "a.svg")
    assert (done.code, done.out) == (0, "")
    assert Path("a.svg").read_bytes().startswith(b"<?xml")
    assert [path.name for path in Path().iterdir()] == ["a.svg"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["similarity", "-o", "a.gif"], "a.gif ends in none of .png, .svg, .pdf; the ending says what is written."),
        (["similarity", "-o", "a"], "a ends in none of .png, .svg, .pdf; the ending says what is written."),
        (
            ["circuit", "-o", "a.png"],
            "Which circuit? The filters leave 9; name one with --circuit ID, which `circuitdb circuits` lists.",
        ),
        (
            ["containment", "--kind", "cosine", "-o", "a.png"],
            "--kind is for similarity and families and accuracy, not for containment.",
        ),
        (["similarity", "--every-pair", "-o", "a.png"], "--every-pair is for families, not for similarity."),
        (["families", "--filter", "x", "-o", "a.png"], "--filter is for accuracy, not for families."),
        (
            ["similarity", "--order", "likeness", "--against", "circuit=2", "-o", "a.png"],
            "--order is of the circuits of one set; leave out --against.",
        ),
        (
            ["circuit", "--top", "5", "-o", "a.png"],
            "--top is for similarity and families and containment and accuracy, not for circuit.",
        ),
        (["similarity", "-o", "there.png"], "there.png exists already; name another file, or replace it with --force."),
    ],
    ids=str,
)
def test_what_cannot_be_drawn(cli: Cli, arguments: list[str], message: str) -> None:
    Path("there.png").write_text("mine")
    done = cli("plot", *arguments)
    assert (done.code, done.out, done.err) == (2, "", f"Error: {message}\n")
    assert Path("there.png").read_text() == "mine"


def test_without_matplotlib_the_extra_is_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    done = cli("plot", "similarity", "-o", "a.png")
    assert (done.code, done.err) == (
        2, "Error: matplotlib is not installed: `pip install 'transformer-circuitdb[plot]'`.\n",
    )  # fmt: skip


def test_a_figure_is_of_what_the_table_shows(cli: Cli, shared_store: Path) -> None:
    """The title in the file is that of the answer, which names coefficient, edges and circuits."""
    asked = ["--kind", "kappa", "--top", "20", "--source", "head", "--circuit", "1", "--circuit", "5"]
    for figure, table in (
        (["similarity"], ["similarity", "--long"]),
        (
            ["similarity", "--against", "circuit=9", "--force"],
            ["similarity", "--against", "circuit=9", "--long"],
        ),
        (["families", "--every-pair"], ["families", "--sweep", "--every-pair"]),
        (["accuracy"], ["correlate"]),
    ):
        assert cli("plot", *figure, *asked, "-o", f"{figure[0]}.svg").code == 0
        title = json.loads(cli(*table, *asked, "--json").out)["title"]
        assert html.escape(title, quote=False) in Path(f"{figure[0]}.svg").read_text()
    cli("plot", "containment", "--share", "0.1", "--prune", "--circuit", "1", "-o", "containment.svg")
    expected = circuitdb.open(shared_store).containment(share=0.1, prune=True, circuits=1).title
    assert expected in Path("containment.svg").read_text()
