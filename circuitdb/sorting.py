"""The order of many numbers, with equal ones in that of their places, in half the time of an argsort."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def ascending(values: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(places of the values in ascending order, numbers that are equal where the sorted values are), [n] each.

    Equal values are in the order of their places, -0.0 equals 0.0; there must be no NaN.
    """
    # Value and place are one whole number, which sorts faster than a pair. Adding 0 makes -0.0 into 0.0; the bits of a
    # float32 are in the order of its values once those below the sign are turned round for negative ones.
    bits = (values + np.float32(0)).view(np.int32)
    keys = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).astype(np.int64)
    keys <<= 32
    keys |= np.arange(len(values))
    keys.sort()
    ordered = keys >> 32
    keys &= 0xFFFFFFFF
    return keys, ordered
