from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from browsers import LARGE, SMALL, opened, press, settled, shown
from circuitdb.graph import GraphShape
from circuitdb.queries import Database
from circuitdb.store import Store
from circuitdb.tui.app import Browser
from circuitdb.tui.panels.differences import DifferencePanel, NodeDifferencePanel
from circuitdb.tui.screens.compare import Compare
from circuitdb.tui.widgets.ladder import Ladder
from stores import SHAPE, circuit, model

pytestmark = pytest.mark.anyio


def screen(browser: Browser) -> Compare:
    assert isinstance(browser.screen, Compare)
    return browser.screen


def listed(browser: Browser) -> list[dict[str, object]]:
    table = screen(browser).query_one(DifferencePanel).found
    assert table is not None
    return list(table.to_pylist())


@pytest.mark.parametrize("size", [SMALL, (120, 40), LARGE])
async def test_the_overview_has_each_number_with_what_it_is_worth(shared_store: Path, size: tuple[int, int]) -> None:
    db = Database(shared_store)
    async with opened(shared_store, "4", "minus", size=size) as (browser, pilot):
        assert "A #1 1+1  B #2 1+2" in shown(browser)
        assert screen(browser).query_one(Ladder).size_at == 60
        text = shown(browser)
        for on in ("signed", "magnitude"):
            found = db.similarity(circuits=[1, 2], on=on)
            numbers = [found.matrix[0, 1], found.ceiling[0, 1], found.corrected[0, 1], *found.reliabilities]
            (line,) = [line for line in text.splitlines() if line.strip().startswith(on)]
            assert line.split()[:6] == [on, *("-" if np.isnan(n) else f"{n:.3f}" for n in numbers)]
        row = {r["a_id"]: r for r in db.containment(circuits=[1, 2], top=60).rows()}[1]
        assert f"A in B {row['share_of_a']:.1%}, B in A {row['share_of_a']:.1%} of 60 edges" in text
        assert f"{row['shared']} in both, by chance {60 * 60 / 75:.4g} (p = {row['p_value']:.3g})" in text
        assert f"Jaccard {row['jaccard']:.3f}, by chance {row['expected_jaccard']:.3f}" in text
        assert "by chance" in text
        await press(browser, pilot, *["minus"] * 20)
        assert "of 1 edge" in shown(browser)
        assert "of 1 edges" not in shown(browser)
        assert screen(browser).query_one(Ladder).size_at == 1


async def test_signed_hard_circuits_may_be_of_two_sizes(shared_store: Path) -> None:
    db = Database(shared_store)
    async with opened(shared_store, "4", "a", size=LARGE) as (browser, _):
        row = {r["a_id"]: r for r in db.containment(circuits=[1, 2], top=75, signed=True).rows()}
        assert row[1]["n_a"] != row[2]["n_a"]
        assert (
            f"A in B {row[1]['share_of_a']:.1%}, B in A {row[2]['share_of_a']:.1%} of "
            f"{row[1]['n_a']} and {row[2]['n_a']} edges" in shown(browser)
        )
        assert "B in A" in shown(browser)


async def test_edges_only_in_one_and_in_both(shared_store: Path) -> None:
    db = Database(shared_store)
    async with opened(shared_store, "4", "d", *["minus"] * 6) as (browser, pilot):
        size = screen(browser).query_one(Ladder).size_at
        assert size == 10
        a, b = ({row["edge"] for row in db.hard_circuit(i, top=size).rows()} for i in (1, 2))
        assert {row["edge"] for row in listed(browser)} == a | b
        text = shown(browser)
        assert f"{len(a - b)} only A, {len(a & b)} both, {len(b - a)} only B" in text
        for expected in (a - b, a & b, b - a, a | b):
            await press(browser, pilot, "i")
            assert {row["edge"] for row in listed(browser)} == expected
        await press(browser, pilot, "i", "y")
        assert browser.clipboard.startswith("edge\twhere\tscore_a\tplace_a\tscore_b\tplace_b\tedge_id\n")
        assert len(browser.clipboard.splitlines()) == 1 + len(a - b)


async def test_nodes_that_differ_most_come_first(shared_store: Path) -> None:
    expected = Database(shared_store).pair(1, 2).nodes().rows()
    async with opened(shared_store, "4", "n", size=LARGE) as (browser, pilot):
        table = screen(browser).query_one(NodeDifferencePanel).found
        assert table is not None
        assert table.to_pylist() == expected
        line = next(line for line in shown(browser).splitlines() if line.strip().startswith(str(expected[0]["node"])))
        assert f"{expected[0]['difference']:+.2%}" in line
        assert not screen(browser).query_one(Ladder).display
        await press(browser, pilot, "w")
        swapped = screen(browser).query_one(NodeDifferencePanel).found
        assert swapped is not None
        assert swapped["difference"][0].as_py() == pytest.approx(-expected[0]["difference"])  # type: ignore[operator]


async def test_other_circuits_take_the_place_of_a_and_of_b(shared_store: Path) -> None:
    async with opened(shared_store, "4") as (browser, pilot):
        await press(browser, pilot, "full_stop")
        assert screen(browser).pair == (3, 2)  # past 2, which is B
        await press(browser, pilot, "comma", "comma")
        assert screen(browser).pair == (9, 2)
        await press(browser, pilot, "greater_than_sign", "greater_than_sign")
        assert screen(browser).pair == (9, 4)
        await press(browser, pilot, "w")
        assert screen(browser).pair == (4, 9)
        assert "A #4 2+1  B #9 3+3" in shown(browser)
        await press(browser, pilot, "less_than_sign")
        assert screen(browser).pair == (4, 8)


async def test_one_circuit_is_no_pair(shared_store: Path) -> None:
    async with opened(shared_store) as (browser, pilot):
        browser.selection = browser.selection.only([3])
        await press(browser, pilot, "4")
        assert "Choose two circuits: press 1" in shown(browser)
        await press(browser, pilot, "full_stop", "w", "d", "n", "o", "y")
        browser.compare(3, 3)
        await settled(browser, pilot)
        assert "A circuit is compared with another one, not with itself" in " ".join(shown(browser).split())


async def test_two_graph_shapes_are_told_and_another_can_be_taken(tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    other = GraphShape(1, 1)
    nan = np.full(SHAPE.n_edges, np.nan, np.float32)
    store.write(circuit(of=model("m [x]")), np.ones(SHAPE.n_edges, np.float32))
    store.write(circuit(of=model("other", other)), np.ones(other.n_edges, np.float32))
    store.write(circuit("1+2", of=model("m [x]")), nan)
    async with opened(Path(store.path)) as (browser, pilot):
        browser.selection = browser.selection.only([1, 2, 3])
        await press(browser, pilot, "4")
        browser.compare(1, 2)
        await settled(browser, pilot)
        assert "This can't be shown" in shown(browser)
        assert "Another A: , and ." in shown(browser)
        await press(browser, pilot, "greater_than_sign")
        assert screen(browser).pair == (1, 3)
        text = shown(browser)
        assert "B #3 1+2" in text
        (line,) = [line for line in text.splitlines() if line.strip().startswith("signed")]
        assert line.split()[:4] == ["signed", "-", "-", "-"]  # constant scores, and none at all
        assert "A in B 0.0%, B in A -" in text
        await press(browser, pilot, "n", "d", "o")
        assert browser.is_running


async def test_what_is_copied_of_the_overview(shared_store: Path) -> None:
    async with opened(shared_store, "4", "y") as (browser, _):
        lines = browser.clipboard.splitlines()
        assert lines[0] == "scores\trho\tceiling\tcorrected\treliability_a\treliability_b"
        assert float(lines[1].split("\t")[1]) == Database(shared_store).similarity(circuits=[1, 2]).matrix[0, 1]
        assert lines[4].startswith("n\tn_a\tn_b\tshared\ta_in_b\tb_in_a")
        assert lines[-1].split("\t")[:4] == ["75", "75", "75", "75"]
