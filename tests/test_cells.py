"""Plain values and their texts."""

from __future__ import annotations

import pyarrow as pa
import pytest

from circuitdb.cells import Cells, Value, figures, printable, to_csv
from circuitdb.queries.result import Result


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        pytest.param([1, 20, None], ["1", "20", None], id="whole numbers as they are"),
        pytest.param([123456789012345678], ["123456789012345678"], id="no digit of an id is lost"),
        pytest.param([1.0, 0.5, None, -0.25], ["1.000", "0.500", None, "-0.250"], id="correlations"),
        pytest.param([0.0, -0.0], ["0.000", "0.000"], id="zero has no sign"),
        pytest.param([0.5, 0.0004], ["0.500", "4.0e-04"], id="what would look like zero"),
        pytest.param([0.5, 0.0006], ["0.500", "0.001"], id="rounded, not zero"),
        pytest.param([0.0123, 0.0004], ["0.0123", "0.0004"], id="three digits of the largest"),
        pytest.param([0.00001234, -0.000002], ["1.23e-05", "-2.00e-06"], id="all small"),
        pytest.param([5.25, 60.125], ["5.25", "60.12"], id="tens"),
        pytest.param([123.456, 2.0], ["123.5", "2.0"], id="hundreds"),
        pytest.param([123456.7], ["123456.7"], id="many"),
        pytest.param([1.5e12, 1.0], ["1.5e+12", "1"], id="huge"),
        pytest.param([1, 1.5], ["1.000", "1.500"], id="decimals of SQL"),
        pytest.param([], [], id="nothing"),
        pytest.param([None], [None], id="only NULL"),
    ],
)
def test_figures_suit_their_column(values: list[Value], texts: list[str | None]) -> None:
    assert figures(values) == texts


def test_csv_keeps_null_apart_from_empty_and_quotes_what_it_must() -> None:
    table = pa.table({"a,b": [None, "", 'say "x"', "two\nlines", "plain"], "n": [0.1, None, 1e-300, 2.0, -3.5]})
    assert "".join(to_csv(Cells.of(Result(table, "t")))) == (
        '"a,b",n\n,0.1\n"",\n"say ""x""",1e-300\n"two\nlines",2.0\nplain,-3.5\n'
    )


def test_numbers_that_are_not_finite_are_null_and_counted() -> None:
    table = pa.table({"x": [float("nan"), float("-inf"), 1.0], "l": [[float("inf")], [0.5], None]})
    cells = Cells.of(Result(table, "t", ("first",)))
    assert cells.columns == ([None, None, 1.0], [[None], [0.5], None])
    assert cells.notes == ("first", "Infinite numbers and NaN are given as NULL here; there are 3 of them.")


def test_texts_cannot_command_the_terminal() -> None:
    assert printable("a\x1b[2J\r\nb\tc\x07é漢") == "a\\x1b[2J\\r\\nb\\tc\\x07é漢"
