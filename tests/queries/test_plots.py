"""Figures show the numbers of their answers, legible in a column, signs not by colour alone, and change no settings."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
import pytest
from matplotlib.collections import LineCollection

from circuitdb.errors import UsageError
from circuitdb.queries import Database, plots
from circuitdb.queries.containment import containment
from circuitdb.queries.correlation import Correlation, Points
from circuitdb.queries.cuts import Cut
from circuitdb.queries.families import family_sweep
from circuitdb.queries.similarity import similarity
from circuitdb.records import Accuracy
from circuitdb.store import Store
from matrices import score_matrix
from stores import SHAPE, circuit, model

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.text import Text


def written(figure: Figure) -> list[Text]:
    """Everything that is written in a figure, as drawn; ticks out of view are none."""
    figure.draw_without_rendering()
    found = [text for legend in figure.legends for text in legend.get_texts()]
    for axes in figure.axes:
        found += [*axes.texts, axes.xaxis.label, axes.yaxis.label]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            found += [label for tick in ticks for label in (tick.label1, tick.label2) if label.get_visible()]
    return [text for text in found if text.get_text().strip()]


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in written(figure)]


def cells(figure: Figure) -> list[np.ndarray]:
    """The values of each heat map, from the left."""
    return [np.asarray(axes.images[0].get_array().filled(np.nan)) for axes in figure.axes if axes.images]  # type: ignore[union-attr]


def pairs(matrix: np.ndarray) -> np.ndarray:
    """The values of distinct pairs."""
    return matrix[np.triu_indices(len(matrix), 1)]


def places(line: Line2D) -> np.ndarray:
    """[point, (x, y)] of what is drawn in one go."""
    return np.asarray(line.get_xydata(), np.float64)


def below_zero(values: np.ndarray) -> set[tuple[float, float]]:
    """(column, row) of each cell below zero."""
    return {(float(x), float(y)) for y, x in np.argwhere(values < 0).tolist()}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """Three models with long names, ever less noisy and ever more right, two subtasks each."""
    path = tmp_path_factory.mktemp("models") / "c.duckdb"
    store, rng = Store(path), np.random.default_rng(0)
    shared = rng.standard_normal(SHAPE.n_edges)
    for i, noise in enumerate((2.0, 1.0, 0.3)):
        for name in ("1+1", "1+2"):
            folds = shared + noise * rng.standard_normal((2, SHAPE.n_edges))
            one = circuit(name, of=model(f"a-model-of-a-name-that-is-long-{i}"))
            store.write(one, folds.mean(0), folds, accuracy=Accuracy(0.2 * i + 0.1, 0.1, 8))
    return Database(path)


@pytest.fixture(scope="module")
def figures(db: Database, models: Database) -> dict[str, Figure]:
    return {
        "similarity": plots.similarity(db.similarity()),
        "likeness": plots.similarity(db.similarity(corrected=True), corrected=True, by_likeness=True),
        "families": plots.families(db.similarity()),
        "classes": plots.families(db.similarity(kind="kappa", top=20), corrected=False, every_pair=True),
        "containment": plots.containment(db.containment(top=20)),
        "accuracy": plots.accuracy(db.correlate()),
        "models": plots.accuracy(models.correlate(over="models")),
        "between": plots.between(db.between({"circuits": [1, 2, 3]}, {"circuits": [5, 9]})),
        "long": plots.similarity(
            db.similarity(kind="kappa", top=20, layers=(0, 1), source=("head", "mlp"), target="head", nonzero=True)
        ),
        "circuit": plots.circuit(db.node_scores(1)),
    }


KINDS = [
    "similarity", "likeness", "long", "between", "families", "classes", "containment", "accuracy", "models", "circuit",
]  # fmt: skip


def test_long_names_and_many_circuits_fit_too() -> None:
    labels = [f"SmolLM2-135M-Instruct.Q4_1/addition/{i}+{j}" for i in range(6) for j in range(6)]
    found = similarity(
        score_matrix(np.random.default_rng(0).standard_normal((36, 75)), labels=labels).seen("magnitude")
    )
    figure = plots.similarity(found, corrected=True)
    assert_legible(figure)
    assert "SmolL\u2026tion/0+0" in words(figure)


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_wide_and_legible(kind: str, figures: dict[str, Figure]) -> None:
    assert_legible(figures[kind])


def assert_legible(figure: Figure) -> None:
    assert figure.get_size_inches()[0] == 3.3
    texts = written(figure)
    assert min(float(t.get_fontsize()) for t in texts) >= 6  # points, at the size it is printed in
    width, height = figure.bbox.size
    for text in texts:
        box = text.get_window_extent()
        assert box.x0 > -2, text.get_text()
        assert box.x1 < width + 2, text.get_text()
        assert box.y0 > -2, text.get_text()
        assert box.y1 < height + 2, text.get_text()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("form", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_every_format(kind: str, form: str, start: bytes, figures: dict[str, Figure]) -> None:
    content = plots.render(figures[kind], form, "A title of its own")
    assert content.startswith(start)
    assert b"A title of its own" in content


def test_drawing_leaves_matplotlib_as_it_was(db: Database) -> None:
    before = dict(matplotlib.rcParams)
    plots.render(plots.similarity(db.similarity()), "svg", "x")
    assert dict(matplotlib.rcParams) == before
    with pytest.raises(UsageError, match="png, svg, pdf, not gif"):
        plots.render(plots.families(db.similarity()), "gif", "x")


def test_similarity_and_reliability_are_those_of_the_answer(db: Database, figures: dict[str, Figure]) -> None:
    found = db.similarity()
    beside, matrix = cells(figures["similarity"])
    np.testing.assert_allclose(matrix, found.matrix)
    np.testing.assert_allclose(beside[:, 0], found.reliabilities)
    written = words(figures["similarity"])
    assert f"{found.matrix[0, 1]:.2f}".replace("-", "\u2212") in written  # a number below zero with its sign
    label = f"similarity of signed scores\n(Spearman's rho; median ceiling {np.median(pairs(found.ceiling)):.2f})"
    assert {"1+1", "3+3", "reliability (black: 1)", label} <= set(written)
    assert "similarity of signed scores\n(Spearman's rho, corrected for attenuation)" in words(figures["likeness"])


def test_another_coefficient_is_named(db: Database) -> None:
    found = db.similarity(kind="cosine", level="node")
    label = f"similarity of signed scores\n(cosine over nodes; median ceiling {np.median(pairs(found.ceiling)):.2f})"
    assert label in words(plots.similarity(found))


def test_two_sets_stand_beside_the_reliabilities_of_both(db: Database, figures: dict[str, Figure]) -> None:
    found = db.between({"circuits": [1, 2, 3]}, {"circuits": [5, 9]})
    beside, matrix, below = cells(figures["between"])
    np.testing.assert_allclose(matrix, found.matrix)
    np.testing.assert_allclose(beside[:, 0], db.similarity().reliabilities[:3])
    np.testing.assert_allclose(below[0], db.similarity().reliabilities[[4, 8]])
    label = f"similarity of signed scores\n(Spearman's rho; median ceiling {np.median(found.ceiling):.2f})"
    assert {"1+1", "1+3", "2+2", "3+3", label, f"{found.matrix[0, 1]:.2f}"} <= set(words(figures["between"]))
    corrected = db.between({"circuits": [1, 2, 3]}, {"circuits": [5, 9]}, kind="cosine")
    figure = plots.between(corrected, corrected=True)
    np.testing.assert_allclose(cells(figure)[1], corrected.corrected)
    assert "similarity of signed scores\n(cosine, corrected for attenuation)" in words(figure)


def test_like_stands_beside_like(db: Database, figures: dict[str, Figure]) -> None:
    axes = figures["likeness"].axes[1]
    order = [label.get_text() for label in axes.get_xticklabels()]
    assert sorted(order) == sorted(db.similarity().labels)
    alike = sorted(order.index(name) for name in ("1+1", "2+2", "3+3"))  # share a signal
    assert alike == list(range(alike[0], alike[0] + 3))


def test_many_cells_below_zero_have_a_bar(db: Database) -> None:
    rng = np.random.default_rng(0)
    found = similarity(score_matrix(rng.standard_normal((30, 40))))
    figure = plots.similarity(found)
    (marks,) = figure.axes[1].lines
    assert set(map(tuple, places(marks).tolist())) == below_zero(found.matrix)
    assert marks.get_marker() == "_"
    assert len(figure.axes[0].get_yticks()) <= 24


def test_families_against_alpha_and_their_bars(db: Database, figures: dict[str, Figure]) -> None:
    rows = db.family_sweep().rows()
    above, below = figures["families"].axes
    steps = places(above.lines[0]).tolist()
    for row in rows:  # the number at each alpha, as the line has it
        assert [row["alpha"], row["n_families"]] in steps
    (bars,) = below.collections
    assert isinstance(bars, LineCollection)
    ends = sorted(float(segment[0][0]) for segment in bars.get_segments())
    merges = list(itertools.chain(*([row["alpha"]] * (row["n_above"] - row["n_families"]) for row in rows)))  # type: ignore[operator]
    assert ends == pytest.approx(merges)
    ceiling = float(np.median(pairs(db.similarity().ceiling)))
    for axes in (above, below):
        assert places(axes.lines[-1])[:, 0].tolist() == pytest.approx([ceiling] * 2)
    assert f"dotted: its median ceiling, {ceiling:.2f}" in figures["families"].axes[1].get_xlabel().replace("\n", " ")


def test_classes_are_those_of_the_table_and_corrected_similarities_have_no_ceiling(
    db: Database, figures: dict[str, Figure]
) -> None:
    found = figures["classes"].axes[0]
    steps = places(found.lines[0]).tolist()
    for row in family_sweep(db.similarity(kind="kappa", top=20), every_pair=True).rows():
        assert [row["alpha"], row["n_families"]] in steps
    assert found.get_ylabel() == "classes"
    corrected = plots.families(db.similarity(), corrected=True).axes[1]
    assert corrected.get_xlabel() == "alpha: corrected similarity of signed scores\n(Spearman's rho)"
    assert len(corrected.lines) == 1  # the ends of the bars


def test_containment_stands_beside_chance(db: Database, figures: dict[str, Figure]) -> None:
    (shares,) = cells(figures["containment"])
    np.testing.assert_allclose(shares, db.containment(top=20).shares)
    assert "by chance: 0.27" in words(figures["containment"])  # 20 of 75 edges


def test_accuracy_has_its_points_and_rho(db: Database, figures: dict[str, Figure]) -> None:
    found = db.correlate()
    points, ceiling = figures["accuracy"].axes[0].lines
    expected = np.stack((found.points[0].similarity, found.points[0].value), axis=1)
    np.testing.assert_allclose(places(points), expected)
    assert places(ceiling)[0, 0] == found.rows()[0]["mean_ceiling"]
    rho = found.rows()[0]["rho"]
    assert f"tiny, addition: rho {rho:.2f} (n = 9)" in words(figures["accuracy"])
    said = "mean similarity to the others (rho, signed scores; dotted: its ceiling)"
    assert said in [text.replace("\n", " ") for text in words(figures["accuracy"])]


def test_the_ceiling_of_corrected_values_is_1(db: Database, models: Database) -> None:
    found = db.correlate(corrected=True)
    figure = plots.accuracy(found)
    points, ceiling = figure.axes[0].lines
    np.testing.assert_allclose(places(points)[:, 0], found.points[0].similarity)
    assert places(ceiling)[:, 0].tolist() == [1, 1]
    said = "corrected mean similarity to the others (rho, signed scores; dotted: its ceiling)"
    assert said in [text.replace("\n", " ") for text in words(figure)]
    (_, bars) = plots.accuracy(models.correlate(over="models", corrected=True)).axes[0].lines
    assert set(places(bars)[:, 0]) == {1.0}


def test_each_model_has_its_stability_its_ceiling_and_its_name(models: Database, figures: dict[str, Figure]) -> None:
    axes = figures["models"].axes[0]
    rows = models.stability().rows()
    points, ceilings = axes.lines
    stability, accuracy = [row["stability"] for row in rows], [0.1, 0.3, 0.5]
    np.testing.assert_allclose(places(points), np.array([stability, accuracy], np.float64).T)
    np.testing.assert_allclose(places(ceilings)[:, 0], np.array([row["ceiling"] for row in rows], np.float64))
    assert ceilings.get_marker() == "|"
    (lines,) = axes.collections
    assert isinstance(lines, LineCollection)
    assert [segment[:, 0].tolist() for segment in lines.get_segments()] == [
        pytest.approx([row["stability"], row["ceiling"]]) for row in rows
    ]
    written = words(figures["models"])
    assert "stability (rho, signed scores; bar: its ceiling)" in written
    assert {f"a-model-of\u2026hat-is-long-{i}" for i in range(3)} <= set(written)


def test_a_figure_of_accuracy_names_its_coefficient(db: Database) -> None:
    found = plots.accuracy(db.correlate(kind="kappa", top=20, on="magnitude"))
    (label,) = [text.replace("\n", " ") for text in words(found) if text.startswith("mean")]
    assert label == (
        "mean similarity to the others (overlap corrected for chance (kappa), 20 strongest, magnitude scores; dotted: "
        "its ceiling)"
    )
    assert_legible(found)


def test_groups_differ_by_marker_too() -> None:
    one = np.array([0.1, 0.2])
    parts = tuple(Points(name, ("x", "y"), one, one, one) for name in "abc")
    figure = plots.accuracy(Correlation(parts, "subtasks", "s.m", "signed", "t"))
    markers = [line.get_marker() for line in figure.axes[0].lines if line.get_linestyle() == "None"]
    assert len(set(markers)) == 3


def test_many_groups_differ_by_marker_or_colour_and_fit() -> None:
    one = np.array([0.1, 0.2])
    name = "a model of a long name, addition, prompt_style few-shot, shots"
    parts = tuple(Points(f"{name} {i}", ("x", "y"), one, one, one) for i in range(20))
    figure = plots.accuracy(Correlation(parts, "subtasks", "s.m", "signed", "t"))
    drawn = [line for line in figure.axes[0].lines if line.get_linestyle() == "None"]
    assert len({(line.get_marker(), line.get_color()) for line in drawn}) == 20
    assert_legible(figure)


def test_a_circuit_is_layers_by_heads(db: Database, figures: dict[str, Figure]) -> None:
    scores = {row["node"]: row["score"] for row in db.node_scores(1).rows()}
    assert len(scores) == SHAPE.n_sources
    heads, mlps = cells(figures["circuit"])
    for layer in range(SHAPE.n_layers):
        assert mlps[layer, 0] == pytest.approx(scores[f"m{layer}"])
        for head in range(SHAPE.n_heads):
            assert heads[layer, head] == pytest.approx(scores[f"a{layer}.h{head}"])
    marks = figures["circuit"].axes[0].lines[0]
    assert set(map(tuple, places(marks).tolist())) == below_zero(heads)


def test_node_scores_are_sums_over_outgoing_edges(db: Database) -> None:
    rows = db.sql("SELECT source, sum(score) AS score FROM scores WHERE circuit_id = 2 GROUP BY source").rows()
    assert {row["node"]: row["score"] for row in db.node_scores(2).rows()} == {
        row["source"]: pytest.approx(row["score"]) for row in rows
    }
    with pytest.raises(UsageError, match="There is no circuit 99"):
        db.node_scores(99)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_little_or_nothing_to_draw(n: int, tmp_path: Path) -> None:
    matrix = score_matrix(np.random.default_rng(0).standard_normal((n, SHAPE.n_edges)))
    for figure in (
        plots.similarity(similarity(matrix), by_likeness=True), plots.containment(containment(matrix, Cut.of(), SHAPE)),
    ):  # fmt: skip
        assert plots.render(figure, "svg", "x")
    Store(tmp_path / "c.duckdb").create()
    empty = Database(tmp_path / "c.duckdb")
    assert plots.render(plots.families(empty.similarity()), "svg", "x")
    assert plots.render(plots.accuracy(Correlation((), "subtasks", "s.m", "signed", "t")), "svg", "x")
