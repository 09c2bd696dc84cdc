"""How many pairs fit in one pass: planned from the memory that is free, and halved when that turns out too much."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

from circuitdb.errors import ModelError
from circuitdb.ingest.models import LoadedModel

# Share of the free memory that one batch may fill; the rest is for the allocator and for others on the machine.
_SHARE = 0.5
# Tensors of the width of the residual stream that a layer's forward and backward pass keep per position, roughly.
_ACTIVATIONS = 40
# The same for a pass without gradients, which keeps only one layer's.
_PASSING = 60
# More positions in a pass without gradients gain nothing.
_MOST_POSITIONS = 16_384
_MEMINFO, _CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class MemoryPlan:
    """What a pass will need, in bytes: weights, one pair, and all pairs of a batch; `free` is what there is now."""

    weights: int
    per_pair: int
    batch_size: int
    free: int

    @property
    def peak(self) -> int:
        """Weights and one batch."""
        return self.weights + self.batch_size * self.per_pair


class Memory:
    """The batch size for a model and a method of `n_points` gradient passes; `wanted` is the user's own, if any."""

    def __init__(self, model: LoadedModel, n_points: int, wanted: int | None = None) -> None:
        self.model, self.n_points, self.wanted = model, n_points, wanted
        self.most: int | None = None
        self.rows: int | None = None
        self.most_rows = sys.maxsize

    def batch_size(self, n_positions: int, n_examples: int) -> int:
        """The largest batch, up to all examples, whose estimated memory fits."""
        if self.wanted is not None:
            fitting = self.wanted
        else:
            fitting = int(_SHARE * free_memory(self.model.device) / self.per_pair(n_positions))
        return max(1, min(n_examples, fitting, self.most or n_examples))

    def per_pair(self, n_positions: int) -> int:
        """Estimated bytes of one pair: autograd, source differences, head-space sums and streams."""
        record, shape = self.model.record, self.model.record.shape
        per_layer = _ACTIVATIONS + 3 + 2 * self.n_points
        attention = 4 * shape.n_layers * shape.n_heads * n_positions**2 * 4
        # + 6 h: one layer's targets in model space while they are contracted
        vectors = shape.n_sources + shape.n_layers * per_layer + 6 * shape.n_heads
        return n_positions * record.d_model * 4 * vectors + attention + 8 * self.model.n_vocab * 4

    def exact_rows(self, n_positions: int, n_scored: int) -> int:
        """How many copies of an example one pass of `exact` can take."""
        record = self.model.record
        per_row = n_positions * record.d_model * 4 * _PASSING + 6 * n_scored * self.model.n_vocab * 4
        return self._rows(per_row, n_positions)

    def circuit_rows(self, n_positions: int, n_scored: int) -> int:
        """How many copies of an example, each with a circuit of its own, one pass can take."""
        record, shape = self.model.record, self.model.record.shape
        vectors = shape.n_sources + 4 * shape.n_heads + _PASSING
        per_row = n_positions * record.d_model * 4 * vectors + 6 * n_scored * self.model.n_vocab * 4
        return self._rows(per_row, n_positions)

    def _rows(self, per_row: int, n_positions: int) -> int:
        fitting = int(_SHARE / 2 * free_memory(self.model.device) / per_row)
        self.rows = max(1, min(fitting, _MOST_POSITIONS // n_positions, self.most_rows))
        return self.rows

    def plan(self, n_positions: int, n_examples: int) -> MemoryPlan:
        """What a batch of prompts of so many positions will need."""
        weights = (self.model.record.n_parameters or 0) * self.model.dtype.itemsize
        size = self.batch_size(n_positions, n_examples)
        return MemoryPlan(weights, self.per_pair(n_positions), size, free_memory(self.model.device))

    @staticmethod
    def exhausted(error: BaseException) -> bool:
        """Whether an error says that memory ran out, on whatever device."""
        return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or any(
            text in str(error) for text in ("out of memory", "can't allocate memory", "not enough memory")
        )

    def shrink(self, n_failed: int, reason: str) -> None:
        """Halve the batch, and the copies of its examples, after a pass with `n_failed` pairs ran out of memory.

        Raises ModelError where nothing is left to halve.
        """
        if n_failed == 1 and (self.rows is None or self.rows == 1):
            raise self.too_small(reason)
        self.most = max(1, n_failed // 2)
        self.shrink_rows(self.rows or 1)

    def shrink_rows(self, n_failed: int) -> None:
        """Halve the copies of examples alone, after a pass with `n_failed` of them ran out of memory."""
        self.most_rows = max(1, n_failed // 2)
        if self.model.device.type == "cuda":
            torch.cuda.empty_cache()

    def too_small(self, reason: str) -> ModelError:
        """The error for a device that can't hold a single pair."""
        return ModelError(
            f"Memory ran out with a single pair on {self.model.device} ({reason}); "
            "use shorter prompts, fewer steps, --dtype bfloat16 or a larger device."
        )


def free_memory(device: torch.device) -> int:
    """Bytes that a process can get on the device."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return min(_available(), _allowed())


def _available() -> int:
    """Memory that a process can get without swapping; half of all where the system does not tell."""
    if _MEMINFO.exists():
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _allowed() -> int:
    """What a container leaves: its limit less what is used; no limit outside one."""
    limit, used = (_CGROUP / name for name in ("memory.max", "memory.current"))
    if limit.exists() and used.exists() and limit.read_text().strip() != "max":
        return max(0, int(limit.read_text()) - int(used.read_text()))
    return sys.maxsize
