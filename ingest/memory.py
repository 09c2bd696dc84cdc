"""How many pairs fit in one pass: planned from the memory that is free, and halved when that turns out too much."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

from circuitdb.errors import ModelError, UsageError
from circuitdb.ingest.models import LoadedModel, accumulation_dtype

# Share of the free memory that one batch may fill; the rest is for the allocator and for others on the machine.
_SHARE = 0.5
# Tensors of the width of the residual stream that a layer's forward and backward pass keep per position, roughly.
_ACTIVATIONS = 40
# Targets of several layers are written out together, about so many.
_WRITTEN_OUT = 128
# Activations of a pass without gradients, which keeps only one layer's.
_PASSING = 60
# Points of a path run in one pass up to so many positions; the processor multiplies no faster with more.
_GAINING_POSITIONS = {"cpu": 512}
# The same on other devices, and for a pass without gradients.
_MOST_POSITIONS = 16_384
# What torch says, on one device or another, when memory runs out.
_EXHAUSTED = ("out of memory", "can't allocate memory", "not enough memory", "ALLOC_FAILED")
_MEMINFO, _CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Length:
    """Positions of a prompt that are run, those before them whose keys and values are cached, and those scored."""

    n_positions: int
    n_cached: int = 0
    n_scored: int = 1


@dataclass(frozen=True)
class MemoryPlan:
    """What scoring will need, in bytes: the weights, the sums of scores, and each pair of a batch.

    `kept` is what a pair takes whatever runs, `passing` what it takes at each of the `points` of one pass.
    """

    weights: int
    sums: int
    kept: int
    passing: int
    points: int
    batch_size: int

    @property
    def peak(self) -> int:
        """Weights, sums and one batch."""
        return self.weights + self.sums + self.batch_size * (self.kept + self.points * self.passing)


class Memory:
    """The batch size for a model and a method of `n_points` gradient passes.

    `wanted` is the user's own limit to the prompts in a pass, if any.
    """

    def __init__(self, model: LoadedModel, n_points: int, wanted: int | None = None) -> None:
        """Raises UsageError for a wanted batch size that can't be."""
        if wanted is not None and (not isinstance(wanted, int) or wanted < 1):
            raise UsageError(f"A batch needs a whole number of pairs, at least one pair, not {wanted!r}.")
        self.model, self.n_points, self.wanted = model, n_points, wanted
        self.most: int | None = None
        self.points, self.most_points = 1, n_points
        self.rows: int | None = None
        self.most_rows = sys.maxsize

    def batch_size(self, length: Length, n_examples: int) -> int:
        """The largest batch, up to all examples, whose estimated memory fits."""
        if self.wanted is not None:
            fitting = self.wanted
        else:
            fitting = self._usable() // (self.kept(length) + self.passing(length))
        return max(1, min(n_examples, fitting, self.most or n_examples))

    def points_at_once(self, length: Length, n_pairs: int) -> int:
        """How many points of the path one pass over a batch takes: more where the batch alone is small work."""
        gaining = _GAINING_POSITIONS.get(self.model.device.type, _MOST_POSITIONS) // (length.n_positions * n_pairs)
        if self.wanted is not None:
            fitting = self.wanted // n_pairs
        else:
            fitting = (self._usable() // n_pairs - self.kept(length)) // self.passing(length)
        self.points = max(1, min(self.most_points, gaining, fitting))
        return self.points

    def kept(self, length: Length) -> int:
        """Estimated bytes that a pair takes outside of any pass: what is written and read, sums and streams."""
        record, shape = self.model.record, self.model.record.shape
        # What sources and targets are when written out, then by layer: outputs of two runs, sums, streams of each step.
        vectors = shape.n_sources + max(_WRITTEN_OUT, 3 * shape.n_heads) + shape.n_layers * (8 + 2 * self.n_points)
        return length.n_positions * record.d_model * self._itemsize * vectors

    def passing(self, length: Length) -> int:
        """Estimated bytes that a pair takes in one pass: activations, keys and values, attention and logits."""
        record, shape = self.model.record, self.model.record.shape
        n_all = length.n_cached + length.n_positions
        # Keys and values are put together with the cached ones, for each query head, and kept for the backward pass.
        vectors = shape.n_layers * (_ACTIVATIONS * length.n_positions + 2 * n_all * (length.n_cached > 0))
        attention = 4 * shape.n_layers * shape.n_heads * length.n_positions * n_all
        logits = 8 * length.n_scored * self.model.n_vocab
        return (vectors * record.d_model + attention + logits) * self._itemsize

    @property
    def _itemsize(self) -> int:
        return accumulation_dtype(self.model.dtype).itemsize

    def _usable(self) -> int:
        return int(_SHARE * free_memory(self.model.device))

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

    def plan(self, length: Length, n_examples: int, n_folds: int, *, by_example: bool) -> MemoryPlan:
        """What scoring so many prompts will need."""
        shape = self.model.record.shape
        weights = (self.model.record.n_parameters or 0) * self.model.dtype.itemsize
        sums = 8 * n_folds * shape.n_sources * shape.n_targets + 4 * by_example * n_examples * shape.n_edges
        size = self.batch_size(length, n_examples)
        points = self.points_at_once(length, size)
        return MemoryPlan(weights, sums, self.kept(length), self.passing(length), points, size)

    @staticmethod
    def failure(error: Exception) -> str:
        """What an error says of memory that ran out, on whatever device; any other error is raised again."""
        if not exhausted(error):
            raise error
        return str(error).splitlines()[0] if str(error) else "out of memory"

    def shrink(self, n_failed: int, reason: str) -> None:
        """Halve the points in a pass, or else the batch and the copies of its examples, after memory ran out.

        `n_failed`: pairs of the pass that failed. Raises ModelError where nothing is left to halve.
        """
        self.empty_cache()
        if self.points > 1:
            self.points = self.most_points = self.points // 2
            return
        if n_failed == 1 and (self.rows is None or self.rows == 1):
            raise self.too_small(reason)
        self.most = max(1, n_failed // 2)
        self.shrink_rows(self.rows or 1)

    def shrink_rows(self, n_failed: int) -> None:
        """Halve the copies of examples alone, after a pass with `n_failed` of them ran out of memory."""
        self.most_rows = max(1, n_failed // 2)
        self.empty_cache()

    def empty_cache(self) -> None:
        """Give back what torch holds on to."""
        if self.model.device.type == "cuda":
            torch.cuda.empty_cache()

    def too_small(self, reason: str) -> ModelError:
        """The error for a device that can't hold a single pair."""
        return ModelError(
            f"Memory ran out with a single pair on {self.model.device} ({reason}); "
            "use shorter prompts, fewer steps, --dtype bfloat16 or a larger device."
        )


def exhausted(error: Exception) -> bool:
    """Whether an error says that memory ran out, on whatever device."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or any(text in str(error) for text in _EXHAUSTED)


def free_memory(device: torch.device) -> int:
    """Bytes that a process can get on the device."""
    if device.type == "cuda":
        # What torch has freed but holds on to is free for it.
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + held
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
