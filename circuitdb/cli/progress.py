"""How an ingest is going, on standard error: a bar with the time left on a terminal, a line per circuit elsewhere."""

from __future__ import annotations

import math
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from circuitdb.cli import diagnostics

if TYPE_CHECKING:
    from circuitdb.ingest.run import Outcome


class Display:
    """A bar of one row on a terminal, lines elsewhere; a context manager that takes the bar off on leaving."""

    def __init__(self, counted: str, left: ProgressColumn | None = None) -> None:
        """`counted` is what is counted, `left` tells the time left; by default it goes by the share that is done."""
        self._interactive = diagnostics.terminal(sys.stderr)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn(counted),
            TimeElapsedColumn(),
            TextColumn("left"),
            left or TimeRemainingColumn(),
            console=Console(stderr=True, no_color=not diagnostics.colour(sys.stderr)),
            disable=not self._interactive,
        )
        self._row = self._bar.add_task("loading", total=None, left="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._bar.stop()

    def loading(self, model: str) -> None:
        """The model is being loaded."""
        self._tell(f"loading {model}")

    def _tell(self, text: str) -> None:
        """What is going on now: in the bar, or as a line where there is none."""
        self._bar.update(self._row, description=text)
        if not self._interactive:
            self._line(text)

    def _line(self, text: str) -> None:
        if self._interactive:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


class RunProgress(Display):
    """Told by a run of circuits how far it is."""

    def __init__(self) -> None:
        super().__init__("runs")
        self._last = ""

    def skipped(self, reason: str) -> None:
        """Circuits that can't be run in this model."""
        diagnostics.warning(reason)

    def progress(self, n_done: float, n_pairs: int, what: str) -> None:
        """So many of the (circuit, data) pairs are run; `what` is being run now."""
        self._bar.update(self._row, total=n_pairs, completed=n_done, description=f"running {what}")
        if not self._interactive and what != self._last:
            self._line(f"{int(n_done) + 1} of {n_pairs}: {what}")
        self._last = what


class IngestProgress(Display):
    """Told by an ingest what it does."""

    def __init__(self) -> None:
        super().__init__("circuits")
        self._done, self._missing = 0, 0

    def planned(self, n_missing: int, n_stored: int) -> None:
        """All subtasks are planned; `n_missing` circuits are to be scored, `n_stored` are there already."""
        self._missing = n_missing
        if n_missing:
            kept = f", {n_stored} stored already" if n_stored else ""
            self._line(f"{_circuits(n_missing)} to score{kept}.")
        elif n_stored:
            self._line(f"Nothing to score: {_circuits(n_stored)} stored already.")
        # With the model loaded the clock starts anew, so that the time left is that of scoring alone.
        self._bar.reset(self._row, total=n_missing, description="scoring")

    def sized(self, n_bytes: int) -> None:
        """Disk that the scores of single examples will take."""
        self._line(f"The scores of single examples will take about {n_bytes / 1e6:,.0f} MB.")

    def estimated(self, seconds: float) -> None:
        """How long all missing circuits will take."""
        self._line(f"Exact patching of them will take about {duration(seconds)}.")

    def started(self, subtask: str) -> None:
        """A circuit is being scored."""
        self._bar.update(self._row, description=f"scoring {subtask}")

    def progress(self, share: float) -> None:
        """Share of the current circuit that is done, 0..1."""
        # The last tenth is for the accuracy and for storing.
        self._bar.update(self._row, completed=self._done + 0.9 * share)

    def finished(self, outcome: Outcome) -> None:
        """A subtask is done with."""
        if outcome.status == "kept":
            return
        if outcome.status == "failed":
            self._line(f"{outcome.subtask}: {outcome.reason}")
            return
        self._done += 1
        self._bar.update(self._row, completed=self._done)
        if not self._interactive:
            self._tell(f"{self._done} of {self._missing}: {outcome.subtask}, {outcome.wall_time_s:.1f} s")


def duration(seconds: float) -> str:
    """Seconds as a person says them: 40 s, 12 min, 3 h 20 min, 2 days 5 h."""
    if not math.isfinite(seconds):
        return "an unknown time"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} days {hours % 24} h"


def _circuits(n: int) -> str:
    return f"{n} circuit" if n == 1 else f"{n} circuits"
