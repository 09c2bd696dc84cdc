from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from circuitdb.errors import StoreError, UsageError
from circuitdb.tui import shelf
from circuitdb.tui.shelf import Shelf


def test_the_history_is_kept_in_order_once_each_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "KEPT", 3)
    found = Shelf(tmp_path / "new" / "folder")
    assert found.history == []
    for text in ("one", " two\n", "three", "", "one", "four é日"):
        found.remember(text)
    assert Shelf(tmp_path / "new" / "folder").history == ["three", "one", "four é日"]
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["history.json"]


def test_a_very_long_statement_is_not_kept(tmp_path: Path) -> None:
    Shelf(tmp_path).remember("x" * 100_001)
    assert Shelf(tmp_path).history == []


@pytest.mark.parametrize("content", ["", "{", '{"a": 1}', "[1, null]", "\xff"])
def test_a_history_that_is_not_ours_is_no_history(tmp_path: Path, content: str) -> None:
    (tmp_path / "history.json").write_text(content, encoding="latin-1")
    assert Shelf(tmp_path).history == []
    Shelf(tmp_path).remember("fresh")
    assert json.loads((tmp_path / "history.json").read_text()) == ["fresh"]


def test_two_browsers_add_to_one_history(tmp_path: Path) -> None:
    first, second = Shelf(tmp_path), Shelf(tmp_path)
    first.remember("a")
    second.remember("b")
    first.remember("c")
    assert second.history == ["a", "b", "c"]


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Shelf(tmp_path)
    found.remember("kept")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StoreError, match=r"history\.json can't be written: No space left on device\."):
        found.remember("lost")
    assert found.history == ["kept"]
    assert [path.name for path in tmp_path.iterdir()] == ["history.json"]


def test_named_statements(tmp_path: Path) -> None:
    found = Shelf(tmp_path)
    assert found.names == []
    found.save("weak circuits", "FROM circuits\n\n")
    found.save("Äpfel-2.1", "SELECT 1")
    found.save("weak circuits", "FROM circuits WHERE accuracy < 0.5")
    assert found.names == ["weak circuits", "Äpfel-2.1"]
    assert found.read("weak circuits") == "FROM circuits WHERE accuracy < 0.5\n"
    assert (tmp_path / "sql" / "weak circuits.sql").is_file()
    with pytest.raises(StoreError, match="The statement gone can't be read"):
        found.read("gone")


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a\0", "a\n", "x" * 81, "a.", "-a", "a:b"])
def test_a_name_that_is_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="is no name for a statement"):
        Shelf(tmp_path).save(name, "SELECT 1")
    assert list(tmp_path.iterdir()) == []


def test_the_folder_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert Shelf().folder.name == "circuitdb"
