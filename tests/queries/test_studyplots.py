"""Figures of studies show their numbers, legible in a column, and without a value nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from circuitdb.queries import canvas, plots, studyplots

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

NAN = np.nan


def words(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def across(line: Line2D) -> list[float]:
    return list(np.asarray(line.get_xdata(), np.float64).tolist())


def up(line: Line2D) -> list[float]:
    return list(np.asarray(line.get_ydata(), np.float64).tolist())


def test_the_accuracy_of_each_cell() -> None:
    figure = studyplots.grid(np.array([[0.5, 1.0], [NAN, 0.03]]), [1, 2], [3, 4], ("a", "b"), "share")
    assert words(figure) == ["50%", "100%", "", "3%"]
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1", "2"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["3", "4"]
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("a", "b")


def test_families_by_letter_and_colour() -> None:
    figure = studyplots.family_map([["A", "B"], ["", "A"]], [1, 2], [1, 2], ("a", "b"))
    assert words(figure) == ["A", "B", "", "A"]
    values = figure.axes[0].images[0].get_array()
    assert values is not None
    assert np.ma.filled(values, -1).tolist() == [[0, -1], [-1, 0]]  # B is alone


def test_dots_with_their_intervals_and_ceilings() -> None:
    figure = studyplots.intervals(
        ["x", "y"], np.array([0.4, 0.5]), np.array([0.3, NAN]), np.array([0.6, NAN]), "what",
        limits=np.array([0.8, NAN]), line=0.0,
    )  # fmt: skip
    axes = figure.axes[0]
    (bars,) = [c for c in axes.collections if isinstance(c, LineCollection)]
    assert [segment.tolist() for segment in bars.get_segments()] == [[[0.3, 0], [0.6, 0]]]
    line, dots, limits = axes.lines
    assert across(line) == [0.0, 0.0]
    assert across(dots) == [0.4, 0.5]
    assert across(limits)[0] == 0.8
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first on top


def test_means_at_each_distance() -> None:
    figure = studyplots.by_distance(np.array([1.0, 1, 2, 2]), np.array([0.2, 0.4, 0.1, NAN]), "what")
    dots, means = figure.axes[0].lines
    assert len(across(dots)) == 3
    assert pytest.approx(np.array([[1, 0.3], [2, 0.1]])) == np.array([across(means), up(means)]).T


def test_training_over_its_ceiling() -> None:
    figure = studyplots.training(
        ["step1", "step2"], np.array([0.2, 0.5]), np.array([NAN, 0.4]), np.array([NAN, 0.6]), np.array([0.7, 0.8]),
        np.array([0.1, 0.9]), "stability",
    )  # fmt: skip
    above, below = figure.axes
    assert up(above.lines[0]) == [0.2, 0.5]
    assert up(above.lines[1]) == [0.7, 0.8]
    assert up(below.lines[0]) == [0.1, 0.9]


def written(figure: Figure) -> list[Text]:
    """Names of axes and of the ticks in view."""
    found = []
    for axes in figure.axes:
        found += [axes.xaxis.label, axes.yaxis.label]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            found += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [text for text in found if text.get_text()]


@pytest.mark.parametrize("n", [1, 3, 40])
def test_names_of_any_length_stay_within_the_figure(n: int) -> None:
    names = [f"a subtask of a long name that goes on, number {i}" for i in range(n)]
    values = np.linspace(0, 1, n)
    drawn = [
        studyplots.intervals(names, values, values - 0.1, values + 0.1, "what"),
        studyplots.training(names, values, values, values, values, values, "what"),
    ]
    for figure in drawn:
        figure.draw_without_rendering()
        width, height = figure.bbox.size
        assert figure.get_size_inches()[0] == canvas.WIDTH
        for label in written(figure):
            box = label.get_window_extent()
            assert box.x0 > -2, label
            assert box.x1 < width + 2, label
            assert box.y0 > -2, label
            assert box.y1 < height + 2, label


def test_the_same_figure_is_the_same_file() -> None:
    first, second = (
        plots.render(studyplots.by_distance(np.array([1.0, 2]), np.array([0.2, 0.4]), "what"), "svg", "t")
        for _ in range(2)
    )
    assert first == second
