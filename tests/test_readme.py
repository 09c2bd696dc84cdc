"""The README's Python runs, and its console blocks are what the quickstart printed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import torch

import tiny_models
from circuitdb.ingest import load_model

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=["queries", "engine", "task"])
def test_python_blocks_run(block: str, tmp_path: Path, shared_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a tiny model in the place of GPT-2, and on a synthetic database."""
    folder = tiny_models.llama_folder(tmp_path / "gpt2", tiny_models.digit_tokenizer())
    shutil.copy(shared_store, tmp_path / "circuits.duckdb")
    monkeypatch.chdir(tmp_path)
    torch.set_num_threads(1)
    monkeypatch.setattr(
        "circuitdb.ingest.load_model", lambda path, **more: load_model(folder if path == "gpt2" else path, **more)
    )
    # The tiny model knows 15 tokens.
    names: dict[str, object] = {}
    exec(re.sub(r"\b(464|3290|318|3797)\b", lambda number: str(int(number[0]) % 15), block), names)
    if "matrix" in names:
        assert getattr(names["matrix"], "shape", None) == (9, 9)
    if "found" in names:
        assert len(names["found"].names) == len(names["found"].scores) == 110  # type: ignore[attr-defined]


def test_console_blocks_are_what_the_quickstart_printed() -> None:
    first_run = (ROOT / "docs" / "first-run.md").read_text(encoding="utf-8")
    shown = re.findall(r"```console\n(\$ circuitdb .*?)```", README, re.DOTALL)
    assert len(shown) == 6
    for block in shown[:-1]:
        command = block.split("\n", 1)[0].removesuffix(" \\").split()[:2]
        output = re.sub(r"^\$ .*?(?<!\\)\n", "", block, count=1, flags=re.DOTALL).strip()
        assert output in first_run, f"README shows another output of {' '.join(command)} than docs/first-run.md"
