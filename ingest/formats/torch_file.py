"""Opens .pt files without running anything in them: tensors, numbers, texts, lists and dicts, nothing else."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from circuitdb.errors import ScoreError

if TYPE_CHECKING:
    import torch

_KINDS = "a tensor of numbers"


def is_torch(path: Path) -> bool:
    """Whether a file is a .pt file, by its content: a zip archive with a data.pkl."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/data.pkl") or name == "data.pkl" for name in archive.namelist())


def load(path: Path) -> object:
    """What a .pt file holds. Raises ScoreError for one that is damaged, or that would have to run code."""
    import torch

    try:
        with zipfile.ZipFile(path) as archive:
            # torch never packs; what is packed may be any number of times larger than the file.
            packed = any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist())
        if packed:
            raise ScoreError(f"{path} has packed parts, as torch.save never makes; save it again with torch.save.")
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if "weights_only" in str(error) or "Unsupported" in str(error):
            raise ScoreError(
                f"{path} holds more than tensors, numbers, texts, lists and dicts: to load it would be to run the code "
                "in it, so it is refused; save what you need of it as such with torch.save."
            ) from error
        raise ScoreError(f"{path} is damaged or cut short; torch can't read it.") from error
    except (RuntimeError, EOFError, zipfile.BadZipFile, KeyError, ValueError, TypeError, IndexError,
            AttributeError, OverflowError, MemoryError, RecursionError) as error:  # fmt: skip
        raise ScoreError(f"{path} is damaged or cut short; torch can't read it.") from error


def numbers(tensor: object, wanted: tuple[int, ...] | None, what: str, where: str) -> npt.NDArray[Any]:
    """A tensor as an array, of the wanted shape if one is given. Raises ScoreError for anything else.

    Its shape is checked before its numbers are touched: a tensor of a few bytes may call itself as large as it likes.
    """
    import torch

    if not isinstance(tensor, torch.Tensor) or not _plain(tensor):
        raise ScoreError(f"{where}: {what} is no plain tensor of real numbers.")
    if wanted is not None and tuple(tensor.shape) != wanted:
        raise ScoreError(f"{where}: {what} has the shape {list(tensor.shape)}; it must be {list(wanted)}.")
    kept = tensor.detach()
    if kept.dtype == torch.bool:
        return np.asarray(kept.numpy())
    return np.asarray(kept.to(torch.float64 if kept.dtype == torch.float64 else torch.float32).numpy())


def _plain(tensor: torch.Tensor) -> bool:
    import torch

    real = not tensor.dtype.is_complex and not tensor.is_quantized
    return real and tensor.layout == torch.strided and tensor.device.type == "cpu"
