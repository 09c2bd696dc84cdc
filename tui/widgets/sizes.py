"""A slider over a list of numbers, such as sizes that grow by factors."""

from __future__ import annotations

from collections.abc import Sequence

from circuitdb.tui.widgets.slider import Slider


class Sizes(Slider):
    """Its `value` is the place in the list; what it shows, and what `size` is, is the number there."""

    def __init__(self, label: str, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(label, 0, 0, 1, id=id, digits=0)
        self._sizes: Sequence[float] = (1.0,)

    @property
    def sizes(self) -> Sequence[float]:
        """The numbers."""
        return self._sizes

    @property
    def size_shown(self) -> float:
        """The number at its place."""
        return self._sizes[min(round(self.value), len(self._sizes) - 1)]

    def offer(self, label: str, sizes: Sequence[float], place: int) -> None:
        """Give it other numbers, and stand at one of them; nothing is told of that."""
        self.label, self._sizes = label, sizes
        with self.prevent(Slider.Changed):
            self.span(0, len(sizes) - 1, 1)
            self.value = place

    def _start(self) -> str:
        width = max(len(_shown(size)) for size in self._sizes)
        return f"{self.label} {_shown(self.size_shown):>{width}} "


def _shown(size: float) -> str:
    return f"{size:,.0f}" if size >= 1 else f"{size:.7f}".rstrip("0")
