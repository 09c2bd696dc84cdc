"""`circuitdb plot` writes a figure of each kind, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from terminals import Cli


@pytest.mark.parametrize(
    "arguments",
    [
        ["similarity"], ["similarity", "--corrected", "--order", "likeness"], ["families"],
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
        (["circuit", "-o", "a.png"], "Which circuit? Name one with --circuit ID; `circuitdb circuits` lists them."),
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
