from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from browsers import LARGE, SMALL, lines, opened, press, settled, shown
from circuitdb.graph import GraphShape
from circuitdb.queries import Database
from circuitdb.records import Faithfulness
from circuitdb.store import Store
from circuitdb.tui.app import Browser
from circuitdb.tui.panels.edges import EdgePanel
from circuitdb.tui.panels.hard import HardPanel
from circuitdb.tui.screens.circuit import Circuit
from circuitdb.tui.widgets.heatmap import Heatmap
from circuitdb.tui.widgets.ladder import Ladder
from circuitdb.tui.widgets.layered import Layered
from circuitdb.tui.widgets.pages import Pages
from stores import SHAPE, circuit, model

pytestmark = pytest.mark.anyio


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A name with markup and a subtask of odd characters, a score of NULL in ten; beside it one layer of one head."""
    store = Store(tmp_path / "c.duckdb")
    scores = np.random.default_rng(0).standard_normal(SHAPE.n_edges).astype(np.float32)
    scores[::10] = np.nan
    store.write(circuit("[red]ü\t1", of=model("a [b]/c")), scores)
    shape = GraphShape(1, 1)
    store.write(circuit("zero", of=model("z", shape)), np.zeros(shape.n_edges, np.float32))
    return Path(store.path)


def screen(browser: Browser) -> Circuit:
    assert isinstance(browser.screen, Circuit)
    return browser.screen


def rows(browser: Browser) -> list[str]:
    """The names of the edges in the table."""
    found = screen(browser).query_one(EdgePanel).found
    assert found is not None
    return [str(name) for name in found.page()["edge"].to_pylist()]


async def type_into(browser: Browser, pilot: Pilot[None], text: str) -> None:
    await press(browser, pilot, *["space" if sign == " " else sign for sign in text])


@pytest.mark.parametrize("size", [SMALL, (120, 40), LARGE])
async def test_the_map_and_the_edges_of_the_node_under_the_cursor(shared_store: Path, size: tuple[int, int]) -> None:
    db = Database(shared_store)
    scores = {row["node"]: row["score"] for row in db.node_scores(1).rows()}
    into = db.sql(
        "SELECT edge, score FROM scores WHERE circuit_id = 1 AND target LIKE 'a1.h2<%' ORDER BY abs(score) DESC LIMIT 3"
    ).rows()
    async with opened(shared_store, "3", size=size) as (browser, pilot):
        assert "#1  tiny  addition  1+1  eap-ig" in shown(browser)
        await press(browser, pilot, "down", "down", "right", "right")
        text = shown(browser)
        assert f"a1.h2  score {scores['a1.h2']:+.4g}" in text
        assert "in: 39 edges" not in text
        for row in into:
            assert f"{row['edge']}" in text
            assert f"{row['score']:+.4g}" in text
        assert "in: 15 edges" in text  # 1 + 4 sources before layer 1, each to q, k, v
        assert "out: 2 edges" in text
        await press(browser, pilot, "end")
        assert f"m1  score {scores['m1']:+.4g}" in shown(browser)
        await press(browser, pilot, "down")
        assert "logits  no outgoing edge has a score" in shown(browser)
        assert "in: 9 edges" in shown(browser)
        assert "out: 0 edges" in shown(browser)
        await press(browser, pilot, "ctrl+home")
        assert f"input  score {scores['input']:+.4g}" in shown(browser)


async def test_the_map_is_by_standing_or_by_score(shared_store: Path) -> None:
    found = Database(shared_store).soft_circuit(1)
    async with opened(shared_store, "3") as (browser, pilot):
        heatmap = screen(browser).query_one(Heatmap)
        assert heatmap.values[1:3].ravel().tolist() == pytest.approx(found.node_standings[1:9].tolist())
        assert "stronger than 70% of the nodes" in shown(browser).replace("\n", " ")
        await press(browser, pilot, "m")
        assert heatmap.values[1:3].ravel().tolist() == pytest.approx(found.node_scores[1:9].tolist())
        assert heatmap.limit == pytest.approx(np.abs(found.node_scores[1:9]).max())
        assert heatmap.values[0].tolist() == pytest.approx([found.node_scores[0]] * 4)
        assert np.isnan(heatmap.values[3]).all()


async def test_filters_and_orders_of_the_table(shared_store: Path) -> None:
    found = Database(shared_store).soft_circuit(1)
    by_strength = [found.shape.edge_names[i] for i in np.argsort(-np.abs(found.scores), kind="stable")]
    async with opened(shared_store, "3", "d") as (browser, pilot):
        assert rows(browser) == by_strength
        assert "75 of 75 edges" in shown(browser)
        await press(browser, pilot, "s", "s")
        assert rows(browser) == [name for name in by_strength if name.startswith("a")]
        await press(browser, pilot, "k", "k")
        assert rows(browser) == [name for name in by_strength if name.startswith("a") and "<k>" in name]
        await press(browser, pilot, "x", "g", "g", "g", "i")
        positive = {found.shape.edge_names[i] for i in np.flatnonzero(found.scores > 0)}
        assert rows(browser) == [name for name in by_strength if name.endswith("->logits") and name in positive]
        await press(browser, pilot, "x", "o")
        assert rows(browser)[0] == found.shape.edge_names[int(np.argmax(found.scores))]
        await press(browser, pilot, "o")
        assert rows(browser)[0] == found.shape.edge_names[int(np.argmin(found.scores))]
        await press(browser, pilot, "o")
        assert rows(browser) == found.shape.edge_names


async def test_name_and_layers_are_typed(shared_store: Path) -> None:
    async with opened(shared_store, "3", "d", "slash") as (browser, pilot):
        await type_into(browser, pilot, "h1->m")
        assert sorted(rows(browser)) == ["a0.h1->m0", "a0.h1->m1", "a1.h1->m1"]
        await press(browser, pilot, "tab")
        await type_into(browser, pilot, "1-1")
        assert rows(browser) == ["a1.h1->m1"]
        screen(browser).query_one("#layers", Input).value = "x"
        await settled(browser, pilot)
        assert "Layers are a number or two, such as 3 or 3-5, not 'x'." in " ".join(shown(browser).split())
        await press(browser, pilot, "escape", "x")
        assert len(rows(browser)) == 75
        assert isinstance(browser.focused, Pages)
        await press(browser, pilot, "slash")
        await type_into(browser, pilot, "no such edge")
        assert rows(browser) == []
        assert "x takes the filters away" in " ".join(shown(browser).split())


async def test_enter_on_a_node_lists_its_edges_and_a_heading_sorts(shared_store: Path) -> None:
    async with opened(shared_store, "3", "down", "right", "enter") as (browser, pilot):
        assert screen(browser).part == "edges"
        # From the input to q, k, v; to m0, to q, k, v of three heads, to m1, to the logits.
        assert len(rows(browser)) == 3 + 1 + 9 + 1 + 1
        assert all("a0.h1" in name for name in rows(browser))
        table = screen(browser).query_one(Pages)
        await pilot.click(Pages, offset=(43, 0))
        await settled(browser, pilot)
        panel = screen(browser).query_one(EdgePanel)
        assert panel.filter.order == "highest"
        await pilot.click(Pages, offset=(43, 0))
        await settled(browser, pilot)
        assert panel.filter.order == "lowest"
        assert table.n_rows == len(rows(browser))


async def test_the_hard_circuit_as_a_graph(shared_store: Path) -> None:
    db = Database(shared_store)
    async with opened(shared_store, "3", "h", size=(120, 40)) as (browser, pilot):
        panel, ladder = screen(browser).query_one(HardPanel), screen(browser).query_one(Ladder)
        assert ladder.size_at == 75
        while ladder.size_at > 10:
            await press(browser, pilot, "minus")
        assert panel.kept is not None
        for keys, signed, prune in ((), False, True), (("r",), False, False), (("a",), True, False):
            await press(browser, pilot, *keys)
            expected = [str(row["edge"]) for row in db.hard_circuit(1, top=10, signed=signed, prune=prune).rows()]
            assert sorted(panel.kept.edges.page()["edge"].to_pylist()) == sorted(expected)
            region = screen(browser).query_one(Layered).region
            drawn = "\n".join(lines(browser)[region.y : region.bottom])
            for name in {end.partition("<")[0] for edge in expected for end in str(edge).split("->")}:
                assert re.search(rf"\b{name}\b", drawn)
        assert f"{len(expected)} edges of" in shown(browser)
        graph = screen(browser).query_one(Layered)
        await press(browser, pilot, "end")
        assert graph.cursor is not None
        here = panel.circuit.node_names[graph.cursor] if panel.circuit else ""
        assert here == "logits"
        for edge in expected:
            if str(edge).endswith("->logits"):
                assert f"{edge} " in shown(browser)
        await press(browser, pilot, "enter")
        assert screen(browser).part == "edges"
        assert all(name.endswith("->logits") for name in rows(browser))
        assert len(rows(browser)) == 9


async def test_a_circuit_of_nothing_says_so(odd: Path) -> None:
    async with opened(odd, "3", "full_stop", "h") as (browser, pilot):
        assert "#2  z  addition  zero" in shown(browser)
        assert "no edge has a score other than zero" in shown(browser)
        await press(browser, pilot, "a")
        assert "no edge has a positive score" in shown(browser)
        await press(browser, pilot, *["up", "down", "left", "right", "enter"])
        await press(browser, pilot, "d")
        assert len(rows(browser)) == 8


async def test_odd_names_and_missing_scores(odd: Path) -> None:
    async with opened(odd, "3", size=LARGE) as (browser, pilot):
        assert "a [b]/c  addition  [red]ü" in shown(browser)
        assert "8 without a score" in shown(browser)
        await press(browser, pilot, "d", "end")
        (line,) = [line for line in lines(browser) if line.split()[:1] == ["75"]]
        assert len(line.split()) == 4  # the last row is one without a score
        await press(browser, pilot, "full_stop")
        assert screen(browser).circuit == 2
        await press(browser, pilot, "comma")
        assert screen(browser).circuit == 1


async def test_the_record_and_the_curve(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    folds = np.random.default_rng(0).standard_normal((2, SHAPE.n_edges)) + np.linspace(-2, 2, SHAPE.n_edges)
    store.write(circuit(), folds.mean(0).astype(np.float32), folds.astype(np.float32))
    store.write(circuit("1+2"), np.ones(SHAPE.n_edges, np.float32))
    store.write_faithfulness(
        [
            Faithfulness(
                circuit_id=1, data_circuit_id=1, share=share, n_edges=int(share * 75), n_tied=0,
                selection="top-absolute", ablation="patching", metric="kl", value=None, clean=2.0, corrupted=10.0,
                faithfulness=f, reason=None if f is not None else "not finite", n_examples=8, accuracy=None,
            )
            for share, f in ((0.1, 0.25), (0.5, 0.875), (1.0, None))
        ]
    )  # fmt: skip
    (row,) = Database(store.path).reliability(circuits=1).rows()
    async with opened(Path(store.path), "3", "p", size=LARGE) as (browser, pilot):
        assert f"reliability, signed     {row['reliability']:.3f}" in shown(browser)
        assert "sign_convention" in shown(browser)
        assert "method                  eap-ig" in shown(browser)
        await press(browser, pilot, "f")
        assert "Faithfulness of the cut circuit" in shown(browser)
        for told in ("0.250", "0.875", "not finite", "top-absolute"):
            assert told in shown(browser)
        await press(browser, pilot, "full_stop")
        assert "were not run yet" in shown(browser)
        await press(browser, pilot, "p")
        assert "fewer than two folds" in shown(browser) or "fold" in shown(browser)


@pytest.mark.parametrize(
    ("part", "begins"),
    [("n", "node\tscore\ninput\t"), ("d", "#\tsource"), ("h", "edge\tscore\n"), ("p", "reliability, signed\t")],
)
async def test_what_is_copied(shared_store: Path, part: str, begins: str) -> None:
    async with opened(shared_store, "3", part) as (browser, pilot):
        await press(browser, pilot, "y")
        assert browser.clipboard.startswith(begins)
        if part == "n":
            score = Database(shared_store).node_scores(1).rows()[0]["score"]
            assert float(browser.clipboard.splitlines()[1].split("\t")[1]) == pytest.approx(score)


async def test_it_follows_what_is_looked_at(shared_store: Path) -> None:
    async with opened(shared_store) as (browser, pilot):
        browser.look_at(5)
        await settled(browser, pilot)
        assert "#5  tiny  addition  2+2" in shown(browser)
        assert "n [Nodes]" in shown(browser)
        await press(browser, pilot, "1", "n")
        browser.selection = browser.selection.only([])
        await press(browser, pilot, "3")
        assert "#5" in shown(browser)  # looked at, though nothing is chosen


async def test_nothing_to_look_at(shared_store: Path) -> None:
    async with opened(shared_store, "n", "3") as (browser, pilot):
        assert "Nothing is chosen" in shown(browser)
        await press(browser, pilot, "d", "h", "f", "p", "n", "full_stop", "y")
        assert browser.is_running


async def test_no_colour_is_needed(shared_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(shared_store, "3", "h", size=(120, 40)) as (browser, _):
        assert "dashed lines: negative scores" in shown(browser)
        assert "[Hard" in shown(browser)


async def test_a_click_opens_a_part(shared_store: Path) -> None:
    async with opened(shared_store, "3") as (browser, pilot):
        await pilot.click("#parts", offset=(14, 0))
        await settled(browser, pilot)
        assert screen(browser).part == "edges"
