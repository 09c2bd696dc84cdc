"""GGUF files: read by Hugging Face, which takes a while, so a copy in its own layout is kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

import platformdirs
import torch
import transformers

from circuitdb.errors import ModelError
from circuitdb.ingest.libraries import one_line, quiet


def converted(path: Path) -> Path:
    """Folder with the file's weights (float32) and tokenizer, made on first use. Raises ModelError."""
    with path.open("rb") as file:
        key = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    folder = Path(platformdirs.user_cache_dir("circuitdb")) / "gguf" / f"{path.stem}-{key}"
    if not folder.is_dir():
        # Made beside and renamed: a half-written copy never has the name that is looked for.
        fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
        try:
            _convert(path, fresh)
            fresh.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was quicker
                raise
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return folder


def _convert(path: Path, folder: Path) -> None:
    with quiet():
        try:
            model: Any = transformers.AutoModelForCausalLM.from_pretrained(
                path.parent, gguf_file=path.name, dtype=torch.float32
            )
            tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        except Exception as error:  # the reader raises whatever its parts raise
            raise ModelError(f"{path} can't be read as a GGUF model: {one_line(error)}") from error
        # The weights are plain floats by now; with this left on, save_pretrained refuses.
        model.config.__dict__.pop("quantization_config", None)
        model.hf_quantizer, model.is_quantized = None, False
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
