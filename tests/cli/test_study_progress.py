"""What a study says while it runs: the time that is left, and lines where there is no terminal."""

from __future__ import annotations

import pytest

from circuitdb.cli.study_progress import StudyProgress, TimeLeft
from circuitdb.ingest.forecast import Forecast
from circuitdb.ingest.run import Outcome
from circuitdb.ingest.studies.run import Planned

A, B, C = ("few-shot", "a"), ("few-shot", "b"), ("reasoning", "c")


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_time_left_is_the_forecast_times_how_wrong_it_was() -> None:
    clock = Clock()
    left = TimeLeft(n_models=2, now=clock)
    assert left.seconds() == 0  # nothing is known before the first model is loaded
    left.expect({A: 10.0, B: 10.0, C: 40.0}, n_circuits=6)
    # 60 s here; the model after it has 6 circuits of 20 s each, for nothing is known of what is stored of it.
    assert left.seconds() == 60 + 120
    left.start(A)
    assert left.seconds(share=0.5) == 55 + 120
    clock.seconds += 15
    left.finish(A, scored=True)  # it took 15 s instead of 10: half as much again for all that is left
    assert left.seconds() == pytest.approx(1.5 * (50 + 120))
    left.start(B)
    clock.seconds += 1
    left.finish(B, scored=False)  # failed at once: no measure of the speed
    assert left.seconds() == pytest.approx(1.5 * (40 + 120))
    left.start(C)
    clock.seconds += 30
    left.finish(C, scored=True)  # 45 s in all where 50 were forecast
    assert left.seconds() == pytest.approx(0.9 * 120)
    left.skip_model()
    assert left.seconds() == 0


def test_a_probe_that_failed_says_nothing() -> None:
    left = TimeLeft(n_models=1)
    left.expect({A: float("nan"), B: 10.0}, n_circuits=2)
    assert left.seconds() == 10


def test_a_model_without_anything_to_score_leaves_the_others_as_they_were() -> None:
    left = TimeLeft(n_models=3)
    left.expect({A: 10.0}, n_circuits=2)
    left.expect({}, n_circuits=2)
    assert left.seconds() == 20  # of the third


def planned() -> list[Planned]:
    """Three circuits of two conditions, one of them stored."""
    few = (
        Forecast("a", "missing", disk=3_000_000, seconds=20.0),
        Forecast("b", "stored", disk=0, seconds=0.0),
    )
    return [
        Planned("tiny", "few-shot", few),
        Planned("tiny", "reasoning", (Forecast("c", "missing", disk=9_000_000, seconds=100.0),)),
    ]


def test_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with StudyProgress(n_models=2, n_circuits=3) as watcher:
        watcher.loading("tiny")
        watcher.forecast(planned())
        watcher.condition("few-shot")
        watcher.planned(1, 1)
        watcher.started("a")
        watcher.finished(Outcome("a", "stored", 1, wall_time_s=2.0))
        watcher.finished(Outcome("b", "kept", 2))
        watcher.condition("reasoning")
        watcher.planned(1, 0)
        watcher.started("c")
        watcher.finished(Outcome("c", "failed", reason="No pair was found."))
        watcher.loading("other")
        watcher.unloadable("other", "There is no file other.gguf.")
    said = capsys.readouterr()
    lines = said.err.splitlines()
    assert said.out == ""
    # How long 'a' took here decides the time that is left after it.
    assert lines[6].startswith("1 of 6: a, 2.0 s; about ")
    assert [*lines[:6], *lines[7:]] == [
        "loading tiny",
        "tiny: 2 circuits to score, 1 stored already.",
        "They will take about 2 min and 12 MB of disk.",
        "  few-shot: 1, about 20 s",
        "  reasoning: 1, about 2 min",
        "few-shot:",
        "reasoning:",
        "c: No pair was found.",
        "loading other",
        "other: There is no file other.gguf.",
    ]


def test_nothing_to_score_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with StudyProgress(n_models=1, n_circuits=1) as watcher:
        watcher.forecast([Planned("tiny", "few-shot", (Forecast("b", "stored", disk=0, seconds=0.0),))])
    assert capsys.readouterr().err == "tiny: nothing to score, 1 stored already.\n"
