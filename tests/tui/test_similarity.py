from __future__ import annotations

import math
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from scipy import stats
from textual.widgets import Static

from browsers import LARGE, SMALL, lines, opened, press, settled, shown
from circuitdb.graph import GraphShape
from circuitdb.store import Store
from circuitdb.tui.app import Browser
from circuitdb.tui.screens.similarity import Similarity
from circuitdb.tui.widgets.barcode import Barcode
from circuitdb.tui.widgets.choices import Choices
from circuitdb.tui.widgets.heatmap import Heatmap
from circuitdb.tui.widgets.slider import Slider
from stores import SHAPE, addition_scores, addition_store, circuit, model

pytestmark = pytest.mark.anyio
CELLS = list(addition_scores().values())  # 1+1, 1+2, ..., 3+3; 1+1, 2+2 and 3+3 share a signal


def screen(browser: Browser) -> Similarity:
    assert isinstance(browser.screen, Similarity)
    return browser.screen


def heat(browser: Browser) -> Heatmap:
    return browser.screen.query_one(Heatmap)


def told(browser: Browser) -> str:
    """What stands beside the map, on one line."""
    return " ".join(str(browser.screen.query_one("#cell", Static).content).split())


def row_labels(browser: Browser) -> list[str]:
    region = heat(browser).region
    found = [line[region.x : region.right].split() for line in lines(browser)[region.y : region.bottom]]
    return [" ".join(words[:2]) for words in found if words and "+" in words[0] and len(words[0]) == 3]


def rho(a: int, b: int) -> float:
    return float(stats.spearmanr(CELLS[a][0], CELLS[b][0]).statistic)


def reliability(row: int) -> float:
    r = float(stats.spearmanr(*CELLS[row][1]).statistic)
    return 2 * r / (1 + r)


@pytest.mark.parametrize("size", [SMALL, (120, 40), LARGE])
async def test_the_cell_under_the_cursor(shared_store: Path, size: tuple[int, int]) -> None:
    async with opened(shared_store, "2", "right", size=size) as (browser, _):
        ceiling = math.sqrt(reliability(0) * reliability(1))
        text = shown(browser)
        assert f"spearman {rho(0, 1):.2f}" in text
        assert f"ceiling {ceiling:.2f}" in text
        assert f"corrected {rho(0, 1) / ceiling:.2f}" in text
        assert f"reliability {reliability(0):.2f} and {reliability(1):.2f}" in text
        assert "over 75 edges" in text
        assert "7 families at alpha = 0." in text
        assert "H0 barcode: 7 of 9 bars cross alpha" in text
        np.testing.assert_allclose(heat(browser).values[0, :2], [1, rho(0, 1)], rtol=0, atol=1e-6)


async def test_families_follow_alpha_in_letters(shared_store: Path) -> None:
    async with opened(shared_store, "2") as (browser, pilot):
        found = screen(browser).answer
        browser.selection = browser.selection.at(0.6)
        await settled(browser, pilot)
        assert row_labels(browser) == ["1+1 A", "1+2 B", "1+3 C", "2+1 D", "2+2 A", "2+3 E", "3+1 F", "3+2 G", "3+3 A"]
        await press(browser, pilot, *["right_square_bracket"] * 8)
        assert browser.selection.alpha == 1.0
        assert row_labels(browser)[-1] == "3+3 I"
        assert "9 families at alpha = 1.00" in shown(browser)
        assert browser.screen.query_one(Barcode).crossing == 9
        await press(browser, pilot, "left_curly_bracket")
        pairs = [rho(0, 4), rho(0, 8), rho(4, 8)]
        assert browser.selection.alpha == pytest.approx(max(pairs), abs=1e-6)
        assert "8 families at alpha" in shown(browser)
        await press(browser, pilot, "right_curly_bracket")
        assert browser.selection.alpha == 1.0
        await press(browser, pilot, "backslash")
        assert browser.selection.alpha is None
        assert "7 families at alpha = 0." in shown(browser)
        slider = browser.screen.query_one("#alpha", Slider)
        slider.focus()
        await press(browser, pilot, "right")
        assert browser.selection.alpha == pytest.approx(round(screen(browser).alpha, 2))
        assert screen(browser).answer is found  # the database was not asked again


async def test_the_alpha_of_another_screen_is_taken_over(shared_store: Path) -> None:
    async with opened(shared_store, "2", "1") as (browser, pilot):
        browser.selection = browser.selection.at(-1.0)
        await press(browser, pilot, "2")
        assert "1 family at alpha = -1.00" in shown(browser)
        assert browser.screen.query_one("#alpha", Slider).value == -1.0


async def test_plain_and_corrected(shared_store: Path) -> None:
    async with opened(shared_store, "2", "c") as (browser, pilot):
        expected = rho(0, 1) / math.sqrt(reliability(0) * reliability(1))
        assert heat(browser).values[0, 1] == pytest.approx(expected, abs=1e-6)
        assert "c corrected" in shown(browser)
        await press(browser, pilot, "c")
        assert heat(browser).values[0, 1] == pytest.approx(rho(0, 1), abs=1e-6)


async def test_coefficients_sides_and_levels(shared_store: Path) -> None:
    async with opened(shared_store, "2", "right", "k") as (browser, pilot):
        assert heat(browser).values[0, 1] == pytest.approx(np.corrcoef(CELLS[0][0], CELLS[1][0])[0, 1], abs=1e-6)
        assert "pearson" in shown(browser)
        await press(browser, pilot, "K", "m")
        expected = stats.spearmanr(abs(CELLS[0][0]), abs(CELLS[1][0])).statistic
        assert heat(browser).values[0, 1] == pytest.approx(expected, abs=1e-6)
        await press(browser, pilot, "m", "v")
        assert "over 9 nodes" in shown(browser)  # the input, 2 x 3 heads, 2 MLPs
        await press(browser, pilot, "v", "c", "k", "k")  # kendall has no correction for noise: plain again
        expected = stats.kendalltau(CELLS[0][0], CELLS[1][0]).statistic
        assert heat(browser).values[0, 1] == pytest.approx(expected, abs=1e-6)
        assert "c plain" in shown(browser)
        await press(browser, pilot, "c")
        assert [note.message for note in browser._notifications] == [
            "There is no correction for noise for Kendall's tau-b."
        ]


async def test_the_order_keeps_the_pair_under_the_cursor(shared_store: Path) -> None:
    async with opened(shared_store, "2", "right", "right", "right", "right") as (browser, pilot):
        assert heat(browser).cursor == (0, 4)
        await press(browser, pilot, "o")
        assert "by dendrogram" in shown(browser)
        await press(browser, pilot, "o")
        assert [label[:3] for label in row_labels(browser)[:4]] == ["1+1", "2+2", "3+3", "1+2"]
        assert heat(browser).cursor == (0, 1)
        assert f"spearman {rho(0, 4):.2f}" in shown(browser)
        await press(browser, pilot, "o")
        assert heat(browser).cursor == (0, 4)


async def test_enter_compares_and_looks(shared_store: Path) -> None:
    async with opened(shared_store, "2", "right", "enter") as (browser, _):
        assert browser.selection.pair == (1, 2)
    async with opened(shared_store, "2", "down", "right", "enter") as (browser, _):
        assert browser.selection.circuit == 2


async def test_classes_in_which_every_pair_is_alike(tmp_path: Path) -> None:
    path = tmp_path / "chain.duckdb"
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, SHAPE.n_edges))
    for name, scores in (("1+1", x), ("1+2", x + y), ("1+3", y)):  # the ends of the chain are nothing to each other
        Store(path).write(circuit(name), scores.astype(np.float32))
    async with opened(path, "2") as (browser, pilot):
        browser.selection = browser.selection.at(0.5)
        await settled(browser, pilot)
        assert "1 family at alpha = 0.50" in shown(browser)
        assert "ceiling not known" in shown(browser)
        await press(browser, pilot, "l")
        assert "2 classes at alpha = 0.50" in shown(browser)
        assert "every pair" in shown(browser)


async def test_the_mouse(shared_store: Path) -> None:
    async with opened(shared_store, "2") as (browser, pilot):
        place = lines(browser)[2].index("o by parameters")
        await pilot.click(Choices, offset=(place, 0))
        await settled(browser, pilot)
        assert screen(browser).order == "dendrogram"
        await pilot.click("#alpha", offset=(77, 0))
        await settled(browser, pilot)
        assert browser.selection.alpha == 1.0
        head = heat(browser)
        await pilot.click(Heatmap, offset=(1 + 6 + 2 * 3, 2))  # padding, label, three cells; below the letters
        assert head.cursor == (1, 3)


async def test_none_one_and_two(shared_store: Path) -> None:
    async with opened(shared_store, "2") as (browser, pilot):
        for ids, text in (((), "Nothing is chosen"), ((4,), "One circuit is chosen"), ((4, 1), "of 9 chosen")):
            browser.selection = browser.selection.only(ids)
            await settled(browser, pilot)
            assert text in shown(browser)
        assert heat(browser).values.shape == (2, 2)
        assert row_labels(browser) == ["1+1 A", "2+1 A"]


async def test_circuits_of_different_shapes_are_told(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "c.duckdb", digits=2)
    shape = GraphShape(n_layers=3, n_heads=2)
    Store(path).write(circuit("1+1", of=model("other", shape)), np.ones(shape.n_edges, np.float32))
    async with opened(path, "a", "2") as (browser, pilot):
        assert "These circuits are of different graph shapes" in shown(browser)
        await press(browser, pilot, "c", "o", "l", "left_curly_bracket", "left_square_bracket", "backslash", "y")
        browser.selection = browser.selection.only([1, 2])
        await settled(browser, pilot)
        assert heat(browser).values.shape == (2, 2)


async def test_missing_and_constant_scores_and_odd_names(tmp_path: Path) -> None:
    path = tmp_path / "odd.duckdb"
    scores = np.linspace(-1, 1, SHAPE.n_edges, dtype=np.float32)
    missing = scores.copy()
    missing[3] = np.nan
    names = ("[bold]漢字[/]", "tab\there", "flat")
    for name, values in zip(names, (scores, missing, np.zeros_like(scores)), strict=True):
        Store(path).write(circuit(name), values)
    async with opened(path, "2", "right") as (browser, pilot):
        text = shown(browser)
        # A circuit of equal scores has no similarity, the other two are the same but for one edge.
        assert "[bold]漢字[/]" in text
        assert "tab here" in text
        assert heat(browser).values.shape == (3, 3)
        flat = [row for row, label in enumerate(screen(browser).answer.found.labels) if label == "flat"][0]  # type: ignore[union-attr]  # noqa: RUF015
        other = (flat + 1) % 3
        heat(browser).cursor = (flat, other)
        await settled(browser, pilot)
        assert "spearman not known" in shown(browser)
        assert "The scores of flat are all equal." in told(browser)
        heat(browser).cursor = tuple(row for row in range(3) if row != flat)  # type: ignore[assignment]
        await settled(browser, pilot)
        assert "over 74 edges" in shown(browser)
        assert "spearman 1.00" in shown(browser)


async def test_copied_text(shared_store: Path) -> None:
    async with opened(shared_store, "2", "o", "o", "y") as (browser, _):
        head, first, *rest = [line.split("\t") for line in browser.clipboard.splitlines()]
        assert head[:5] == ["family", "circuit", "reliability", "1+1", "2+2"]
        assert first[:2] == ["A", "1+1"]
        np.testing.assert_allclose(
            [float(value) for value in first[2:5]], [reliability(0), 1, rho(0, 4)], rtol=0, atol=1e-5
        )
        assert len(rest) == 8


async def test_in_little_room_the_curve_goes(shared_store: Path) -> None:
    async with opened(shared_store, "2", size=(60, 15)) as (browser, pilot):
        assert not browser.screen.query_one("#beneath").display
        assert row_labels(browser)[0] == "1+1 A"
        await pilot.resize_terminal(120, 50)
        await settled(browser, pilot)
        assert browser.screen.query_one("#beneath").display
        region = heat(browser).region
        assert [line[region.x : region.right].strip()[:1] for line in lines(browser)[region.y :][:5]] == [
            "1", "+", "1", "", "A",
        ]  # fmt: skip  # now there is room for the names of the columns, the letters below them


async def test_without_colour(shared_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(shared_store, "2") as (browser, pilot):
        browser.selection = browser.selection.at(0.6)
        await settled(browser, pilot)
        strips = browser.screen._compositor.render_strips()
        inks = {s.style.color for strip in strips for s in strip if s.style is not None and s.style.color is not None}
        triplets = [cast("tuple[int, int, int]", tuple(ink.get_truecolor())) for ink in inks]
        assert all(red == green == blue for red, green, blue in triplets)
        assert "A 3: 1+1, 2+2, 3+3" in shown(browser)
