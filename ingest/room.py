"""Memory that is filled again and again, since asking the system for new memory is slow."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor


class Room:
    """The memory of one tensor after the other; each takes the place of the last."""

    def __init__(self) -> None:
        self._held = torch.empty(0)

    def tensor(self, size: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
        """A tensor with nothing in it yet."""
        n = prod(size)
        if self._held.numel() < n or self._held.dtype != dtype or self._held.device != device:
            self._held = torch.empty(n, dtype=dtype, device=device)
        return self._held[:n].view(size)
