"""The commands give what the library computes, for the circuits that the filters name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

import circuitdb
from circuitdb.queries.cuts import Cut
from circuitdb.queries.features import Ends
from circuitdb.store import Store
from stores import SHAPE, addition_scores

if TYPE_CHECKING:
    from terminals import Cli


def test_circuits_lists_provenance_and_accuracy(cli: Cli) -> None:
    rows = json.loads(cli("circuits", "--json").out)["rows"]
    assert [row["subtask"] for row in rows] == ["1+1", "1+2", "1+3", "2+1", "2+2", "2+3", "3+1", "3+2", "3+3"]
    assert [row["accuracy"] for row in rows[:3]] == [1 / 2, 1 / 3, 1 / 4]
    assert {(row["model"], row["method"], row["steps"], row["grid"], row["n_edges"]) for row in rows} == {
        ("tiny", "eap-ig", 5, "right", 75)
    }


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        pytest.param(["--subtask", "1+1"], [1], id="one name"),
        pytest.param(["--subtask", "1+1", "--subtask", "3+3"], [1, 9], id="several names"),
        pytest.param(["--circuit", "7", "--circuit", "2"], [2, 7], id="ids"),
        pytest.param(["--steps", "5", "--grid", "right", "--circuit", "4"], [4], id="steps"),
        pytest.param(["--shots", "3", "--seed", "0", "--examples", "8", "--circuit", "4"], [4], id="numbers"),
        pytest.param(
            ["--model", "tiny", "--task", "addition", "--method", "eap-ig", "--metric", "kl"], [*range(1, 10)], id="all"
        ),
    ],
)
def test_filters_choose_circuits(cli: Cli, filters: list[str], ids: list[int]) -> None:
    for command in ("circuits", "reliability", "evals"):
        assert [row["circuit_id"] for row in json.loads(cli(command, *filters, "--json").out)["rows"]] == ids


def test_similarity_is_spearmans_rho_with_the_reliability_beside_it(cli: Cli) -> None:
    cells = addition_scores()
    first, second = cells[1, 1], cells[2, 2]
    rho = stats.spearmanr(first[0], second[0]).statistic
    halves = [stats.spearmanr(*folds).statistic for _, folds in (first, second)]
    reliability = [2 * r / (1 + r) for r in halves]
    chosen = ["--circuit", "1", "--circuit", "5", "--json"]

    plain = json.loads(cli("similarity", *chosen).out)["rows"]
    assert [row["1+1"] for row in plain] == pytest.approx([1, rho], abs=1e-12)
    assert [row["reliability"] for row in plain] == pytest.approx(reliability, abs=1e-12)

    corrected = json.loads(cli("similarity", "--corrected", *chosen).out)["rows"]
    assert corrected[0]["2+2"] == pytest.approx(rho / np.sqrt(np.prod(reliability)), abs=1e-12)
    assert [row["reliability"] for row in corrected] == pytest.approx(reliability, abs=1e-12)

    (pair,) = json.loads(cli("similarity", "--long", *chosen).out)["rows"]
    assert (pair["a"], pair["b"], pair["n_edges"]) == ("1+1", "2+2", 75)
    assert pair["similarity"] == pytest.approx(rho, abs=1e-12)
    assert pair["ceiling"] == pytest.approx(np.sqrt(np.prod(reliability)), abs=1e-12)


def test_similarity_of_magnitudes(cli: Cli) -> None:
    cells = addition_scores()
    rho = stats.spearmanr(abs(cells[1, 1][0]), abs(cells[1, 2][0])).statistic
    rows = json.loads(cli("similarity", "--on", "magnitude", "--circuit", "1", "--circuit", "2", "--json").out)["rows"]
    assert rows[0]["1+2"] == pytest.approx(rho, abs=1e-12)


def test_stability_is_the_mean_over_distinct_pairs(cli: Cli) -> None:
    scores = np.array([whole for whole, _ in addition_scores().values()])
    rho = stats.spearmanr(scores, axis=1).statistic
    (row,) = json.loads(cli("stability", "--json").out)["rows"]
    assert row["stability"] == pytest.approx(rho[np.triu_indices(9, 1)].mean(), abs=1e-12)
    assert row["stability_with_diagonal"] == pytest.approx(rho.mean(), abs=1e-12)


def test_families_at_an_alpha_a_useful_one_and_every_one(cli: Cli) -> None:
    # Cells of equal digits share a signal, the others share nothing: one family of three and six alone.
    rows = json.loads(cli("families", "--alpha", "0.6", "--json").out)["rows"]
    assert [row["subtask"] for row in rows if row["family"] == "A"] == ["1+1", "2+2", "3+3"]
    assert len({row["family"] for row in rows}) == 7
    useful = json.loads(cli("families", "--json").out)
    assert useful["rows"] == rows
    assert "at alpha = 0.5784" in useful["title"]
    sweep = json.loads(cli("families", "--sweep", "--json").out)["rows"]
    assert [row["n_above"] for row in sweep] == [2, 3, 4, 5, 6, 7, 8, 9]
    assert all(row["n_families"] + 1 == row["n_above"] for row in sweep)


def test_the_comparison_is_what_the_options_ask(cli: Cli) -> None:
    ends = Ends.of(SHAPE)
    kept = (ends.source_kind == 1) & (ends.target_kind != 0) & (ends.source_layer == 1) & (ends.target_layer != 0)
    first, second = (addition_scores()[cell][0][kept] for cell in ((1, 1), (2, 2)))
    options = ["--source", "head", "--target", "mlp", "--target", "logits", "--layers", "1", "--kind", "kendall"]
    (row,) = json.loads(cli("similarity", "--long", "--circuit", "1", "--circuit", "5", *options, "--json").out)["rows"]
    assert row["similarity"] == pytest.approx(stats.kendalltau(first, second).statistic, abs=1e-12)
    assert row["n_edges"] == kept.sum() == 6


def test_against_is_another_set_of_the_same_filters(cli: Cli) -> None:
    whole = np.array([scores for scores, _ in addition_scores().values()])
    rho = stats.spearmanr(whole, axis=1).statistic
    found = json.loads(cli("similarity", "--circuit", "1", "--circuit", "5", "--against", "circuit=9", "--json").out)
    assert [row["3+3"] for row in found["rows"]] == pytest.approx(rho[[0, 4], 8], abs=1e-12)
    assert found["columns"] == ["label", "reliability", "3+3"]
    by_name = cli("similarity", "--subtask", "1+1", "--against", "subtask=2+2", "--against", "subtask=3+3", "--json")
    (row,) = json.loads(by_name.out)["rows"]
    assert [row["2+2"], row["3+3"]] == pytest.approx(rho[0, [4, 8]], abs=1e-12)


def test_containment_of_the_strongest_edges(cli: Cli) -> None:
    cells = addition_scores()
    top = [set(np.argsort(-abs(cells[key][0]), kind="stable")[:20].tolist()) for key in ((1, 1), (2, 2))]
    rows = json.loads(cli("containment", "--top", "20", "--circuit", "1", "--circuit", "5", "--json").out)["rows"]
    assert rows[0] == {"label": "1+1", "chance": 20 / 75, "1+1": 1.0, "2+2": len(top[0] & top[1]) / 20}


@pytest.mark.parametrize(
    ("options", "arguments"),
    [
        (["--share", "0.2"], {"share": 0.2}),
        (["--threshold", "0.5", "--signed"], {"threshold": 0.5, "signed": True}),
        (["--greedy", "20", "--prune"], {"greedy": 20, "prune": True}),
    ],
    ids=str,
)
def test_every_cut_has_its_option(
    cli: Cli, shared_store: Path, options: list[str], arguments: dict[str, float]
) -> None:
    db = circuitdb.open(shared_store)
    long = json.loads(cli("containment", *options, "--long", "--json").out)
    expected = db.containment(**arguments)  # type: ignore[arg-type]
    assert (long["title"], long["rows"]) == (expected.title, expected.rows())
    order = json.loads(cli("containment", *options, "--order", "--tolerance", "0.5", "--json").out)
    assert order["rows"] == db.containment_order(0.5, **arguments).rows()  # type: ignore[arg-type]
    edges = json.loads(cli("hard", "3", *options, "--json").out)
    assert edges["rows"] == db.hard_circuit(3, **arguments).rows()  # type: ignore[arg-type]


def test_inclusion_counts_every_cut(cli: Cli, shared_store: Path) -> None:
    options = ["--top", "5", "--greedy", "10", "--top", "9", "--share", "0.2", "--threshold", "1.5", "--prune"]
    done = json.loads(cli("inclusion", *options, "--least", "0.5", "--json").out)
    ways = [{"top": 5}, {"top": 9}, {"share": 0.2}, {"threshold": 1.5}, {"greedy": 10}]
    cuts = [Cut.of(**way, prune=True) for way in ways]  # type: ignore[arg-type]
    expected = circuitdb.open(shared_store).inclusion(cuts, least=0.5)
    assert (done["title"], done["rows"]) == (expected.title, expected.rows())
    plain = json.loads(cli("inclusion", "--json").out)
    assert plain["title"] == circuitdb.open(shared_store).inclusion().title


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["containment", "--long", "--order"],
            "--long lists the pairs and --order draws their order; give one of them.",
        ),
        (["containment", "--tolerance", "0.1"], "--tolerance belongs to --order; give that too, or leave it out."),
        (["hard", "1", "--top", "5", "--share", "0.1"], "A cut is made in one way; give top or share, not 2 of them."),
        (["containment", "--share", "2"], "A share of the graph's edges is over 0 and at most 1, not 2."),
        (["containment", "--threshold", "nan"], "threshold is a strength, such as 0.001, not nan."),
    ],
    ids=str,
)
def test_an_impossible_cut_is_refused(cli: Cli, arguments: list[str], message: str) -> None:
    done = cli(*arguments)
    assert (done.code, done.out, done.err) == (2, "", f"Error: {message}\n")


def test_show_has_the_strongest_edges(cli: Cli) -> None:
    scores, _ = addition_scores()[1, 2]
    edges = json.loads(cli("show", "2", "--edges", "5", "--json").out)["edges"]["rows"]
    assert [row["edge_id"] for row in edges] == np.argsort(-abs(scores), kind="stable")[:5].tolist()
    assert [row["score"] for row in edges] == [float(scores[row["edge_id"]]) for row in edges]


def test_the_database_is_named_by_option_before_variable_before_default(
    cli: Cli, odd_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(json.loads(cli("circuits", "--json").out)["rows"]) == 9
    assert len(json.loads(cli("circuits", "--json", "--db", str(odd_store)).out)["rows"]) == 1
    monkeypatch.delenv("CIRCUITDB")
    assert "There is no database circuits.duckdb" in cli("circuits").err
    Path("circuits.duckdb").write_bytes(odd_store.read_bytes())
    assert len(json.loads(cli("circuits", "--json").out)["rows"]) == 1


def test_schema_of_a_file_or_of_this_version(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = json.loads(cli("schema", "--json").out)
    assert ours["notes"] == []
    assert {(row["name"], row["kind"]) for row in ours["rows"]} >= {
        ("edge_score", "table"), ("circuits", "view"), ("top_edges(circuit, n)", "macro"),
    }  # fmt: skip
    assert all(row["comment"] for row in ours["rows"])
    monkeypatch.delenv("CIRCUITDB")
    packaged = json.loads(cli("schema", "--json").out)
    assert packaged["rows"] == ours["rows"]
    assert packaged["notes"] == [
        "There is no circuits.duckdb here; this is the schema that `circuitdb ingest` would make."
    ]
    score = json.loads(cli("schema", "edge_score", "--json").out)["rows"][2]
    assert (score["column"], score["type"], score["nullable"]) == ("score", "FLOAT", True)
    assert cli("schema", "top_edges(circuit, n)").table[0] == {"column": "place", "type": "BIGINT"}
    wrong = cli("schema", "scors")
    assert (wrong.code, wrong.err) == (2, "Error: There is no table, view or macro scors; did you mean scores?\n")


@pytest.mark.parametrize(
    "command",
    [
        "circuits",
        "reliability",
        "similarity",
        "similarity --long",
        "similarity --null",
        "similarity --intervals",
        "similarity --against shots=0",
        "similarity --kind kendall",
        "similarity --level node",
        "stability",
        "stability --by x --over folds",
        "commutativity",
        "neighbours",
        "families",
        "families --every-pair",
        "families --sweep",
        "families --barcode",
        "families --tree",
        "families --map mds",
        "containment",
        "containment --order",
        "inclusion",
        "evals",
        "evals map",
    ],
)
def test_an_empty_database_gives_an_empty_answer(cli: Cli, command: str) -> None:
    Store("empty.duckdb").create()
    done = cli(*command.split(), "--db", "empty.duckdb")
    assert (done.code, done.table) == (0, [])
    assert json.loads(cli(*command.split(), "--db", "empty.duckdb", "--json").out)["rows"] == []


def test_version_and_bare_call(cli: Cli) -> None:
    assert cli("--version").out == f"circuitdb {circuitdb.__version__}\n"
    assert cli().out == cli("--help").out
