"""Help is quick, and no question loads what only an ingest or the browser needs."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest

from terminals import run

HEAVY = ("torch", "transformers", "transformer_lens", "textual", "pandas")
QUESTIONS = [
    ["circuits"],
    ["show", "1"],
    ["reliability"],
    ["similarity"],
    ["similarity", "--corrected", "--long"],
    ["stability"],
    ["families"],
    ["families", "--sweep"],
    ["families", "--barcode"],
    ["families", "--map", "mds"],
    ["similarity", "--null"],
    ["similarity", "--intervals"],
    ["similarity", "--kind", "kendall"],
    ["similarity", "--kind", "kappa"],
    ["compare", "--by", "digits_a", "--value", "1", "--value", "2"],
    ["commutativity"],
    ["neighbours"],
    ["containment", "--top", "20"],
    ["containment", "--greedy", "20", "--prune", "--long"],
    ["containment", "--order", "--tolerance", "0.2"],
    ["inclusion", "--top", "20"],
    ["hard", "1", "--greedy", "5"],
    ["evals"],
    ["correlate"],
    ["plot", "similarity", "-o", "a.svg"],
    ["export", "a.json", "--circuit", "1"],
    ["export", "a.dot", "--circuit", "1", "--format", "dot"],
    ["sql", "select 1"],
    ["schema"],
    ["tasks"],
    ["tasks", "boolean"],
]
# Runs each command line in turn and prints, last, what each brought in that was not there before.
_REPORT = """
import json, sys
from circuitdb.cli.main import main
brought, seen = [], set()
for arguments in json.loads(sys.argv[1]):
    code = main(arguments)
    now = {name for name in json.loads(sys.argv[2]) if name in sys.modules} - seen
    brought.append([code, sorted(now)])
    seen |= now
print(json.dumps(brought), file=sys.stderr)
"""


def test_no_question_loads_the_engine_or_the_browser(shared_store: Path, tmp_path: Path) -> None:
    done = run(
        [json.dumps(QUESTIONS), json.dumps(HEAVY)], tmp_path, code=_REPORT, settings={"CIRCUITDB": str(shared_store)}
    )
    report = json.loads(done.stderr.splitlines()[-1])
    assert list(zip(QUESTIONS, report, strict=True)) == [(question, [0, []]) for question in QUESTIONS]


@pytest.mark.parametrize("arguments", [["--help"], ["similarity", "--help"], ["ingest", "--help"], ["--version"]])
def test_help_loads_next_to_nothing(tmp_path: Path, arguments: list[str]) -> None:
    wanted = [*HEAVY, "duckdb", "pyarrow", "scipy", "rich", "sqlglot"]
    done = run([json.dumps([arguments]), json.dumps(wanted)], tmp_path, code=_REPORT)
    assert json.loads(done.stderr) == [[0, []]]


def test_help_answers_in_under_two_fifths_of_a_second(tmp_path: Path) -> None:
    """In seconds of the processor, which other processes of the machine do not change."""
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert run(["--help"], tmp_path).returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(times) < 0.4
