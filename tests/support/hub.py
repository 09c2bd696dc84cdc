"""A hub cache on disk, as `huggingface_hub` lays it out, so that versions of a model load without network."""

from __future__ import annotations

import shutil
from pathlib import Path


def store_versions(cache: Path, name: str, versions: dict[str, Path]) -> None:
    """Put folders into the cache as the versions (branches or tags) of the hub model `name`."""
    home = cache / f"models--{name.replace('/', '--')}"
    for i, (version, folder) in enumerate(versions.items()):
        commit = f"{i:040x}"
        shutil.copytree(folder, home / "snapshots" / commit)
        (home / "refs").mkdir(exist_ok=True)
        (home / "refs" / version).write_text(commit)
