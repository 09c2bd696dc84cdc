"""A matrix of shares in per cent, with a sign at the pairs of which one lies in the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from circuitdb.tui.widgets.heatmap import Heatmap

_WIDE = 4


class Shares(Heatmap):
    """Shows shares of 0 to 1 in whole per cent, cut off so that 100 is all; ⊂ marks what is `inside`."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(cell=_WIDE, id=id)
        self._marked: npt.NDArray[np.bool_] = np.empty((0, 0), np.bool_)

    def draw_shares(
        self,
        shares: npt.NDArray[np.float64],
        inside: npt.NDArray[np.bool_],
        rows: Sequence[str],
        columns: Sequence[str],
    ) -> None:
        """Show other shares, NaN for none; `inside` [row, column] are those to mark."""
        self._marked = inside
        self.draw(shares, rows, columns, limit=1.0)

    @property
    def legend(self) -> str:
        """What the signs in the cells mean."""
        return "per cent of the row's edges that are in the column; ⊂ all but the tolerance; · empty"

    def texts(self, row: int, first: int, last: int) -> list[str]:
        """Per cent, behind the sign."""
        cells = zip(self.values[row, first:last].tolist(), self._marked[row, first:last].tolist(), strict=True)
        # A hair is added, so that 0.29 is 29 per cent and not 28.
        return [
            f"{'⊂' if inside else ' '}{'·' if share != share else int(share * 100 + 1e-9):>3}"
            for share, inside in cells
        ]
