"""The sports study: chain of thought is more stable and more often right, as was planted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import fisher_exact

from circuitdb.queries import Database
from circuitdb.queries.studies.findings import Finding, Findings
from planted import sports

STYLES = ("chain-of-thought", "few-shot")


def answer(found: Findings, start: str, subject: str = "") -> Finding:
    """The only finding whose question begins so."""
    (one,) = [f for f in found.findings if f.question.startswith(start) and f.subject == subject]
    return one


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Database:
    return Database(sports(tmp_path_factory.mktemp("sports") / "c.duckdb"))


@pytest.fixture(scope="module")
def found(db: Database) -> Findings:
    return db.study("sports")


def test_stability_as_the_database_compares(db: Database, found: Findings) -> None:
    one = answer(found, "Is the circuit as stable")
    rows = {row["statistic"]: row for row in db.compare("prompt_style", STYLES).rows()}
    plain, corrected = rows["stability"], rows["corrected stability"]
    assert f"Stability is {plain['first']:.2f} with chain-of-thought prompts and {plain['second']:.2f}" in one.answer
    assert (
        f"The difference is {plain['effect']:.2f} (95% interval {plain['low']:.2f} to {plain['high']:.2f})"
        in one.answer
    )
    assert f"Corrected for noise it is {corrected['effect']:.2f}" in one.answer
    assert corrected["p"] < 0.05  # type: ignore[operator]
    assert "It is more stable with chain-of-thought prompts." in one.answer
    assert any("Random parts hold questions of one kind" in said for said in one.caveats)


def test_accuracy_over_all_questions(found: Findings) -> None:
    one = answer(found, "How often")
    # 108 of 120 and 72 of 120; Wilson's intervals.
    assert "90% (95% interval 83% to 94%) with chain-of-thought prompts" in one.answer
    assert "60% (95% interval 51% to 68%) with few-shot prompts" in one.answer
    assert "with few-shot prompts the model hardly does the task" in one.caveats[0]
    gain = answer(found, "Is the model more often right with chain")
    p = fisher_exact([[108, 12], [72, 48]]).pvalue
    assert p < 0.001
    assert gain.answer.startswith("Yes. Over all questions the difference is 30 points (95% interval 19 to 40 points)")
    assert "p < 0.001 by Fisher's test; over 6 subtasks it has p = 0.031 by sign flips" in gain.answer
    assert gain.tables[0].rows()[0]["stderr"] == pytest.approx(np.sqrt(0.9 * 0.1 / 20 + 0.6 * 0.4 / 20))


def test_the_circuits_are_told_apart(db: Database, found: Findings) -> None:
    one = answer(found, "Is the circuit of chain")
    pairs = db.between({"prompt_style": STYLES[0]}, {"prompt_style": STYLES[1]}).rows()
    mean = np.mean([row["similarity"] for row in pairs if row["same_subtask"]])
    assert f"mean similarity of {mean:.2f}" in one.answer
    assert "over 6 subtasks" in one.answer
    assert len(one.tables[0]) == 6


def test_labels_say_the_prompt_style(found: Findings) -> None:
    rows = answer(found, "Are the circuits").tables[0].rows()
    assert rows[0]["subtask"] == "part 1 of 6, chain-of-thought"


def test_one_style_has_nothing_to_compare(tmp_path: Path) -> None:
    found = Database(sports(tmp_path / "c.duckdb", styles=("few-shot",))).study("sports")
    assert "one prompt style (few-shot)" in answer(found, "Does chain of thought").answer


def test_three_styles_and_two_partitions(tmp_path: Path) -> None:
    path = sports(tmp_path / "c.duckdb", styles=("few-shot", "chain-of-thought", "zero-shot"), by_sport=True)
    found = Database(path).study("sports")
    assert sum(f.question.startswith("Is the circuit as stable") for f in found.findings) == 3
    assert not any("Random parts" in said for f in found.findings for said in f.caveats)
    sports(path, parts=3)
    both = Database(path).study("sports")
    assert {f.subject for f in both.findings} == {"by sport", "3 random parts"}
