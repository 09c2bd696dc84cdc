"""How a study is going: one display over all its models and conditions, with the time that is left."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.progress import TextColumn

from circuitdb.cli.progress import Display, duration
from circuitdb.queries.result import count

if TYPE_CHECKING:
    from circuitdb.ingest.run import Outcome
    from circuitdb.ingest.studies.run import Planned

_LONGEST = 36  # of what is going on, so that the bar beside it keeps some room in 80 columns


class TimeLeft:
    """What was forecast for the circuits that are still to score, times what the forecast was wrong by so far."""

    def __init__(self, n_models: int, now: Callable[[], float] = time.monotonic) -> None:
        """`n_models`: models of the study, none of them forecast yet."""
        self._now, self._later = now, n_models
        self._waiting: dict[tuple[str, str], float] = {}
        self._current: tuple[str, str] | None = None
        self._began = self._of_model = self._forecast = self._taken = 0.0

    def expect(self, seconds: dict[tuple[str, str], float], n_circuits: int) -> None:
        """The next model has these circuits to score; the models after it are taken to have `n_circuits` alike."""
        self._later -= 1
        self._waiting = {key: value for key, value in seconds.items() if math.isfinite(value)}
        if self._waiting:
            self._of_model = n_circuits * sum(self._waiting.values()) / len(self._waiting)

    def skip_model(self) -> None:
        """The next model is not to be had."""
        self._later -= 1

    def start(self, circuit: tuple[str, str]) -> None:
        """A circuit is being scored."""
        self._current, self._began = circuit, self._now()

    def finish(self, circuit: tuple[str, str], *, scored: bool) -> None:
        """A circuit is done with; one that failed or was kept says nothing about the speed."""
        forecast = self._waiting.pop(circuit, 0.0)
        if scored and forecast and circuit == self._current:
            self._forecast += forecast
            self._taken += self._now() - self._began
        self._current = None

    def seconds(self, share: float = 0.0) -> float:
        """Seconds left when so much of the current circuit is done."""
        done = share * self._waiting.get(self._current, 0.0) if self._current else 0.0
        rate = self._taken / self._forecast if self._forecast else 1.0
        return rate * (sum(self._waiting.values()) - done + self._later * self._of_model)


class StudyProgress(Display):
    """Told by a study what it does."""

    def __init__(self, n_models: int, n_circuits: int) -> None:
        """So many models, and so many circuits in each."""
        super().__init__("circuits", TextColumn("{task.fields[left]}"))
        self._each, self._total, self._done = n_circuits, n_models * n_circuits, 0
        self._left = TimeLeft(n_models)
        self._condition = ""
        self._several = False
        self._bar.update(self._row, total=self._total, completed=0)

    def forecast(self, planned: Sequence[Planned]) -> None:
        """What is to be scored in the model that was loaded, condition by condition."""
        missing = {
            (each.condition, one.subtask): one for each in planned for one in each.subtasks if one.status == "missing"
        }
        seconds = {key: one.seconds or 0.0 for key, one in missing.items()}
        self._left.expect(seconds, self._each)
        self._several = len(planned) > 1
        n_stored = sum(one.status == "stored" for each in planned for one in each.subtasks)
        kept = f", {n_stored} stored already" if n_stored else ""
        if not missing:
            self._line(f"{planned[0].model}: nothing to score{kept}.")
            return
        disk = sum(one.disk or 0 for one in missing.values())
        self._line(f"{planned[0].model}: {count(len(missing), 'circuit')} to score{kept}.")
        self._line(f"They will take about {duration(sum(seconds.values()))} and {_megabytes(disk)} of disk.")
        for each in planned if self._several else ():
            own = [seconds[each.condition, one.subtask] for one in each.subtasks if one.status == "missing"]
            if own:
                self._line(f"  {each.condition}: {len(own)}, about {duration(sum(own))}")

    def condition(self, name: str) -> None:
        """The ingest of a condition begins."""
        self._condition = name

    def planned(self, n_missing: int, n_stored: int) -> None:
        """Said before, of the whole model."""
        if n_missing and self._several and not self._interactive:
            self._line(f"{self._condition}:")

    def sized(self, n_bytes: int) -> None:
        """Said before, with the rest of the disk."""

    def estimated(self, seconds: float) -> None:
        """Said before, with the rest of the time."""

    def started(self, subtask: str) -> None:
        """A circuit is being scored."""
        self._left.start((self._condition, subtask))
        where = f"{subtask}, {self._condition}" if self._several else subtask
        self._bar.update(self._row, description=_short(f"scoring {where}"), left=self._said())

    def progress(self, share: float) -> None:
        """Share of the current circuit that is done, 0..1."""
        # The last tenth is for the accuracy and for storing.
        self._bar.update(self._row, completed=self._done + 0.9 * share, left=self._said(0.9 * share))

    def finished(self, outcome: Outcome) -> None:
        """A subtask is done with."""
        self._done += 1
        self._left.finish((self._condition, outcome.subtask), scored=outcome.status == "stored")
        self._bar.update(self._row, completed=self._done, left=self._said())
        if outcome.status == "failed":
            self._line(f"{outcome.subtask}: {outcome.reason}")
        elif outcome.status == "stored" and not self._interactive:
            left = self._said()
            self._line(
                f"{self._done} of {self._total}: {outcome.subtask}, {outcome.wall_time_s:.1f} s"
                f"{f'; {left}' if left else ''}"
            )

    def unloadable(self, model: str, reason: str) -> None:
        """A model that can't be loaded."""
        self._left.skip_model()
        self._lose(self._each, f"{model}: {reason}")

    def failed(self, condition: str, reason: str, subtasks: Sequence[str]) -> None:
        """A condition that can't be scored in the model that is loaded."""
        for subtask in subtasks:
            self._left.finish((condition, subtask), scored=False)
        self._lose(len(subtasks), f"{condition}: {reason}")

    def _lose(self, n_circuits: int, line: str) -> None:
        self._done += n_circuits
        self._bar.update(self._row, completed=self._done, left=self._said())
        self._line(line)

    def _said(self, share: float = 0.0) -> str:
        seconds = self._left.seconds(share)
        return f"about {duration(seconds)} left" if seconds > 0 else ""


def _megabytes(n_bytes: int) -> str:
    return f"{max(1, round(n_bytes / 1e6)):,} MB"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
