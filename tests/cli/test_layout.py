"""Tables in a given width: nothing is lost, nothing is wider."""

from __future__ import annotations

import random

import pytest

from circuitdb.cells import Cells, Kind, Value
from circuitdb.cli.layout import cell_width, lines, matrix_lines
from terminals import tables


def cells(title: str = "Title", /, **columns: list[Value]) -> Cells:
    """Cells whose kinds follow from the values."""
    kinds: tuple[Kind, ...] = tuple(
        "number" if any(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values) else "text"
        for values in columns.values()
    )
    return Cells(title, tuple(columns), tuple(columns.values()), kinds)


def drawn(table: Cells, width: int | None) -> list[str]:
    return ["".join(text for text, _ in line).rstrip() for line in lines(table, width)]


def test_numbers_stand_right_texts_left_and_null_is_a_dash() -> None:
    table = cells(name=["a", None, "ccc"], score=[0.5, -10.25, None], long_name=[1, 2, 3])
    assert drawn(table, 80) == [
        "Title",
        "",
        "name   score  long_name",
        "────  ──────  ─────────",
        "a       0.50          1",
        "-     -10.25          2",
        "ccc        -          3",
    ]


def test_names_break_at_underscores_before_anything_is_split() -> None:
    table = cells(subtask=["1+1", "1+2"], stability_with_diagonal=[0.5, 0.25], examples_needed=[1, 2])
    assert drawn(table, 30)[2:] == [
        "         stability_",
        "              with_  examples_",
        "subtask    diagonal     needed",
        "───────  ──────────  ─────────",
        "1+1           0.500          1",
        "1+2           0.250          2",
    ]


def test_what_every_row_says_is_said_once_where_there_is_no_room() -> None:
    table = cells(
        id=[1, 2], model=["tiny-model"] * 2, revision=[None, None], score=[0.5, 0.25], digest=["a" * 20, "b" * 20]
    )
    assert drawn(table, 40) == [
        "Title",
        "",
        "In every row: model tiny-model. No row",
        "has a value of revision.",
        "",
        "id  score  digest",
        "──  ─────  ────────────────────",
        " 1  0.500  aaaaaaaaaaaaaaaaaaaa",
        " 2  0.250  bbbbbbbbbbbbbbbbbbbb",
    ]
    assert drawn(table, None)[2].split() == ["id", "model", "revision", "score", "digest"]


def test_one_row_that_does_not_fit_stands_upright() -> None:
    table = cells(id=[1], model=["m" * 30], revision=[None], text=["word " * 12])
    assert drawn(table, 40)[2:] == [
        "id        1",
        f"model     {'m' * 30}",
        "revision  -",
        "text      word word word word word word",
        "          word word word word word word",
    ]


def test_no_rows_are_said_where_there_is_no_room_for_their_columns() -> None:
    table = cells(circuit_id=[], model=[], n_examples=[])
    assert drawn(table, 30)[2:] == ["circuit_id  model  n_examples", "──────────  ─────  ──────────"]
    assert drawn(table, 28)[2:] == ["No rows, of columns", "circuit_id, model,", "n_examples."]


def test_long_texts_wrap_within_their_column() -> None:
    table = cells(name=["scores", "edge"], comment=["The quick brown fox jumps over the lazy dog", "Short"])
    assert drawn(table, 34)[2:] == [
        "name    comment",
        "──────  ──────────────────────────",
        "scores  The quick brown fox jumps",
        "        over the lazy dog",
        "edge    Short",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 132, 200])
def test_blocks_hold_every_cell_and_keep_to_the_width(width: int) -> None:
    rng = random.Random(width)
    columns: dict[str, list[Value]] = {"id": list(range(7))}
    for i in range(20):
        columns[f"column_{i}"] = [*(rng.choice(["x", "yy", "zzz zzz", None]) for _ in range(6)), "end"]
        columns[f"n{i}"] = [rng.uniform(-1, 1) for _ in range(7)]
    table = cells(**columns)
    shown = drawn(table, width)
    assert all(cell_width(line) <= width for line in shown)
    names = [name for line in shown for name in line.split() if name.rstrip("_") in {*columns, "column"}]
    assert len(names) >= len(columns)
    blocks = tables("\n".join(shown))
    assert len(blocks) > 1
    assert all(block[row]["id"] == str(row) for block in blocks for row in range(7))
    seen = [cell for block in blocks for name, cell in block[0].items() if name != "id"]
    first = [values[0] for values in columns.values()][1:]
    assert seen == ["-" if v is None else f"{v:.3f}" if isinstance(v, float) else v for v in first]


def test_wide_characters_keep_the_columns_straight() -> None:
    table = cells(name=["漢字", "ab"], n=[1, 2])
    shown = drawn(table, 80)
    assert shown[2:] == ["name  n", "────  ─", "漢字  1", "ab    2"]


def matrix(n: int, label: str = "{}") -> Cells:
    labels = [label.format(i) for i in range(n)]
    values: list[list[Value]] = [[1.0 if i == j else (i - j) / (n + 1) for i in range(n)] for j in range(n)]
    values[0][1] = None
    return Cells(
        "Similarity",
        ("label", "reliability", *labels),
        (list(labels), [0.5] * n, *values),
        ("text", *["number"] * (n + 1)),  # type: ignore[arg-type]
    )


def drawn_matrix(table: Cells, width: int | None) -> list[str]:
    return ["".join(text for text, _ in line).rstrip() for line in matrix_lines(table, width, labels=2)]


def test_a_matrix_that_fits_has_names() -> None:
    assert drawn_matrix(matrix(2, "s{}"), 80) == [
        "Similarity",
        "",
        "label  reliability    s0     s1",
        "─────  ───────────  ────  ─────",
        "s0           0.500  1.00  -0.33",
        "s1           0.500     -   1.00",
    ]


@pytest.mark.parametrize(("n", "width"), [(12, 80), (16, 80), (64, 80), (64, 200)])
@pytest.mark.parametrize("label", ["{}", "a/model/of/a/long/name/and/subtask/{}"], ids=["short", "long"])
def test_a_matrix_that_does_not_fit_is_numbered_and_keeps_every_number(n: int, width: int, label: str) -> None:
    table = matrix(n, label)
    shown = drawn_matrix(table, width)
    assert all(len(line) <= width for line in shown)
    blocks = tables("\n".join(shown))
    assert len(blocks) > 1
    for row in range(n):
        assert {block[row]["label"] for block in blocks if "label" in block[row]} == {label.format(row)}
        assert {block[row]["#"] for block in blocks} == {str(row + 1)}
        assert all(block[row]["reliability"] == "0.500" for block in blocks if any(map(str.isdigit, block[row])))
        numbers = {name: cell for block in blocks for name, cell in block[row].items() if name.isdigit()}
        wanted = [column[row] for column in table.columns[2:]]
        assert numbers == {str(i): "-" if value is None else f"{value:.2f}" for i, value in enumerate(wanted, start=1)}
    assert len(drawn_matrix(table, None)) == n + 4


def test_shades_come_with_the_number() -> None:
    styled = list(matrix_lines(matrix(2), 80, labels=2, shade=lambda value: "high" if value > 0 else "low"))
    assert [(text.strip(), style) for text, style in styled[4] if text.strip()] == [
        ("0", ""), ("0.500", ""), ("1.00", "high"), ("-0.33", "low"),
    ]  # fmt: skip
    assert ("    -", "dim") in [(text.rjust(5), style) for text, style in styled[5]]
