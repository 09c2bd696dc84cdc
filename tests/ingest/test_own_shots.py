"""Shots drawn per example: never the question or its partner, the same in both runs, of one fold, by the seed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import tiny_models
from circuitdb.connection import reading
from circuitdb.errors import TaskError
from circuitdb.ingest import FileTask, LoadedModel, Options, ingest, load_model
from circuitdb.ingest.forms import INSTRUCTION
from circuitdb.ingest.jobs import Job
from circuitdb.ingest.pairs import Pair
from circuitdb.ingest.plan import plan
from circuitdb.ingest.tasks.addition import Addition
from circuitdb.ingest.tasks.task import Task
from circuitdb.store import Store

TASK = Addition((1,))
OWN = Options(n_examples=12, shots=2, steps=2, shots_drawn="per-example")


@pytest.fixture(scope="module")
def characters(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    """A random Llama that reads any characters."""
    folder = tmp_path_factory.mktemp("characters") / "tiny"
    return load_model(tiny_models.llama_folder(folder, tiny_models.character_tokenizer(), n_context=512))


def planned(model: LoadedModel, options: Options, task: Task = TASK) -> Job:
    return plan(model, task, task.subtasks()[0], options)


def headers(job: Job) -> list[str]:
    """What stands before each question."""
    found = [q.text.removesuffix(f"{q.question.prompt} ") for q in job.questions]
    assert all(text != header for text, header in zip([q.text for q in job.questions], found, strict=True))
    return found


def test_shots_differ_between_examples_and_are_shared_by_a_pair(digits_model: LoadedModel) -> None:
    job = planned(digits_model, OWN)
    assert len(job.pairing.pairs) >= 8
    for header, question, shots, outcome in zip(
        headers(job), job.questions, job.shots, job.pairing.outcomes, strict=True
    ):
        assert header == "".join(f"{shot.solved}\n" for shot in shots)
        assert len({shot.prompt for shot in shots}) == 2
        assert question.question.prompt not in header
        if isinstance(outcome, Pair):
            partner = outcome.corrupted
            assert partner.text == f"{header}{partner.question.prompt} "
            assert partner.question.prompt not in header
            assert len(partner.ids) == len(outcome.clean.ids)
            assert outcome.clean == question
    assert len(set(headers(job))) > 8


def test_folds_have_no_question_in_common(digits_model: LoadedModel) -> None:
    """Of 81 questions 70 leave 11, fewer than 9 a fold: so scored ones stand in headers at last."""
    for n_examples, shots in ((24, 2), (12, 6), (70, 9)):
        job = planned(digits_model, replace(OWN, n_examples=n_examples, shots=shots))
        seen: list[set[str]] = [set(), set()]
        for own, outcome in zip(job.shots, job.pairing.outcomes, strict=True):
            if isinstance(outcome, Pair):
                seen[outcome.fold] |= {q.prompt for q in own}
                seen[outcome.fold] |= {outcome.clean.question.prompt, outcome.corrupted.question.prompt}
        assert seen[0]
        assert seen[1]
        assert not seen[0] & seen[1]
    scored = {q.question.prompt for q in job.questions}
    assert any(shot.prompt in scored for own in job.shots for shot in own)


def test_the_seed_decides(digits_model: LoadedModel) -> None:
    one, same, other = (planned(digits_model, replace(OWN, seed=seed)) for seed in (0, 0, 1))
    assert headers(one) == headers(same)
    assert one.spec_digest == same.spec_digest != other.spec_digest
    assert one.spec_digest != planned(digits_model, replace(OWN, shots_drawn="fixed")).spec_digest
    plain = [planned(digits_model, replace(OWN, shots=0, shots_drawn=drawn)).spec for drawn in ("fixed", "per-example")]
    assert plain[0] == plain[1]


def test_few_questions(digits_model: LoadedModel) -> None:
    with pytest.raises(
        TaskError,
        match=r"its fold has (38|39|40) questions besides a pair, and 60 shots of its own are to be drawn from them: "
        r"use fewer shots, more examples or fewer folds\.",
    ):
        planned(digits_model, replace(OWN, shots=60))


def test_partners_that_a_file_gives(digits_model: LoadedModel, tmp_path: Path) -> None:
    rows = [f"{a} + 1 =,{a} + 2 =,{a + 1},{a + 2}" for a in range(1, 8)]
    # A row that asks what another's partner asks: it must not stand before that one.
    rows.append("1 + 2 =,1 + 4 =,3,5")
    file = tmp_path / "sums.csv"
    file.write_text("\n".join(["clean,corrupted,answer,corrupted_answer", *rows]))
    task = FileTask(file)
    for seed in range(5):
        job = planned(digits_model, replace(OWN, n_examples=8, shots=3, folds=1, seed=seed), task)
        assert len(job.pairing.pairs) == 8
        for own, pair in zip(job.shots, job.pairing.pairs, strict=True):
            assert not {shot.prompt for shot in own} & {pair.clean.question.prompt, pair.corrupted.question.prompt}
            assert pair.corrupted.text.startswith("".join(f"{shot.solved}\n" for shot in own))


def test_stored_with_how_they_were_drawn(digits_model: LoadedModel, tmp_path: Path) -> None:
    store = Store(tmp_path / "c.duckdb")
    for options in (OWN, replace(OWN, shots_drawn="fixed"), replace(OWN, shots=0)):
        ingest(store, digits_model, TASK, options)
    with reading(store.path) as connection:
        rows = connection.execute(
            "SELECT prompt_style, shots, shots_drawn FROM circuits ORDER BY circuit_id"
        ).fetchall()
        assert rows == [
            ("few-shot", 2, "per-example"), ("few-shot", 2, "fixed"), ("zero-shot", 0, None)
        ]  # fmt: skip
        n = connection.execute(
            "SELECT count(DISTINCT regexp_extract(clean, '^(.*\\n.*\\n)', 1)) FROM example "
            "GROUP BY circuit_id ORDER BY circuit_id"
        ).fetchall()
    assert n[0][0] > 8
    assert n[1] == (1,)


def test_with_a_chain_of_thought(characters: LoadedModel) -> None:
    options = replace(OWN, chain_of_thought=True, reasoning_tokens=4, positions="all")
    job = planned(characters, options, TASK)
    assert job.pairing.pairs
    for outcome, own in zip(job.pairing.outcomes, job.shots, strict=True):
        if isinstance(outcome, Pair):
            for side in (outcome.clean, outcome.corrupted):
                assert side.text.count(INSTRUCTION) == 3
                assert all(f"{INSTRUCTION} {shot.reasoning} " in side.text for shot in own)
            assert all(
                shot.prompt != side.question.prompt for shot in own for side in (outcome.clean, outcome.corrupted)
            )
