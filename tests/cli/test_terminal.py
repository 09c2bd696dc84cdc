"""On a terminal: colour that repeats what the text says, and lines that fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from circuitdb.cli.layout import cell_width
from stores import addition_store
from terminals import Cli, run, run_in_terminal, tables, without_style


@pytest.fixture(scope="module")
def sixteen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of 4 x 4 subtasks."""
    return addition_store(tmp_path_factory.mktemp("sixteen") / "circuits.duckdb", digits=4)


@pytest.mark.parametrize(
    "command",
    [
        ["circuits"],
        ["show", "1"],
        ["reliability"],
        ["similarity"],
        ["stability"],
        ["families"],
        ["containment"],
        ["schema"],
    ],
    ids=" ".join,
)
def test_eighty_columns_are_enough(
    cli: Cli, sixteen: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = cli(*command, "--db", str(sixteen))
    assert done.code == 0
    assert 50 < max(map(cell_width, done.out.splitlines())) <= 80


def test_colour_repeats_the_numbers_and_can_be_refused(sixteen: Path) -> None:
    code, coloured = run_in_terminal(["similarity"], sixteen.parent)
    assert code == 0
    _, plain = run_in_terminal(["similarity"], sixteen.parent, settings={"NO_COLOR": "1"})
    _, dumb = run_in_terminal(["similarity"], sixteen.parent, settings={"TERM": "dumb"})
    assert "\x1b[38;2;0;0;0;48;2;" in coloured
    assert "\x1b" not in plain
    assert plain == dumb
    assert max(map(len, plain.splitlines())) <= 80
    stripped = [line.rstrip() for line in without_style(coloured).splitlines()]
    assert stripped == [line.rstrip() for line in plain.splitlines()]
    assert any(cell.startswith("-") for cell in tables(plain)[0][1].values())  # below zero is a sign, not a colour


def test_a_pipe_gets_neither_colour_nor_breaks(sixteen: Path) -> None:
    done = run(["similarity"], sixteen.parent)
    assert "\x1b" not in done.stdout
    (table,) = tables(done.stdout)
    assert len(table) == 16
    assert list(table[0]) == ["label", "reliability", *(f"{a}+{b}" for a in range(1, 5) for b in range(1, 5))]
    forced = run(["similarity"], sixteen.parent, settings={"FORCE_COLOR": "1"})
    assert "\x1b[" in forced.stdout
    assert [line.rstrip() for line in without_style(forced.stdout).splitlines()] == done.stdout.splitlines()


def test_columns_sets_the_width_of_a_pipe(sixteen: Path) -> None:
    done = run(["circuits"], sixteen.parent, settings={"COLUMNS": "90"})
    assert 60 < max(map(len, done.stdout.splitlines())) <= 90


def test_a_terminal_is_not_flooded(sixteen: Path) -> None:
    _, said = run_in_terminal(["sql", "from range(10001)"], sixteen.parent, settings={"NO_COLOR": "1"}, columns=120)
    lines = said.splitlines()
    assert lines[-2:] == [
        " 9999",
        "Note: These are 10,000 of 10,001 rows; a pipe, a file or --csv gives them all.",
    ]
