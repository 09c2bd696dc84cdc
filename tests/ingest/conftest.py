"""Models of the ingest tests, loaded once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch

import cases
import tiny_models
from circuitdb.ingest import LoadedModel, load_model


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Threads cost tiny models ten times what they save."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def gqa(golden: Path) -> LoadedModel:
    """The golden Llama with grouped queries, in float64."""
    return load_model(golden / "C_llama_gqa", dtype="float64")


@pytest.fixture(scope="session")
def digits_model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A tiny Llama whose tokenizer splits numbers into digits."""
    return load_model(
        tiny_models.llama_folder(tmp_path_factory.mktemp("digits") / "tiny", tiny_models.digit_tokenizer())
    )


@pytest.fixture(scope="session")
def words_model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A tiny Llama whose tokens are whole numbers with the space before them."""
    return load_model(tiny_models.llama_folder(tmp_path_factory.mktemp("words") / "tiny", tiny_models.word_tokenizer()))


@pytest.fixture(scope="session")
def case_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], cases.Case]:
    """The case of an architecture by its name, built once."""
    return cache(lambda name: cases.build(name, tmp_path_factory.mktemp(name)))
