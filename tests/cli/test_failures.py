"""What a person reads, and a script gets as exit code, when something is wrong: in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from terminals import MAIN, Cli, environment, run

HOLD = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param(
            ["circuits", "--db", "none.duckdb"],
            1,
            "Error: There is no database none.duckdb; make one with `circuitdb ingest`, or name it with --db.",
            id="missing file",
        ),
        pytest.param(
            ["circuits", "--db", "text.txt"],
            1,
            "Error: text.txt is no DuckDB file; name another one with --db.",
            id="no database",
        ),
        pytest.param(
            ["circuits", "--db", "other.duckdb"],
            1,
            "Error: other.duckdb is a DuckDB file but no circuitdb database; name another file with --db.",
            id="another's database",
        ),
        pytest.param(
            ["circuits", "--modle", "tiny"],
            2,
            "Error: No such option: --modle (Possible options: --method, --model); see `circuitdb circuits --help`.",
            id="wrong option",
        ),
        pytest.param(
            ["circuits", "--model", "tinny"],
            2,
            "Error: There is no model tinny; did you mean tiny? The database has: tiny.",
            id="unknown model",
        ),
    ],
)
def test_one_sentence_on_stderr_and_the_exit_code(
    shared_store: Path, tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    (tmp_path / "text.txt").write_text("no database at all\n" * 1000)
    duckdb.connect(tmp_path / "other.duckdb").execute("CREATE TABLE t (i INTEGER)").close()
    done = run(arguments, tmp_path, settings={"CIRCUITDB": str(shared_store)})
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"{message}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["--db", "x", "circuits"],
            "Error: No such option: --db; options follow the command; see `circuitdb --help`.",
            id="option before the command",
        ),
        pytest.param(
            ["circuit"],
            "Error: No such command 'circuit'. Did you mean 'circuits'? See `circuitdb --help`.",
            id="wrong command",
        ),
        pytest.param(["show"], "Error: Missing argument 'ID'; see `circuitdb show --help`.", id="missing argument"),
        pytest.param(
            ["similarity", "--on", "rank"],
            "Error: Invalid value for '--on': 'rank' is not one of 'signed', 'magnitude'; "
            "see `circuitdb similarity --help`.",
            id="wrong choice",
        ),
        pytest.param(
            ["show", "99"],
            "Error: There is no circuit 99. The database has: 1, 2, 3, 4, 5, 6, 7, 8, 9.",
            id="unknown circuit",
        ),
        pytest.param(
            ["circuits", "--json", "--csv"],
            "Error: An answer is either --json or --csv; ask for one of them.",
            id="two forms",
        ),
        pytest.param(
            ["families", "--alpha", "0.5", "--sweep"],
            "Error: --sweep is not of one alpha; give --alpha or --sweep, not both.",
            id="alpha and sweep",
        ),
        pytest.param(
            ["families", "--tree", "--barcode"],
            "Error: --barcode and --tree are different answers; ask for one of them.",
            id="two views of families",
        ),
        pytest.param(
            ["families", "--barcode", "--every-pair"],
            "Error: --barcode has no classes; leave out --every-pair.",
            id="bars of classes",
        ),
        pytest.param(
            ["families", "--share", "0.5", "--alpha", "0.5"],
            "Error: --share is not of one alpha; give --alpha or --share, not both.",
            id="a share at an alpha",
        ),
        pytest.param(
            ["families", "--barcode", "--share", "0.5", "--share", "0.9"],
            "Error: --barcode has the band of one share; give one --share, or several without --barcode.",
            id="bars and two shares",
        ),
        pytest.param(
            ["similarity", "--layers", "2-"],
            "Error: --layers is one layer or a range, such as 0-5, not 2-.",
            id="half a range",
        ),
        pytest.param(
            ["similarity", "--kind", "kendall", "--corrected"],
            "Error: There is no correction for noise for Kendall's tau-b; ask without corrected, or for a kind that "
            "has one: spearman, pearson, cosine.",
            id="no correction",
        ),
        pytest.param(
            ["similarity", "--against", "digits=2"],
            "Error: --against is a filter and its value, such as shots=0, not digits=2; filters are model, task, "
            "subtask, origin, method, grid, metric, positions, contrast, ablation, prompt_style, shots_drawn, chat, "
            "dtype, steps, shots, reasoning_tokens, seed, examples, circuit.",
            id="no such filter",
        ),
        pytest.param(
            ["similarity", "--against", "shots=few"],
            "Error: --against shots is a whole number, not few.",
            id="no number",
        ),
        pytest.param(
            ["similarity", "--null", "--corrected"],
            "Error: --null goes without --corrected, --intervals and --against; it has columns of its own.",
            id="a corrected null",
        ),
        pytest.param(
            ["similarity", "--intervals", "--against", "circuit=1"],
            "Error: --intervals are of the pairs of one set; leave out --against.",
            id="intervals of two sets",
        ),
        pytest.param(
            ["stability", "--by", "digit_a"],
            "Error: No subtask of the selection has a parameter 'digit_a'; did you mean digits_a?",
            id="no such parameter",
        ),
        pytest.param(
            ["compare", "--by", "digits_a"],
            "Error: A comparison is between two values of digits_a; name two of 1, 2, 3.",
            id="three conditions",
        ),
        pytest.param(
            ["compare", "--by", "digits_a", "--value", "1", "--value", "7"],
            "Error: No circuit has digits_a 7; there is 1, 2, 3.",
            id="no such condition",
        ),
        pytest.param(
            ["commutativity", "--parameter", "digits_a"],
            "Error: Commutativity exchanges two parameters, not digits_a; name two.",
            id="one operand",
        ),
        pytest.param(
            ["reliability", "--wanted", "1"],
            "Error: A wanted reliability lies between 0 and 1, not at 1.",
            id="perfection",
        ),
    ],
)
def test_wrong_usage_is_said_in_one_sentence(cli: Cli, arguments: list[str], message: str) -> None:
    done = cli(*arguments)
    assert (done.code, done.out, done.err) == (2, "", f"{message}\n")


def test_a_held_file_names_its_holder(shared_store: Path, tmp_path: Path) -> None:
    path = tmp_path / "held.duckdb"
    path.write_bytes(shared_store.read_bytes())
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        start = time.perf_counter()
        done = run(["circuits", "--db", "held.duckdb", "--timeout", "0.2"], tmp_path)
        assert time.perf_counter() - start < 5
        holder.communicate("")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith(f"Error: held.duckdb is held by process {holder.pid} (")
    assert "was not free within 0.2 s" in done.stderr
    assert run(["circuits", "--db", "held.duckdb"], tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("name", "form"),
    [("table", "--format=table"), ("csv", "--csv"), ("json", "--json"), ("parquet", "--format=parquet")],
)
def test_a_reader_that_has_seen_enough_is_no_failure(shared_store: Path, tmp_path: Path, name: str, form: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "sql", "from range(100000)", form],
        cwd=tmp_path,
        env=environment(CIRCUITDB=str(shared_store)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read(3)[:1] in {b"1", b"r", b"{", b"P"}
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("select count(*) from range(10000000000) a, range(1000) b", id="DuckDB looks up"),
        pytest.param("select sum(a.range * b.range) from range(100000000) a, range(100000) b", id="DuckDB is busy"),
    ],
)
def test_an_interrupt_ends_a_question_soon(shared_store: Path, tmp_path: Path, statement: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN.replace("sys.exit", "print(1, flush=True); sys.exit"), "sql", statement],
        cwd=tmp_path,
        env=environment(CIRCUITDB=str(shared_store)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=20) == (b"", b"")
    assert process.returncode == 130


def test_a_fault_of_ours_is_one_sentence_and_its_traceback_can_be_had(shared_store: Path, tmp_path: Path) -> None:
    broken = "import circuitdb.cells as c; c.Cells.of = lambda answer: 1 / 0; " + MAIN
    done = run(["circuits"], tmp_path, code=broken, settings={"CIRCUITDB": str(shared_store)})
    assert done.returncode == 1
    assert done.stderr == "Error: ZeroDivisionError: division by zero; set CIRCUITDB_DEBUG=1 for the traceback.\n"
    told = run(["circuits"], tmp_path, code=broken, settings={"CIRCUITDB": str(shared_store), "CIRCUITDB_DEBUG": "1"})
    assert told.returncode == 1
    assert told.stderr.startswith("Traceback (most recent call last):")
    assert told.stderr.endswith("\nError: ZeroDivisionError: division by zero.\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_named(shared_store: Path, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, "circuits"],
            cwd=tmp_path,
            env=environment(CIRCUITDB=str(shared_store)),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "Error: standard output: No space left on device.\n")


@pytest.mark.parametrize("arguments", [["circuits"], ["sql", "select 1", "--format", "parquet"], ["--version"]])
def test_a_closed_output_is_named(shared_store: Path, tmp_path: Path, arguments: list[str]) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" "$@" >&-', sys.executable, "-c", MAIN, *arguments],
        cwd=tmp_path,
        env=environment(CIRCUITDB=str(shared_store)),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "Error: standard output: it is closed.\n")


@pytest.mark.parametrize("arguments", [["show", "9" * 20], ["similarity", "--circuit", "999999999999"]])
def test_an_id_out_of_range_is_that_of_no_circuit(cli: Cli, arguments: list[str]) -> None:
    done = cli(*arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"Error: There is no circuit {arguments[-1]}. The database has: 1, 2, ")


def test_an_error_keeps_its_letters_in_order(cli: Cli) -> None:
    done = cli("circuits", "--model", "a\u202eb\u2066c\u200f")
    assert done.err == "Error: There is no model abc. The database has: tiny.\n"


def test_an_alpha_that_no_similarity_has_is_noted(cli: Cli) -> None:
    assert "Every similarity is between -1 and 1, so alpha = 2 says nothing" in cli("families", "--alpha", "2").err
    assert "says nothing" not in cli("families", "--alpha", "0.5").err


def test_an_unprintable_character_is_written_as_its_code(shared_store: Path, tmp_path: Path) -> None:
    settings = {"CIRCUITDB": str(shared_store), "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = run(["sql", "select 'é' as a"], tmp_path, settings=settings)
    assert (done.returncode, done.stdout) == (0, "1 row\n\na\n-\n\\xe9\n")
    done = run(["sql", "select 'é' as a", "--json"], tmp_path, settings=settings)
    assert '{"a": "\\u00e9"}' in done.stdout
