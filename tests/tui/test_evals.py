"""Evals: a metric against similarity as `circuitdb correlate` has it, and the names that did not match."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from textual.widgets import Static

from browsers import LARGE, SMALL, lines, opened, press, settled, shown
from circuitdb.queries import Database
from circuitdb.store import Store
from circuitdb.tui.app import Browser
from circuitdb.tui.dialogs import Choice
from circuitdb.tui.evals import Told
from circuitdb.tui.screens.evals import Evals
from circuitdb.tui.widgets.pages import Pages
from stores import SHAPE, circuit, model

pytestmark = pytest.mark.anyio
ACC = {"1+1": 0.71, "1+2": 0.5, "1+3": 0.55, "2+1": 0.45, "2+2": 0.65, "2+3": 0.3, "3+1": 0.35, "3+3": 0.6}


@pytest.fixture
def path(shared_store: Path, tmp_path: Path) -> Path:
    """The nine circuits with a board that has no 3+2, and names that are nothing of ours."""
    path = Path(shutil.copy(shared_store, tmp_path / "c.duckdb"))
    rows = [f"tiny,{name},{value}" for name, value in ACC.items()]
    board = tmp_path / "board.csv"
    board.write_text("\n".join(["model,subtask,acc", *rows, "some/[one],1+1,0.2", "tiny,four plus four,0.3"]))
    Database(path).add_evaluations([str(board)], "board")
    return path


def told(browser: Browser) -> Told:
    assert isinstance(browser.screen, Evals)
    assert browser.screen.answer is not None
    return browser.screen.answer


def said(browser: Browser) -> str:
    """The sentences beside the plot, however they are wrapped."""
    assert told(browser)
    return str(browser.screen.query_one("#sentences", Static).content)


def copied(browser: Browser) -> str:
    assert isinstance(browser.screen, Evals)
    return browser.screen.text()


def expected(path: Path, values: dict[str, float]) -> float:
    """SciPy's rho of the mean similarities, from the matrix, with values."""
    found = Database(path).similarity()
    matrix = np.where(np.eye(9, dtype=bool), np.nan, found.matrix)
    means = dict(zip([row["subtask"] for row in Database(path).circuits().rows()], np.nanmean(matrix, 1), strict=True))
    return float(stats.spearmanr([means[name] for name in values], list(values.values())).statistic)


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_the_correlation_and_what_did_not_match(path: Path, size: tuple[int, int]) -> None:
    async with opened(path, "7", size=size) as (browser, _):
        found = told(browser).found
        assert found is not None
        (row,) = found.rows()
        assert row["rho"] == pytest.approx(expected(path, ACC), abs=1e-12)
        text = " ".join(shown(browser).split())
        assert "board.acc against mean similarity to the others, over subtasks" in text
        assert (row["n"], row["n_lacking"]) == (8, 1)
        if size == LARGE:
            assert f"rho = {row['rho']:.2f} [{row['low']:.2f}, {row['high']:.2f}], p = {row['p_value']:.3g}" in text
            assert "8 points, 1 without a value" in text
            assert f"mean ceiling of the similarities {row['mean_ceiling']:.2f}" in text
            assert "2 names in added files matched nothing of ours:" in text
            assert "board, models: some/[one]" in text
            assert "board, subtasks: four plus four" in text
        sentences = "\n".join(copied(browser).splitlines())
        assert f"rho = {row['rho']:.2f} [" in sentences
        assert "some/[one]" in sentences


async def test_the_points_are_listed_with_their_ceilings(path: Path) -> None:
    async with opened(path, "7", size=LARGE) as (browser, pilot):
        found = told(browser).found
        assert found is not None
        pages = browser.screen.query_one(Pages)
        assert pages.n_rows == 9
        row = pages.row(0)
        assert row is not None
        assert (row["label"], row["value"]) == ("1+1", 0.71)
        assert row["ceiling"] == pytest.approx(found.points[0].ceiling[0])
        lacking = next(r for i in range(9) if (r := pages.row(i)) is not None and r["label"] == "3+2")
        assert lacking["value"] is None
        rows = copied(browser).splitlines()
        assert rows[-1].split("\t")[1] == "3+3"
        await press(browser, pilot, "tab")


async def test_another_metric_is_chosen(path: Path) -> None:
    async with opened(path, "7", "m") as (browser, pilot):
        assert isinstance(browser.screen, Choice)
        await pilot.press(*"circ")
        await press(browser, pilot, "enter")
        assert told(browser).asked.metric == "circuitdb.accuracy"
        found = told(browser).found
        assert found is not None
        ours = {f"{a}+{b}": 1 / (a + b) for a in (1, 2, 3) for b in (1, 2, 3)}
        assert found.rows()[0]["rho"] == pytest.approx(expected(path, ours), abs=1e-12)
        assert "circuitdb.accuracy against" in lines(browser)[2]


async def test_corrected_and_over_models(path: Path) -> None:
    async with opened(path, "7", "c") as (browser, pilot):
        found = told(browser).found
        assert found is not None
        assert found.corrected
        assert "corrected mean similarity" in lines(browser)[2]
        want = Database(path).correlate("board.acc", corrected=True, circuits=range(1, 10)).rows()
        assert found.rows() == want
        await press(browser, pilot, "c", "v")
        found = told(browser).found
        assert found is not None
        assert (found.over, found.corrected, found.rows()[0]["rho"]) == ("models", False, None)
        assert "no rank correlation, 1 point" in said(browser)
        assert "no rank correlation" in shown(browser)
        assert "over models" in lines(browser)[2]


async def test_a_refusal_is_told_and_another_metric_can_be_had(path: Path) -> None:
    Store(path).write(circuit("1+1", salt="again"), np.ones(SHAPE.n_edges, np.float32))
    async with opened(path, "a", "7", size=LARGE) as (browser, pilot):
        assert told(browser).found is None
        assert "has several circuits of 1+1, but a subtask is one point" in said(browser)
        assert "has several circuits" in shown(browser)
        assert copied(browser) == ""
        browser.selection = browser.selection.dropping([10])
        await settled(browser, pilot)
        assert told(browser).found is not None


async def test_answers_that_were_read_in_two_ways(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "results_2026-01-02T03-04-05.json"
    results = {name: {"em,strict": value, "em,loose": 1 - value} for name, value in ACC.items()}
    file.write_text(json.dumps({"results": results, "config": {"model_args": "pretrained=tiny"}}))
    Database(path).remove_evaluations("board")
    Database(path).add_evaluations([str(file)], "two")
    async with opened(path, "7", size=LARGE) as (browser, pilot):
        assert told(browser).asked.reading == "loose"
        first = told(browser).found
        await press(browser, pilot, "f")
        second = told(browser).found
        assert told(browser).asked.reading == "strict"
        assert first is not None
        assert second is not None
        rhos = [float(str(one.rows()[0]["rho"])) for one in (first, second)]
        assert rhos[1] == pytest.approx(-rhos[0])
        assert "(read by strict)" in lines(browser)[2]


@pytest.mark.parametrize("n", [0, 1, 2])
async def test_few_circuits(path: Path, n: int) -> None:
    async with opened(path, "7") as (browser, pilot):
        browser.selection = browser.selection.only(range(1, 1 + n))
        await settled(browser, pilot)
        if n == 0:
            assert "Nothing is chosen" in shown(browser)
        else:
            found = told(browser).found
            assert found is not None
            assert found.rows()[0]["low"] is None
            assert math.isnan(found.points[0].similarity[0]) == (n == 1)


async def test_two_groups_have_letters(path: Path) -> None:
    other = model("[b]other")
    for i, name in enumerate(("1+1", "1+2", "2+1", "2+2")):
        scores = np.random.default_rng(i).standard_normal(SHAPE.n_edges).astype(np.float32)
        scores[i] = np.nan
        Store(path).write(circuit(name, of=other), scores)
    async with opened(path, "a", "7", size=LARGE) as (browser, _):
        found = told(browser).found
        assert found is not None
        assert [points.of for points in found.points] == ["[b]other, addition", "tiny, addition"]
        text = shown(browser)
        assert "A [b]other, addition" in text
        assert "B tiny, addition" in text


async def test_nothing_was_added(shared_store: Path) -> None:
    async with opened(shared_store, "7", size=LARGE) as (browser, _):
        assert told(browser).asked.metric == "circuitdb.accuracy"
        assert "No evaluations were added yet: circuitdb evals add FILE --name NAME" in said(browser)
