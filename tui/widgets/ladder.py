"""A slider whose steps are sizes, such as 1, 2, 5, 10, ...: what a person sees is the size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from circuitdb.tui.widgets.slider import Slider


class Ladder(Slider):
    """One line: name, size, and a bar; `value` is the place of the size among `sizes`."""

    def __init__(self, label: str, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(label, 0, 0, 1, digits=0, id=id)
        self.sizes: Sequence[int] = (0,)

    @property
    def size_at(self) -> int:
        """The size that it stands on."""
        return self.sizes[round(self.value)]

    def climb(self, sizes: Sequence[int], at: int) -> None:
        """Give it other ascending sizes; it goes to the one nearest to `at`, in order of magnitude."""
        self.sizes = sizes
        nearest = int(np.argmin(np.abs(np.log(np.array(sizes)) - np.log(at))))
        self.high = len(sizes) - 1
        if round(self.value) != nearest:
            self.value = nearest
        self.refresh()

    def _start(self) -> str:
        width = max(len(f"{size:,}") for size in self.sizes)
        return f"{self.label} {self.size_at:>{width},} "
