from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from circuitdb.queries import Database
from circuitdb.tui import sqltext
from circuitdb.tui.sqltext import Vocabulary, place_of, statement_at

WORDS = Vocabulary.of(
    [
        {"word": "circuits", "kind": "view", "relation": None, "parameters": None},
        {"word": "scores", "kind": "view", "relation": None, "parameters": None},
        {"word": "similarity", "kind": "macro", "relation": None, "parameters": "a, b"},
        {"word": "subtask", "kind": "column", "relation": "circuits", "parameters": None},
        {"word": "circuit_id", "kind": "column", "relation": "circuits", "parameters": None},
        {"word": "circuit_id", "kind": "column", "relation": "scores", "parameters": None},
        {"word": "score", "kind": "column", "relation": "scores", "parameters": None},
        {"word": "select", "kind": "keyword", "relation": None, "parameters": None},
        {"word": "from", "kind": "keyword", "relation": None, "parameters": None},
        {"word": "as", "kind": "keyword", "relation": None, "parameters": None},
        {"word": "substring", "kind": "function", "relation": None, "parameters": None},
    ]
)


def coloured(text: str) -> list[tuple[str, str]]:
    return [(text[s.start : s.end], s.kind) for s in sqltext.spans(text, WORDS.keywords, WORDS.relations)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("SELECT score FROM scores", [("SELECT", "keyword"), ("FROM", "keyword"), ("scores", "relation")]),
        ("'from ''x' from", [("'from ''x'", "string"), ("from", "keyword")]),
        ('"from" -- from\nfrom', [('"from"', "string"), ("-- from", "comment"), ("from", "keyword")]),
        ("1.5e-3 /* from\n", [("1.5e-3", "number"), ("/* from\n", "comment")]),
        ("'open from\nfrom", [("'open from\nfrom", "string")]),
        ("a1 日本 from", [("from", "keyword")]),
        ("", []),
    ],
)
def test_what_is_coloured(text: str, wanted: list[tuple[str, str]]) -> None:
    assert coloured(text) == wanted


@pytest.mark.parametrize(
    ("text", "place", "wanted"),
    [
        ("select 1", 3, "select 1"),
        ("select 1; select 2;", 3, "select 1"),
        ("select 1; select 2;", 12, "select 2"),
        ("select 1; select 2; ", 20, "select 2"),
        ("select ';'; select 2", 3, "select ';'"),
        (" ;; select 1", 0, "select 1"),
        ("select 1;\n-- only a comment\n", 15, "select 1"),
        ("select 'open", 3, "select 'open"),
        ("", 0, ""),
    ],
)
def test_the_statement_that_a_letter_is_in(text: str, place: int, wanted: str) -> None:
    assert statement_at(text, place) == wanted


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("select sub", (0, 7)),
        ("-- above\n\nselect 1,\n  circuit_idd\nfrom circuits", (3, 2)),
        ("select 1\nfrom circuitz", (1, 5)),
        (f"select {'1, ' * 60}nope, {'2, ' * 60}3 from circuits", (0, 7 + 3 * 60)),
    ],
)
def test_where_an_error_points(shared_store: Path, text: str, place: tuple[int, int]) -> None:
    with duckdb.connect(str(shared_store), read_only=True) as connection, pytest.raises(duckdb.Error) as raised:
        connection.execute(text)
    assert place_of(str(raised.value), text) == place


def test_an_error_that_points_nowhere() -> None:
    assert place_of("DROP is refused", "drop") is None
    assert place_of("LINE 1: other\n        ^", "text") is None


@pytest.mark.parametrize(
    ("text", "typed", "wanted"),
    [
        ("sel|", "sel", ["select"]),
        ("SUB|", "SUB", ["subtask", "substring"]),
        ("select sco| from scores", "sco", ["score", "scores"]),
        ("select sco|", "sco", ["scores", "score"]),
        ("select scores.|", "", ["circuit_id", "score"]),
        ("select s.c| from scores as s", "c", ["circuit_id"]),
        ("select x.| from circuits x", "", ["subtask", "circuit_id"]),
        ("select a.sc|, b.sub from scores as a, circuits b where 1", "sc", ["score"]),
        ("select a.x, b.sub| from scores as a, circuits b where 1", "sub", ["subtask"]),
        ("select circuits, su| from scores", "su", ["subtask", "substring"]),
        ("select 'sel|'", "", []),
        ("-- sel|", "", []),
        ("select zzz|", "zzz", []),
        ("none.|", "", []),
    ],
)
def test_what_may_come_next(text: str, typed: str, wanted: list[str]) -> None:
    place = text.index("|")
    start, words = WORDS.completions(text.replace("|", ""), place)
    assert (start, [word.text for word in words]) == (typed, wanted)


def test_a_column_of_several_tables_is_one_word() -> None:
    ((found,),) = ([word for word in WORDS.words if word.text == "circuit_id"],)
    assert (found.kind, found.of) == ("column", "2 tables")


def test_the_words_of_a_database(shared_store: Path) -> None:
    found = Vocabulary.of(Database(shared_store).vocabulary().table.to_pylist())
    kinds = {word.text: word.kind for word in reversed(found.words)}
    assert (kinds["edge_score"], kinds["circuits"], kinds["top_edges"]) == ("table", "view", "macro")
    assert (kinds["accuracy"], kinds["lateral"], kinds["approx_quantile"]) == ("column", "keyword", "function")
    assert found.columns["edge_score"] == ("circuit_id", "edge_id", "score")
    assert {"select", "qualify"} <= found.keywords
    (similarity,) = [word for word in found.words if word.text == "similarity" and word.kind == "macro"]
    assert similarity.of == "a, b"
