"""`circuitdb import` and `circuitdb export` from the shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

import circuitdb
import tool_files

if TYPE_CHECKING:
    from terminals import Cli

CONFIG = tool_files.cfg("B_gpt2")
DB = ["--db", "new.duckdb"]


def scores(seed: int = 0) -> dict[str, float]:
    names = tool_files.edge_names(CONFIG)
    return dict(
        zip(names, np.random.default_rng(seed).standard_normal(len(names)).astype(np.float32).tolist(), strict=True)
    )


def test_import_prints_what_became_of_each_file(cli: Cli) -> None:
    for a in (1, 2):
        tool_files.eap_ig_json(Path(f"add-{a}-1.json"), CONFIG, scores(a))
    Path("bad.json").write_text("{")
    done = cli("import", "add-1-1.json", "add-2-1.json", *DB, "--model", "m", "--task", "addition",
               "--pattern", "add-{a}-{b}.json", "--subtask", "{a}+{b}", "--method", "eap-ig", "--json")  # fmt: skip
    assert done.code == 0
    found = json.loads(done.out)
    assert found["title"] == "2 of 2 circuits imported into new.duckdb"
    assert [(row["status"], row["kind"], row["number"], row["subtask"]) for row in found["rows"]] == [
        ("stored", "circuit", 1, "1+1"), ("stored", "circuit", 2, "2+1"),
    ]  # fmt: skip
    again = cli("import", "add-1-1.json", "bad.json", *DB, "--model", "m", "--task", "addition", "--csv")
    assert again.code == 1
    assert "bad.json is no valid JSON" in again.out
    assert circuitdb.open("new.duckdb").circuits(method="eap-ig").rows()[1]["parameters"] == '{"a":2,"b":1}'


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["none.json"], 2, "There is no file or folder none.json."),
        (["empty"], 2, "There is no .json or .pt file in the folder empty."),
        (["a.json"], 1, "Which model is a.json of? Say --model NAME, or {model} in --pattern."),
        (["a.json", "--pattern", "a.json"], 2,
         "The pattern 'a.json' has no field, such as {digits_a}, so it says nothing of a file."),
        (["a.json", "--sign", "up"], 2, "A sign is ablated-minus-clean or clean-minus-ablated, not 'up'."),
        (["a.json", "--shape", "12"], 2, "--shape is layers x heads, such as 12x12 or 6x8,parallel, not '12'."),
        (["bad.pkl"], 1, "bad.pkl is a Python pickle, and to read a pickle is to run whatever code is in it, so it is "
                         "refused; write what it holds as JSON, or with torch.save, where you trust it."),
    ],
)  # fmt: skip
def test_what_import_refuses(cli: Cli, arguments: list[str], code: int, message: str) -> None:
    tool_files.eap_ig_json(Path("a.json"), CONFIG, scores())
    Path("empty").mkdir()
    Path("bad.pkl").write_bytes(b"\x80\x04]q.")
    done = cli("import", *arguments, *DB)
    assert (done.code, done.err) == (code, f"Error: {message}\n")
    assert not Path("new.duckdb").exists()


@pytest.mark.parametrize("form", ["eap-ig", "eap-ig-pt"])
def test_a_circuit_goes_out_and_in_to_the_bit(cli: Cli, form: str) -> None:
    name = "out.json" if form == "eap-ig" else "out.pt"
    assert cli("export", name, "--format", form, "--circuit", "5", "--top", "7").code == 0
    before = circuitdb.open(cli_db()).sql("SELECT score FROM edge_score WHERE circuit_id = 5 ORDER BY edge_id").rows()
    done = cli("import", name, *DB, "--model", "tiny", "--task", "addition")
    assert done.code == 0
    db = circuitdb.open("new.duckdb")
    assert db.sql("SELECT score FROM edge_score ORDER BY edge_id").rows() == before
    wanted = [row["edge_id"] for row in circuitdb.open(cli_db()).hard_circuit(5, top=7).rows()]
    assert [row["edge_id"] for row in db.sql("SELECT edge_id FROM hard_circuit_edge ORDER BY 1").rows()] == wanted


def cli_db() -> str:
    import os

    return os.environ["CIRCUITDB"]


def test_several_circuits_go_into_a_folder_and_nothing_is_overwritten(cli: Cli) -> None:
    done = cli("export", "out", "--subtask", "1+1", "--subtask", "1+2", "--format", "dot", "--csv")
    assert done.code == 0
    assert sorted(path.name for path in Path("out").iterdir()) == ["tiny-addition-1+1.dot", "tiny-addition-1+2.dot"]
    again = cli("export", "out", "--subtask", "1+1", "--subtask", "1+2", "--format", "dot")
    assert again.code == 2
    assert "out/tiny-addition-1+1.dot exists already; name another one, or replace it with --force." in again.err
    assert cli("export", "out", "--subtask", "1+1", "--subtask", "1+2", "--format", "dot", "--force").code == 0


def test_mib_folders(cli: Cli) -> None:
    assert cli("export", "sub", "--format", "mib", "--circuit", "1").code == 0
    loaded, _, _ = tool_files.load_eap_ig(Path("sub/addition_tiny/importances.json"))
    wanted = circuitdb.open(cli_db()).sql("SELECT edge, score FROM scores WHERE circuit_id = 1").rows()
    assert loaded == {row["edge"]: row["score"] for row in wanted}
    assert cli("export", "cuts", "--format", "mib-circuits", "--circuit", "1").code == 0
    sizes = []
    for path in sorted(Path("cuts/addition_tiny").iterdir(), key=lambda p: float(p.stem)):
        _, inside, _ = tool_files.load_eap_ig(path)
        chosen = {name for name, is_in in inside.items() if is_in}
        strongest = sorted(loaded, key=lambda name: -abs(loaded[name]))[: len(chosen)]
        assert chosen == set(strongest)
        sizes.append(len(chosen))
    n = len(loaded)
    assert sizes == [int(n * share) for share in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)]
    assert cli("import", "cuts", *DB).code == 0
    assert circuitdb.open("new.duckdb").sql("SELECT count(DISTINCT share) AS n FROM hard_circuits").rows() == [{"n": 9}]


def test_parquet_is_read_back_and_replaced_with_force_alone(cli: Cli) -> None:
    assert cli("export", "out", "--format", "parquet").code == 0
    assert cli("import", "out", *DB).code == 0
    one, other = circuitdb.open("new.duckdb"), circuitdb.open(cli_db())
    assert one.stability().rows() == other.stability().rows()
    assert one.reliability().rows() == other.reliability().rows()
    refused = cli("export", "out", "--format", "parquet")
    assert (refused.code, "out exists already" in refused.err) == (2, True)
    assert cli("export", "out", "--format", "parquet", "--force", "--circuit", "1").code == 0
    assert json.loads(Path("out/circuitdb.json").read_text())["rows"]["circuit"] == 1
    Path("mine").mkdir()
    (Path("mine") / "a.txt").write_text("precious")
    assert cli("export", "mine", "--format", "parquet", "--force").code == 2
    assert (Path("mine") / "a.txt").read_text() == "precious"
    told = cli("import", "out", *DB, "--model", "m")
    assert (told.code, "says itself what its circuits are" in told.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.json", "--prune"], "--prune says how a circuit is cut; say how far, too, such as --top 200."),
        (["out", "--format", "parquet", "--top", "5"], "parquet has whole circuits; leave --top out."),
        (["out", "--format", "mib-circuits", "--top", "5"],
         "mib-circuits are nine cuts at the sizes of MIB; leave the size of a cut out."),
        (["no/where/a.json", "--circuit", "1"], "The folder of no/where/a.json does not exist; make it first."),
        (["a.json", "--circuit", "99"], "There is no circuit 99. The database has: 1, 2, 3, 4, 5, 6, 7, 8, 9."),
    ],
)  # fmt: skip
def test_what_export_refuses(cli: Cli, arguments: list[str], message: str) -> None:
    done = cli("export", *arguments)
    assert done.code == 2
    assert message in done.err


def test_export_of_nested_prune_scores_keeps_the_parts_apart(cli: Cli) -> None:
    plain = tool_files.prune_scores(CONFIG, scores())
    torch.save({"IOI": {"EAP": plain, "Random": plain}}, "a.pt")
    done = cli("import", "a.pt", *DB, "--model", "m", "--json")
    assert [(row["task"], row["number"]) for row in json.loads(done.out)["rows"]] == [("IOI", 1), ("IOI", 2)]
    done = cli("export", "out", *DB)
    assert sorted(path.name for path in Path("out").iterdir()) == ["m-IOI-a-2.json", "m-IOI-a.json"]
    assert "d_model is 1 in the files" in done.err
