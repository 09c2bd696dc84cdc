"""Arrow columns of the results, from Python and NumPy values; None and NaN become NULL.

They are put together from buffers because `pyarrow.array` imports pandas wherever it is installed, which costs a
third of a second of every command.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def numbers(values: npt.NDArray[np.float64]) -> pa.Array:
    """DOUBLE; NaN is NULL."""
    return _column(pa.float64(), ~np.isnan(values), np.ascontiguousarray(values, np.float64))


def integers(values: Iterable[int | None], *, bits: int = 64) -> pa.Array:
    """BIGINT, or INTEGER of 32 bits."""
    listed = list(values)
    filled = np.array([value or 0 for value in listed], np.dtype(f"int{bits}"))
    return _column(pa.int64() if bits == 64 else pa.int32(), _known(listed), filled)


def flags(values: Iterable[bool]) -> pa.Array:
    """BOOLEAN."""
    listed = np.array(list(values), bool)
    return _column(pa.bool_(), np.ones(len(listed), bool), np.packbits(listed, bitorder="little"))


def texts(values: Iterable[str | None]) -> pa.Array:
    """VARCHAR."""
    listed = list(values)
    encoded = [(value or "").encode() for value in listed]
    offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return _column(pa.string(), _known(listed), offsets, b"".join(encoded))


def distinct(names: Sequence[str]) -> list[str]:
    """Names of columns, all but the first of equals numbered from 1, past names that are there: a, a_2, a_1."""
    taken, seen = set(names), Counter[str]()
    found = []
    for name in names:
        fresh = name
        while seen[name] and fresh in taken:
            fresh = f"{name}_{seen[name]}"
            seen[name] += 1
        seen[name] = max(seen[name], 1)
        taken.add(fresh)
        found.append(fresh)
    return found


def _known(values: list[int | None] | list[str | None]) -> npt.NDArray[np.bool_]:
    return np.array([value is not None for value in values], bool)


def _column(kind: pa.DataType, known: npt.NDArray[np.bool_], *data: npt.NDArray[np.generic] | bytes) -> pa.Array:
    valid = np.packbits(known, bitorder="little")
    return pa.Array.from_buffers(kind, len(known), [pa.py_buffer(part) for part in (valid, *data)])
