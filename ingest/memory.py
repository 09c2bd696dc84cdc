"""How many pairs fit in one pass."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

from circuitdb.ingest.models import LoadedModel

# Share of the free memory that one batch may fill; the rest is for the allocator and for others on the machine.
_SHARE = 0.5
# Tensors of the width of the residual stream that a layer's forward and backward pass keep per position, roughly.
_ACTIVATIONS = 40
_MEMINFO, _CGROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def batch_size_for(model: LoadedModel, n_positions: int, n_steps: int, n_examples: int) -> int:
    """The largest batch, up to all examples, whose estimated memory fits."""
    return max(1, min(n_examples, int(_SHARE * _free(model.device) / bytes_per_example(model, n_positions, n_steps))))


def bytes_per_example(model: LoadedModel, n_positions: int, n_steps: int) -> int:
    """Estimated bytes of one pair: autograd, source differences, head-space sums and streams."""
    record, shape = model.record, model.record.shape
    per_layer = _ACTIVATIONS + 3 + 2 * n_steps
    attention = 4 * shape.n_layers * shape.n_heads * n_positions**2 * 4
    # + 6 h: one layer's targets in model space while they are contracted
    vectors = shape.n_sources + shape.n_layers * per_layer + 6 * shape.n_heads
    return n_positions * record.d_model * 4 * vectors + attention + 8 * model.n_vocab * 4


def _free(device: torch.device) -> int:
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
