"""Keeps Hugging Face's and TransformerLens's words off the user's terminal, and their errors to one line."""

from __future__ import annotations

import contextlib
import io
import logging
import re
import sys
import warnings
from collections.abc import Iterator

import transformers


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No progress bars, notices or warnings of the libraries while a model loads."""
    level = transformers.logging.get_verbosity()
    bars = transformers.logging.is_progress_bar_enabled()
    disabled = logging.root.manager.disable
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    logging.disable(logging.WARNING)
    # The bar of the GGUF reader obeys none of these; on a terminal it is welcome, since that takes a while.
    silent = contextlib.nullcontext() if sys.stderr.isatty() else contextlib.redirect_stderr(io.StringIO())
    try:
        with warnings.catch_warnings(), silent:
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        transformers.logging.set_verbosity(level)
        if bars:
            transformers.logging.enable_progress_bar()


def one_line(error: BaseException) -> str:
    """A library's error on one line of at most 300 characters."""
    text = re.sub(r"\s+", " ", str(error)).strip() or type(error).__name__
    return text if len(text) <= 300 else text[:300] + "..."
