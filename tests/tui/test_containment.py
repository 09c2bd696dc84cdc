from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from textual.widgets import Static, Tree

from browsers import LARGE, SMALL, lines, opened, press, settled, shown
from circuitdb.graph import GraphShape
from circuitdb.store import Store
from circuitdb.tui.app import Browser
from circuitdb.tui.screens.containment import Containment
from circuitdb.tui.widgets.choices import Choices
from circuitdb.tui.widgets.shares import Shares
from stores import SHAPE, addition_store, circuit, model

pytestmark = pytest.mark.anyio
# Edges of strength 1 of circuits a, b, c, d: a is in b but for one, b in c, d is by itself.
EDGES = {"a": range(4), "b": range(1, 11), "c": range(1, 21), "d": range(40, 50)}


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Circuits 1 to 4, which have a score of 1 at `EDGES`, and one that has none."""
    path = tmp_path_factory.mktemp("nested") / "c.duckdb"
    for name, edges in (*EDGES.items(), ("[e]\tnone", range(0))):
        scores = np.zeros(SHAPE.n_edges, np.float32)
        scores[list(edges)] = 1
        Store(path).write(circuit(name), scores)
    return path


def screen(browser: Browser) -> Containment:
    assert isinstance(browser.screen, Containment)
    return browser.screen


def told(browser: Browser, name: str = "#pair") -> str:
    return " ".join(str(browser.screen.query_one(name, Static).content).split())


def tree_lines(browser: Browser) -> list[str]:
    region = browser.screen.query_one("#order", Tree).region
    found = [line[region.x : region.right] for line in lines(browser)[region.y : region.bottom]]
    return [line.strip(" │├└─▼▶") for line in found if line.strip()]


@pytest.mark.parametrize("size", [SMALL, (120, 40), LARGE])
async def test_shares_order_and_chance(nested: Path, size: tuple[int, int]) -> None:
    async with opened(nested, "5", "w", "w", size=size) as (browser, pilot):
        order = browser.catalogue.ids
        assert [browser.catalogue.by_id[i].path[2] for i in order] == ["[e]\tnone", "a", "b", "c", "d"]
        shares = browser.screen.query_one(Shares)
        # Random circuits of the sizes of the others hold (10 + 20 + 10 + 0) / 4 of 75 edges of a.
        np.testing.assert_allclose(shares.values[1], [10 / 75, 0, 1, 0.75, 0.75, 0])
        assert np.isnan(shares.values[0]).all()
        assert shares.texts(1, 0, 6) == ["  13", "   0", " 100", "  75", "  75", "   0"]
        assert shares.texts(2, 0, 6) == ["  11", "   0", "  30", " 100", "⊂100", "   0"]
        assert shares.texts(0, 0, 2) == ["   ·", "   ·"]
        assert tree_lines(browser)[:3] == ["c (20)", "100%, chance 27%: b (10)", "[e] none (0)"]
        assert "Order: 5 circuits in 5 classes, 1 cover." in told(browser, "#said")
        await press(browser, pilot, "down", "right", "right", "right")
        p = stats.hypergeom.sf(2, 75, 10, 4)
        assert p > 0.001
        assert told(browser) == (
            f"a in b 75% of 4 edges, chance 13% 30% of the other's 10 back 3 edges shared, p = {p:.2g} "
            f"Jaccard 0.27, chance {_jaccard():.2g} At this tolerance: neither is in the other"
        )


def _jaccard() -> float:
    """Mean of x / (4 + 10 - x) over what random circuits of 4 and 10 of 75 edges share."""
    x = np.arange(5)
    return float((stats.hypergeom.pmf(x, 75, 10, 4) * x / (14 - x)).sum())


async def test_a_tolerance_of_a_quarter_takes_a_into_b(nested: Path) -> None:
    async with opened(nested, "5", "w", "w", *["greater_than_sign"] * 5, size=LARGE) as (browser, pilot):
        assert screen(browser).tolerance == 0.25
        assert tree_lines(browser) == [
            "c (20)", "100%, chance 27%: b (10)", "75%, chance 13%: a (4)", "[e] none (0)", "d (10)",
        ]  # fmt: skip
        await press(browser, pilot, "down", "right", "right", "right")
        assert told(browser).endswith("At this tolerance: contained")
        await press(browser, pilot, "less_than_sign")
        assert screen(browser).tolerance == 0.2
        assert told(browser).endswith("At this tolerance: neither is in the other")


async def test_sizes_are_all_there_once_one_is_shown(nested: Path) -> None:
    async with opened(nested, "5") as (browser, pilot):
        found = screen(browser).answer
        assert found is not None
        assert set(found.found) == set(screen(browser).sizes.sizes)
        assert "strongest edges 15" in shown(browser)
        await press(browser, pilot, "minus", "minus")
        assert "strongest edges  7" in shown(browser)
        assert screen(browser).shown is found.found[7.0]
        assert screen(browser).shown.n.tolist() == [0, 4, 7, 7, 7]  # type: ignore[union-attr]
        await press(browser, pilot, *["plus"] * 12)
        assert screen(browser).sizes.size_shown == 75
        assert screen(browser).shown.n.tolist() == [0, 4, 10, 20, 10]  # type: ignore[union-attr]
        assert screen(browser).answer is found


async def test_a_size_that_is_not_there_yet_is_asked_for(nested: Path) -> None:
    async with opened(nested, "5") as (browser, pilot):
        found = screen(browser).answer
        assert found is not None
        del found.found[10.0]
        await press(browser, pilot, "minus")
        assert found.found[10.0].n.tolist() == [0, 4, 10, 10, 10]
        assert screen(browser).shown is found.found[10.0]
        assert "reading ..." not in shown(browser)


async def test_signs_and_paths(tmp_path: Path) -> None:
    path = tmp_path / "c.duckdb"
    scores = np.linspace(-1, 1, SHAPE.n_edges, dtype=np.float32)
    scores[5] = np.nan
    Store(path).write(circuit("a"), scores)
    Store(path).write(circuit("b"), -scores)
    async with opened(path, "5", "down", "right") as (browser, pilot):
        # By magnitude the same edges; with an even number of them no tie is split.
        assert "15 strongest of 75" in screen(browser).shown.title  # type: ignore[union-attr]
        await press(browser, pilot, "minus", "minus", "m")
        assert "7 most positive of 75" in screen(browser).shown.title  # type: ignore[union-attr]
        assert screen(browser).shown.shared[0, 1] == 0  # type: ignore[union-attr]
        await press(browser, pilot, "p")
        assert "then pruned" in screen(browser).shown.title  # type: ignore[union-attr]
        assert "p pruned" in shown(browser)


async def test_enter_compares_and_looks(nested: Path) -> None:
    for keys, pair, circuit_id in (
        (["down", "right", "right", "right"], (1, 2), None),
        (["down", "down"], None, 2),  # the column of chance
        (["down", "down", "right", "right", "right"], None, 2),  # the diagonal
    ):
        async with opened(nested, "5", *keys, "enter") as (browser, _):
            assert (browser.selection.pair, browser.selection.circuit) == (pair, circuit_id)


async def test_a_line_of_the_tree_leads_to_its_cell(nested: Path) -> None:
    async with opened(nested, "5", "w", "w", size=LARGE) as (browser, pilot):
        tree = browser.screen.query_one("#order", Tree)
        tree.focus()
        await press(browser, pilot, "down", "down", "enter")
        assert browser.screen.query_one(Shares).cursor == (2, 4)  # b in c, behind the column of chance
        assert told(browser).startswith("b in c 100% of 10 edges")


async def test_none_one_and_different_shapes(tmp_path: Path) -> None:
    path = addition_store(tmp_path / "c.duckdb", digits=1)
    shape = GraphShape(n_layers=3, n_heads=2)
    Store(path).write(circuit("1+1", of=model("other", shape)), np.ones(shape.n_edges, np.float32))
    async with opened(path, "n", "5", "w", "y") as (browser, pilot):
        assert "Nothing is chosen" in shown(browser)
        browser.selection = browser.selection.only([1])
        await settled(browser, pilot)
        assert browser.screen.query_one(Shares).values.shape == (1, 2)
        assert "Order: 1 circuit in 1 class, 0 covers." in told(browser, "#said")
        browser.selection = browser.selection.only([1, 2])
        await press(browser, pilot, "plus", "greater_than_sign", "m", "p", "y")
        assert "These circuits are of different graph shapes" in shown(browser)
        browser.selection = browser.selection.only([2])
        await settled(browser, pilot)
        assert "Order: 1 circuit in 1 class" in told(browser, "#said")


async def test_little_room_has_short_labels(tmp_path: Path) -> None:
    path = tmp_path / "c.duckdb"
    for name in ("a subtask of a long name 1", "a subtask of a long name 2"):
        Store(path).write(circuit(name), np.ones(SHAPE.n_edges, np.float32))
    async with opened(path, "5") as (browser, pilot):
        assert "…long name 1" in shown(browser)
        await pilot.resize_terminal(140, 50)
        await settled(browser, pilot)
        assert "…ubtask of a long name 1" in shown(browser)


async def test_copied_text(nested: Path) -> None:
    async with opened(nested, "5", "w", "w", "y") as (browser, _):
        rows = [line.split("\t") for line in browser.clipboard.splitlines()]
        assert rows[0] == ["circuit", "n", "chance", "[e] none", "a", "b", "c", "d"]
        assert rows[1] == ["[e] none", "0", "", "", "", "", "", ""]
        assert rows[2] == ["a", "4", "0.133333", "0", "1", "0.75", "0.75", "0"]
        assert rows[7] == ["circuit", "contained_in", "share", "expected_share"]
        assert rows[8] == ["b", "c", "1", "0.266667"]
        assert rows[9] == ["[e] none", "", "", ""]


async def test_the_mouse(nested: Path) -> None:
    async with opened(nested, "5") as (browser, pilot):
        await pilot.click(Choices, offset=(lines(browser)[2].index("m magnitude"), 0))
        await settled(browser, pilot)
        assert screen(browser).how.signed
        await pilot.click("#tolerance", offset=(77, 0))
        await settled(browser, pilot)
        assert screen(browser).tolerance == pytest.approx(0.95)
        await pilot.click("#size", offset=(77, 0))
        await settled(browser, pilot)
        assert screen(browser).sizes.size_shown == 75
