"""The style sheets of all screens are loaded into one app: none may reach the widgets of another screen."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from circuitdb.tui.screens import SCREENS, Entry


@pytest.mark.parametrize("entry", SCREENS, ids=lambda entry: entry.mode)
def test_a_style_sheet_names_its_screen(entry: Entry) -> None:
    sheet = files("circuitdb.tui.screens").joinpath(f"{entry.mode}.tcss").read_text(encoding="utf-8")
    selectors = [part.strip() for rule in re.findall(r"([^{}]+)\{", sheet) for part in rule.split(",")]
    ours = re.compile(rf"{entry.title}(\.-\w+)? ")
    assert selectors
    assert [selector for selector in selectors if not ours.match(selector)] == []
