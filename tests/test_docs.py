"""The SQL in the pages of docs/ runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import circuitdb

DOCS = Path(__file__).parents[1] / "docs"
BLOCKS = [
    pytest.param(block, id=f"{page.name}-{i}")
    for page in sorted(DOCS.glob("*.md"))
    for i, block in enumerate(re.findall(r"```sql\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
]


@pytest.mark.parametrize("block", BLOCKS)
def test_sql_blocks_run(block: str, shared_store: Path) -> None:
    assert circuitdb.open(shared_store).sql(block).columns
