"""The Python of docs/statistics.md runs, and names every kind and method that it should."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from circuitdb.queries.coefficients import KINDS

PAGE = (Path(__file__).parents[1] / "docs" / "statistics.md").read_text(encoding="utf-8")


def test_its_blocks_run(
    tmp_path: Path, shared_store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(shared_store, tmp_path / "circuits.duckdb")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, names)
    said = capsys.readouterr().out
    for part in (
        "examples_needed",
        "silhouette",
        "H0 barcode of 9",
        "8 births of families over alpha",
        "corrected separation",
        "Neighbours, 6 pairs",
        "p_value",
    ):
        assert part in said


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_explained(kind: str) -> None:
    assert f"| `{kind}` |" in PAGE
