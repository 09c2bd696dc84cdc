from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest

from circuitdb.errors import UsageError
from circuitdb.queries import Result
from circuitdb.queries.columns import distinct, numbers
from circuitdb.queries.result import count, enumeration, square

RESULT = Result(
    pa.table({"subtask": ["1+1", "1+2"], "rho": numbers(np.array([0.25, np.nan]))}), "Two <cells>", ("One is missing.",)
)


def test_a_missing_value_is_null_everywhere() -> None:
    assert RESULT.arrow().column("rho").to_pylist() == [0.25, None]
    assert RESULT.rows() == [{"subtask": "1+1", "rho": 0.25}, {"subtask": "1+2", "rho": None}]
    assert RESULT.df()["rho"].isna().tolist() == [False, True]
    assert RESULT.columns == ["subtask", "rho"]
    assert len(RESULT) == 2


def test_repr_is_a_table() -> None:
    assert repr(RESULT) == "Two <cells>\nsubtask   rho\n1+1      0.25\n1+2      NULL\n- One is missing."


def test_repr_says_what_it_leaves_out() -> None:
    wide = Result(pa.table({f"column_{i}": list(range(30)) for i in range(40)}), "Wide")
    assert repr(wide).splitlines()[-1] == "... 10 more rows and 29 more columns"


def test_html_is_escaped() -> None:
    html = RESULT._repr_html_()
    assert "<caption>Two &lt;cells&gt;</caption>" in html
    assert "<tr><td>1+2</td><td>NULL</td></tr>" in html
    assert "<li>One is missing.</li>" in html


@pytest.mark.parametrize(("library", "ask"), [("pandas", Result.df), ("polars", Result.pl)])
def test_a_missing_library_is_named(library: str, ask: object, monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def refuse(
        name: str,
        variables: Mapping[str, object] | None = None,
        local: Mapping[str, object] | None = None,
        names: Sequence[str] | None = (),
        level: int = 0,
    ) -> object:
        if name == library:
            raise ImportError(name)
        return load(name, variables, local, names or (), level)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert callable(ask)
    with pytest.raises(UsageError, match=f"pip install {library}"):
        ask(RESULT)


def test_words() -> None:
    assert count(1, "family", "families") == "1 family"
    assert count(2_000, "family", "families") == "2,000 families"
    assert enumeration("abc", most=2) == "a, b and 1 more"


def test_names_become_distinct_without_taking_one_that_is_there() -> None:
    assert distinct(["a", "a", "a_2", "a", "b", "a_1"]) == ["a", "a_3", "a_2", "a_4", "b", "a_1"]


def test_a_label_may_be_called_as_a_column() -> None:
    table = square(["label", "reliability"], np.array([[1.0, 0.5], [0.5, 1.0]]), reliability=np.array([0.9, 0.8]))
    assert table.to_pylist() == [
        {"label": "label", "reliability": 0.9, "label_1": 1.0, "reliability_1": 0.5},
        {"label": "reliability", "reliability": 0.8, "label_1": 0.5, "reliability_1": 1.0},
    ]
